import { DetailsFrame } from "../../DetailsFrame.tsx"
import type { Feed } from "../../feeds.ts"
import { Conditions, Image, ProgressCell, Section, Table } from "../../parts.tsx"
import { counted } from "../../words.ts"

/** Which images are on which nodes. */
export function Details({ feed }: { feed: Feed }) {
  const { details } = feed
  const pull = details?.pull
  const row = details?.row.view === "pull" ? details.row : undefined
  return (
    <DetailsFrame feed={feed}>
      {row && (
        <p class="big">
          <ProgressCell progress={row.progress} />
        </p>
      )}
      {pull && pull.images.length > 0 && (
        <Section title="Images" note={counted(pull.images.length, "image")}>
          <Table
            label="Images"
            empty=""
            items={pull.images}
            columns={[
              { head: "Image", cell: ({ image }) => <Image image={image} /> },
              { head: "State", cell: ({ state }) => state },
              { head: "Message", cell: ({ message }) => message, class: "words" },
            ]}
          />
        </Section>
      )}
      {pull && pull.nodes.length > 0 && (
        <Section title="Nodes" note={counted(pull.nodes.length, "node")}>
          <Table
            label="Nodes"
            empty=""
            items={pull.nodes}
            columns={[
              { head: "Node", cell: ({ name }) => <b>{name}</b> },
              { head: "State", cell: ({ state }) => state },
              { head: "Message", cell: ({ message }) => message, class: "words" },
            ]}
          />
        </Section>
      )}
      {details && <Conditions conditions={details.conditions} />}
    </DetailsFrame>
  )
}
