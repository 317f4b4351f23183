import type { Instant } from "#lib/instant.ts"

/** An image that could be pulled now. */
export type Candidate = {
  readonly id: string
  /** The namespace of the job that wants it; "" for an entry that was made by hand. */
  readonly namespace: string
  readonly priority: number
  readonly askedAt: Instant
}

/**
 * Which images a node pulls next, of those that could be. Namespaces take turns: the one with the fewest pulls under
 * way is next. Within a namespace the highest priority goes first, then the oldest.
 */
export function nextPulls<C extends Candidate>(
  candidates: readonly C[],
  inFlight: readonly Pick<Candidate, "namespace">[],
  most: number,
): C[] {
  const busy = new Map<string, number>()
  for (const { namespace } of inFlight) busy.set(namespace, (busy.get(namespace) ?? 0) + 1)
  const left = [...candidates].sort((a, b) => b.priority - a.priority || a.askedAt - b.askedAt || compare(a.id, b.id))
  const chosen: C[] = []
  while (left.length > 0 && inFlight.length + chosen.length < most) {
    const load = ({ namespace }: C) => busy.get(namespace) ?? 0
    const next = left.reduce((first, each) => (load(each) < load(first) ? each : first))
    left.splice(left.indexOf(next), 1)
    busy.set(next.namespace, load(next) + 1)
    chosen.push(next)
  }
  return chosen
}

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0)
