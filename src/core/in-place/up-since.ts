import type { Instant } from "#lib/instant.ts"
import type { PodFacts } from "./pod.ts"
import { isUp } from "./standing.ts"

/** Since when each pod, by uid, has been seen up with the same containers. */
export type UpSince = ReadonlyMap<string, { readonly containers: string; readonly since: Instant }>

/**
 * Since when each pod, by uid, has been seen drained. The time on its condition is older: it was taken before the write
 * was sent, perhaps by another machine, and a write may be sent again.
 */
export const drainedSinceOf = (
  pods: readonly PodFacts[],
  before: ReadonlyMap<string, Instant>,
  now: Instant,
): ReadonlyMap<string, Instant> =>
  new Map(pods.flatMap(({ uid, gate }) => (gate?.isDrained ? [[uid, before.get(uid) ?? now]] : [])))

/** A replaced container may be ready again before any report shows that it was not: its ID begins a new time. */
export function upSinceOf(pods: readonly PodFacts[], before: UpSince, now: Instant): UpSince {
  return new Map(
    pods.filter(isUp).map(pod => {
      const containers = [...pod.containers.values()].map(({ id }) => id).join()
      const known = before.get(pod.uid)
      return [pod.uid, known?.containers === containers ? known : { containers, since: now }]
    }),
  )
}
