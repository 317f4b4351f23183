import { DetailsFrame } from "../../DetailsFrame.tsx"
import type { Feed } from "../../feeds.ts"
import { Conditions, Section } from "../../parts.tsx"
import { WhyShown } from "../../Why.tsx"

/** Any other kind, by what it says of itself. */
export function Details({ feed }: { feed: Feed }) {
  const { details } = feed
  const row = details?.row.view === "plain" ? details.row : undefined
  return (
    <DetailsFrame feed={feed}>
      {row && row.cells.length > 0 && (
        <dl class="facts-list">
          {row.cells.map(({ head, text }) => (
            <div>
              <dt>{head.toLowerCase()}</dt>
              <dd>{text}</dd>
            </div>
          ))}
        </dl>
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
