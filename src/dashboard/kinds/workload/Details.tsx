import { DetailsFrame } from "../../DetailsFrame.tsx"
import type { Feed } from "../../feeds.ts"
import { Ago, Conditions, Image, ProgressCell, Section, Table } from "../../parts.tsx"
import { WhyShown } from "../../Why.tsx"
import { counted, signs } from "../../words.ts"

/** An update in place, pod by pod. */
export function Details({ feed }: { feed: Feed }) {
  const { details } = feed
  const workload = details?.workload
  const row = details?.row.view === "workload" ? details.row : undefined
  return (
    <DetailsFrame feed={feed} facts={row && `, ${row.strategy}${workload?.operation ? `, ${workload.operation}` : ""}`}>
      {row && (
        <p class="big">
          <ProgressCell progress={row.progress} />
        </p>
      )}
      {workload && (
        <Section title="Pods" note={counted(workload.pods.length, "pod")}>
          <Table
            label="Pods"
            empty="It has no pods."
            items={workload.pods}
            columns={[
              { head: "Pod", cell: ({ name }) => <b>{name}</b> },
              {
                head: "Ready",
                cell: ({ isReady }) => (
                  <span class={`state ${isReady ? "good" : "warn"}`}>
                    <span aria-hidden="true">{isReady ? signs.good : signs.warn}</span>{" "}
                    {isReady ? "ready" : "not ready"}
                  </span>
                ),
              },
              { head: "Update", cell: ({ state }) => state },
              { head: "Why", cell: ({ why }) => why, class: "words" },
              { head: "Node", cell: ({ node }) => node },
              {
                head: "Images",
                cell: ({ images }) =>
                  images.map(image => (
                    <div>
                      <Image image={image} />
                    </div>
                  )),
              },
              { head: "Changed", cell: ({ changedAt }) => <Ago at={changedAt} />, class: "time" },
            ]}
          />
        </Section>
      )}
      {details?.why && (
        <Section title="Why">
          <WhyShown why={details.why} />
        </Section>
      )}
      {details && <Conditions conditions={details.conditions} />}
    </DetailsFrame>
  )
}
