/** The pods of one revision: how many are wanted, and how many are ready behind the Service that the route names. */
export type Side = { readonly size: number; readonly ready: number }

export type Route = {
  /** The share of requests that go to the target, in percent. */
  readonly weight: number
  readonly isMirrored: boolean
  /** What serves the route has taken it over as it is written. */
  readonly isAccepted: boolean
  /** Requests pass to our backends in stages, and the last is not written yet. */
  readonly isUnderWay?: boolean | undefined
}

/** How things are: the source answers, the target is to replace it. */
export type Arranged = { readonly source: Side; readonly target: Side; readonly route: Route }

/** How they are to be. A target of no pods is taken away. */
export type Wanted = { readonly weight: number; readonly isMirrored: boolean; readonly targetSize: number }

/** The shares of pods that must be ready before a side may answer, in percent. */
export type ReadyShares = { readonly source: number; readonly target: number }

export type Move =
  | { readonly do: "scale"; readonly targetSize: number }
  | { readonly do: "route"; readonly weight: number; readonly isMirrored: boolean }
  | { readonly wait: "TargetNotReady" | "SourceNotReady" | "RouteNotAccepted" }
  | "done"

/**
 * The next move from how things are to how they are to be. A run, an abort, a promotion and a deletion differ in what
 * they want and in nothing else; the order that keeps requests answered stands here, once:
 *
 * - A side answers requests, or copies of them, only when enough of its pods are ready.
 * - The target grows before its share does, and its share falls before it shrinks.
 */
export function nextMove({ source, target, route }: Arranged, wanted: Wanted, shares: ReadyShares): Move {
  if (route.isUnderWay && !route.isAccepted) return { wait: "RouteNotAccepted" }
  const isRouted = !route.isUnderWay && route.weight === wanted.weight && route.isMirrored === wanted.isMirrored
  if (isRouted) {
    if (target.size < wanted.targetSize) return { do: "scale", targetSize: wanted.targetSize }
    if (!route.isAccepted) return { wait: "RouteNotAccepted" }
    if (target.size > wanted.targetSize) return { do: "scale", targetSize: wanted.targetSize }
    return wanted.targetSize > 0 && !isReady(target, shares.target) ? { wait: "TargetNotReady" } : "done"
  }
  // One move may do both: where copies replace a share, the target gets more and the source does too.
  const targetGetsMore = wanted.weight > route.weight || (wanted.isMirrored && !route.isMirrored)
  if (targetGetsMore && target.size < wanted.targetSize) return { do: "scale", targetSize: wanted.targetSize }
  if (targetGetsMore && !isReady(target, shares.target)) return { wait: "TargetNotReady" }
  const sourceGetsMore = wanted.weight < route.weight
  if (sourceGetsMore && !mayFallBack(source, target, shares)) return { wait: "SourceNotReady" }
  return { do: "route", weight: wanted.weight, isMirrored: wanted.isMirrored }
}

/** As many as the share asks for, and at least one: a revision without pods answers nothing. */
const isReady = ({ size, ready }: Side, share: number) => ready >= Math.max(1, Math.floor((size * share) / 100))

/** With enough pods, or with any pod where the target has none. */
const mayFallBack = (source: Side, target: Side, shares: ReadyShares) =>
  isReady(source, shares.source) || (source.ready > 0 && target.ready === 0)
