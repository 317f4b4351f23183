/** Which revisions the Services of both sides select, and how the requests are divided between them. */
export type Sides = {
  readonly source: { readonly hash: string; readonly ready: Readonly<Record<string, number>> }
  readonly target: { readonly hash: string; readonly ready: Readonly<Record<string, number>> }
  readonly weight: number
  readonly isAccepted: boolean
}

export type Turn =
  | { readonly do: "turn"; readonly side: "source" | "target"; readonly hash: string }
  | { readonly do: "route"; readonly weight: number; readonly isMirrored: boolean }
  | { readonly wait: "NotReady" | "RouteNotAccepted" }
  | "done"

/**
 * The next move on the way to one state: the Service of the source selects `goal`, and has all requests. What divides the
 * requests sees Services and route by separate watches. So only the Service of a side without requests turns, its
 * endpoints of the new revision are awaited, and then the weight changes.
 *
 *   the tested revision becomes the source:   weight 100 → source turns → ready → weight 0
 *   back to the revision before, after that:  weight 0 → target turns → ready → weight 100 → source turns → …
 */
export function nextTurn({ source, target, weight, isAccepted }: Sides, goal: string, least: number): Turn {
  const isReady = (side: Sides["source"]) => (side.ready[goal] ?? 0) >= least
  if (source.hash === goal) {
    if (weight === 0) return isAccepted ? "done" : { wait: "RouteNotAccepted" }
    return isReady(source) ? { do: "route", weight: 0, isMirrored: false } : { wait: "NotReady" }
  }
  if (weight === 100) {
    if (!isAccepted) return { wait: "RouteNotAccepted" }
    return { do: "turn", side: "source", hash: goal }
  }
  if (target.hash !== goal)
    // Both have requests, and neither is of the revision that is to have all.
    return weight > 0 ? { do: "route", weight: 0, isMirrored: false } : { do: "turn", side: "target", hash: goal }
  return isReady(target) ? { do: "route", weight: 100, isMirrored: false } : { wait: "NotReady" }
}
