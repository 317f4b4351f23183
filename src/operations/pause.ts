import type { Decided } from "./change.ts"
import { rolloutOf, type Seen } from "./rollout.ts"
import { underWay, underWayWords } from "./words.ts"

export function pause({ metadata, spec }: Seen, program: string): Decided {
  const next = (after: Seen) => whatIsNext(after, program)
  if (spec.paused) return { done: `already paused: si/${metadata.name}`, next }
  return { patch: { spec: { paused: true } }, done: `paused: si/${metadata.name}`, next }
}

/** A pause does not stop objects that were stamped already; no other starts. */
function whatIsNext(object: Seen, program: string): string {
  const rollout = rolloutOf(object)
  const onTheirWay = underWay(rollout)
  const resume = `${program} resume si/${rollout.name}`
  if (onTheirWay.length > 0)
    return `Still finishing: ${underWayWords(onTheirWay)}. Nothing else is stamped until ${resume}`
  const rest = rollout.upToDate < rollout.total ? rollout.total - rollout.upToDate : 0
  return rest > 0
    ? `No object is under way. ${rest === 1 ? "The remaining one keeps its image" : `The remaining ${rest} keep their images`} until ${resume}`
    : `No object is under way. Objects created or changed from now on wait until ${resume}`
}
