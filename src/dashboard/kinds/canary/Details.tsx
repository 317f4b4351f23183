import type { CanaryDetails } from "#web/wire.ts"
import { DetailsFrame } from "../../DetailsFrame.tsx"
import type { Feed } from "../../feeds.ts"
import { History } from "../../History.tsx"
import { Ago, Bar, Conditions, Image, Section, State, Table } from "../../parts.tsx"
import { counted } from "../../words.ts"
import { Curves } from "./Curves.tsx"

export function Details({ feed }: { feed: Feed }) {
  const { details } = feed
  const canary = details?.canary
  const run = canary?.run
  return (
    <DetailsFrame feed={feed} facts={canary && `, ${canary.phase}`}>
      {run && <Run run={run} />}
      {canary?.curves.some(({ at }) => at.length > 1) && (
        <Section title="Curves" note="since this page was opened">
          <Curves curves={canary.curves} />
        </Section>
      )}
      {run && run.metrics.length > 0 && (
        <Section title="Metrics">
          <Table
            label="Metrics"
            empty=""
            items={run.metrics}
            columns={[
              { head: "Metric", cell: ({ name }) => <b>{name}</b> },
              {
                head: "Verdict",
                cell: ({ verdict }) => (
                  <State
                    state={verdict}
                    tone={/^(Failed|Bad)/.test(verdict) ? "bad" : /^(Passed|Good)/.test(verdict) ? "good" : "calm"}
                  />
                ),
              },
              { head: "Value", cell: ({ value }) => value, class: "time" },
              { head: "Message", cell: ({ message }) => message, class: "words" },
              { head: "Measured", cell: ({ at }) => <Ago at={at} />, class: "time" },
            ]}
          />
        </Section>
      )}
      {run && run.gates.length > 0 && (
        <Section title="Gates">
          <Table
            label="Gates"
            empty=""
            items={run.gates}
            columns={[
              { head: "Gate", cell: ({ type, name }) => <b>{name || type}</b> },
              { head: "State", cell: ({ state }) => state },
              { head: "Approved by", cell: ({ approvedBy }) => approvedBy },
              { head: "Message", cell: ({ message }) => message, class: "words" },
              { head: "Since", cell: ({ since }) => <Ago at={since} />, class: "time" },
            ]}
          />
        </Section>
      )}
      {details?.history && <History entries={details.history} />}
      {details && <Conditions conditions={details.conditions} />}
    </DetailsFrame>
  )
}

/** Both revisions with the share of the requests that each gets. */
function Run({ run }: { run: NonNullable<CanaryDetails["run"]> }) {
  const { weight, full, source, target } = run
  const share = full === 0 ? 0 : (weight / full) * 100
  const sides = [
    { name: "Running", side: source, percent: 100 - share, tone: "good" as const },
    { name: run.isMirrored ? "New, mirrored" : "New", side: target, percent: share, tone: "busy" as const },
  ]
  const notes = [
    run.next !== undefined ? `next step ${run.next} %` : "",
    run.iterations > 0 ? counted(run.iterations, "iteration") : "",
    `${run.failedChecks} of ${run.threshold} failed checks`,
  ]
  return (
    <Section title="Requests" note={notes.filter(Boolean).join(", ")}>
      <ol class="lanes">
        {sides.map(({ name, side, percent, tone }) => (
          <li class="lane">
            <span class="lane-name">
              <b>{name}</b>
              <small class="clip">
                <Image image={side.image} />
              </small>
            </span>
            <span class="lane-bar">
              <Bar parts={[{ share: percent, tone }]} />
            </span>
            <span class="numbers">
              {Math.round(percent)} %<small class="dim">{counted(side.pods, "pod")}</small>
            </span>
          </li>
        ))}
      </ol>
    </Section>
  )
}
