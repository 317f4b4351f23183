import type { ReadonlySignal } from "@preact/signals"
import { useEffect } from "preact/hooks"
import { overviewAddress } from "./address.ts"
import { detailsFeed, type Feed, listFeed } from "./feeds.ts"
import { viewOf } from "./kinds/all.ts"
import { Overview } from "./Overview.tsx"
import { needsSomebody, titleOf } from "./overview.ts"
import { HeadNotes, To } from "./parts.tsx"
import { type Surroundings, SurroundingsProvider, useSurroundings } from "./surroundings.tsx"
import { clockTime, counted } from "./words.ts"

/** How fresh the picture is: `silentSeconds` is 0 while news come in. */
export type Freshness = { silentSeconds: number; asOf: number; message: string }

type Props = {
  surroundings: Surroundings
  feedNamed: (name: string) => Feed | undefined
  freshness: ReadonlySignal<Freshness>
  unknown: ReadonlySignal<string[]>
}

export function App({ surroundings, feedNamed, freshness, unknown }: Props) {
  return (
    <SurroundingsProvider value={surroundings}>
      <TopBar />
      <StaleBanner freshness={freshness.value} />
      {unknown.value.length > 0 && (
        <p class="notice warn" role="alert">
          The address has {counted(unknown.value.length, "part")} that this page does not know:{" "}
          {unknown.value.join(", ")}
        </p>
      )}
      <View feedNamed={feedNamed} />
    </SurroundingsProvider>
  )
}

function TopBar() {
  const { session } = useSurroundings()
  return (
    <header class="top-bar">
      <To address={overviewAddress} class="brand">
        AutoImageManager
      </To>
      <span class="dim clip" title={session.cluster}>
        {session.cluster}
        {session.user && `, ${session.user}`}
      </span>
      {!session.operates && (
        <span class="read-only" title={session.whyNot}>
          read-only
        </span>
      )}
    </header>
  )
}

/** The picture stays readable while nothing is heard; it says how old it is. */
export function StaleBanner({ freshness: { silentSeconds, asOf, message } }: { freshness: Freshness }) {
  if (silentSeconds === 0) return null
  return (
    <div class="stale" role="alert">
      <b>No news for {silentSeconds} s.</b> This is the picture of {clockTime(asOf)}; nothing can be changed until the
      server is back. <span class="dim">{message}</span>
    </div>
  )
}

function View({ feedNamed }: Pick<Props, "feedNamed">) {
  const { session, address } = useSurroundings()
  const { object } = address.value
  const lists = session.kinds.map(({ id }) => ({ kind: id, feed: feedNamed(listFeed(id)) }))
  const waiting = lists.reduce((sum, { feed }) => sum + (feed ? needsSomebody(feed.rows.values()) : 0), 0)
  const feed = object && feedNamed(detailsFeed(object))
  const shown = feed?.details?.row
  const title = titleOf({ waiting, ...(shown && { shown }) })
  useEffect(() => {
    document.title = title
  }, [title])
  if (!object) return <Overview feeds={lists} />
  const kind = session.kinds.find(({ id }) => id === object.kind)
  if (!kind)
    return (
      <main class="details">
        <p class="notice bad" role="alert">
          There is no kind {object.kind} here. Known are: {session.kinds.map(({ id }) => id).join(", ")}.
        </p>
        <To address={overviewAddress}>← Overview</To>
      </main>
    )
  if (!feed)
    return (
      <main class="details">
        <To address={overviewAddress}>← Overview</To>
        <HeadNotes head={undefined} />
        <p class="empty">Reading the cluster…</p>
      </main>
    )
  const { Details } = viewOf(kind.view)
  return <Details feed={feed} key={detailsFeed(object)} />
}
