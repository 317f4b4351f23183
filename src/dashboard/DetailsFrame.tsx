import type { ComponentChildren } from "preact"
import { Actions } from "./ActionDialog.tsx"
import { overviewAddress } from "./address.ts"
import type { Feed } from "./feeds.ts"
import { HeadNotes, Lasting, State, To } from "./parts.tsx"
import { useSurroundings } from "./surroundings.tsx"

/** What the details of every kind have in common: where one is, how it stands, and what can be done. */
export function DetailsFrame({
  feed,
  facts,
  children,
}: {
  feed: Feed
  facts?: ComponentChildren
  children: ComponentChildren
}) {
  const { session } = useSurroundings()
  const { details } = feed
  if (!details)
    return (
      <main class="details">
        <Back />
        <HeadNotes head={feed.head} />
        {!feed.head.problem && <p class="empty">Reading the cluster…</p>}
      </main>
    )
  const { row } = details
  const kind = session.kinds.find(({ id }) => id === row.kind)
  const why = [row.reason !== row.state ? row.reason : "", row.message].filter(Boolean).join(": ")
  return (
    <main class="details">
      <Back />
      <div class="top">
        <div>
          <h1>
            {row.name} <State state={row.state} />
          </h1>
          <p class="facts dim">
            {kind?.kind ?? row.kind}
            {row.namespace && ` in ${row.namespace}`}
            {row.since !== undefined && (
              <>
                {", for "}
                <Lasting from={row.since} />
              </>
            )}
            {facts}
          </p>
        </div>
        <Actions details={details} />
      </div>
      <HeadNotes head={feed.head} />
      {row.unreadable && <p class="notice bad">{row.unreadable}</p>}
      {why && (
        <p class={`message ${row.attention === "Act" ? "act" : ""}`} role="status">
          {why}
        </p>
      )}
      {children}
    </main>
  )
}

const Back = () => (
  <nav aria-label="Where you are" class="back">
    <To address={overviewAddress}>← Overview</To>
  </nav>
)
