import type { CellChange, Cells, Details, FeedHead, Frame, Row } from "#web/wire.ts"

/**
 * A feed as far as it is known. Every frame makes a new shell, so that a comparison by identity sees it; rows and
 * columns of cells are changed in place, as there may be thousands.
 */
export type Feed = {
  head: FeedHead
  rows: Map<string, Row>
  details?: Details
  cells?: Cells
  /** Grows when objects are added or change their tier: what depends on the order of cells is computed again. */
  order: number
}

export type Feeds = Map<string, Feed>

/** Applies one frame and returns the name of the feed that it was about, if it was about one. */
export function applyFrame(feeds: Feeds, frame: Frame): string | undefined {
  switch (frame.type) {
    case "whole": {
      const { feed, head, rows = [], details, cells } = frame
      const order = (feeds.get(feed)?.order ?? 0) + 1
      feeds.set(feed, {
        head,
        rows: new Map(rows.map(row => [row.id, row])),
        ...(details && { details }),
        ...(cells && { cells: structuredClone(cells) }),
        order,
      })
      return feed
    }
    case "change": {
      const before = feeds.get(frame.feed)
      // A difference against something that was never shown means nothing; the whole is on its way.
      if (!before) return undefined
      const after: Feed = { ...before, head: frame.head ?? before.head }
      for (const id of frame.removed ?? []) after.rows.delete(id)
      for (const row of frame.rows ?? []) after.rows.set(row.id, row)
      if (frame.details && before.details) after.details = { ...before.details, ...frame.details }
      if (frame.cells && before.cells) {
        after.cells = changedCells(before.cells, frame.cells)
        if (frame.cells.added || frame.cells.retiered) after.order++
      }
      feeds.set(frame.feed, after)
      return frame.feed
    }
    case "gone":
      feeds.delete(frame.feed)
      return frame.feed
    default:
      return undefined
  }
}

function changedCells(cells: Cells, change: CellChange): Cells {
  const after = { ...cells, counts: change.counts }
  if (change.tiers) after.tiers = change.tiers
  if (change.namespaces) after.namespaces = change.namespaces
  if (change.added)
    for (const column of ["names", "namespace", "tier", "state"] as const) {
      const target: (string | number)[] = after[column]
      for (const value of change.added[column]) target.push(value)
    }
  for (const { state, places } of change.moved ?? []) {
    let place = 0
    for (const distance of places) {
      place += distance
      after.state[place] = state
    }
  }
  for (const [place, tier] of change.retiered ?? []) after.tier[place] = tier
  return after
}

/** The frame that brings a reader, which has nothing yet, to what is known. */
export const wholeOf = (name: string, { head, rows, details, cells }: Feed): Frame => ({
  type: "whole",
  feed: name,
  head,
  rows: [...rows.values()],
  ...(details && { details }),
  ...(cells && { cells }),
})

export const listFeed = (kind: string) => `list/${kind}`
export const detailsFeed = ({ kind, namespace, name }: { kind: string; namespace: string; name: string }) =>
  `details/${kind}/${namespace}/${name}`
