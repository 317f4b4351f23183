import { DetailsFrame } from "../../DetailsFrame.tsx"
import type { Feed } from "../../feeds.ts"
import { Conditions, Section, Table } from "../../parts.tsx"

export function Details({ feed }: { feed: Feed }) {
  const { details } = feed
  const row = details?.row.view === "recreate" ? details.row : undefined
  return (
    <DetailsFrame feed={feed} facts={row && `, pod ${row.pod}${row.node ? ` on ${row.node}` : ""}`}>
      {details?.recreate && (
        <Section title="Containers">
          <Table
            label="Containers"
            empty="No container was restarted yet."
            items={details.recreate.containers}
            columns={[
              { head: "Container", cell: ({ name }) => <b>{name}</b> },
              { head: "Phase", cell: ({ phase }) => phase },
              { head: "Message", cell: ({ message }) => message, class: "words" },
            ]}
          />
        </Section>
      )}
      {details && <Conditions conditions={details.conditions} />}
    </DetailsFrame>
  )
}
