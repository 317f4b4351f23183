import type { Canary } from "#api/v1alpha1/canary/index.ts"
import type { RouteObject } from "#core/canary/router.ts"
import type { Services } from "#core/canary/services.ts"
import type { ServiceSeen, SetSeen, Sight } from "#core/canary/sight.ts"
import { isSelected, revisionHash } from "#core/canary/targets/service-revision.ts"
import type { Json } from "../facts.ts"
import type { Near } from "../world.ts"

/** What is seen of a target and of its revisions. */
export type TargetSeen = Pick<Sight, "workload" | "sets" | "trial" | "set">

/**
 * A Service as a workload: always held, because nothing but the route gives requests to what it selects anew. Each
 * revision counts as one pod, which is ready when any pod is that it selects.
 */
export function seenService(near: Near, canary: Canary, services: Partial<Services>): TargetSeen {
  const { apex } = services
  if (!apex) return { sets: [] }
  const run = canary.status?.run
  const source = services.source ?? apex
  const known = [apex, services.target].filter(each => each !== undefined)
  const target = run ? known.find(each => revisionHash(each) === run.checksum) : apex
  const { metadata } = apex as unknown as Json
  const workload: NonNullable<Sight["workload"]> = {
    name: metadata.name,
    uid: metadata.uid,
    size: 1,
    generation: revisionNumber(apex),
    isObserved: true,
    isPaused: true,
    hold: { isStanding: true },
    checksum: revisionHash(apex),
    images: [],
    revision: 0,
    updated: 1,
  }
  const set = (object: RouteObject, owner: SetSeen["owner"]): SetSeen => {
    const hash = revisionHash(object)
    const name = `${metadata.name}-${owner === "user" ? "primary" : "canary"}`
    const ready = Math.min(1, readyOf(near, object))
    return { name, owner, hash, checksum: hash, images: [], size: 1, ready, revision: 0 }
  }
  const isOther = target !== undefined && revisionHash(target) !== revisionHash(source)
  const sets = [set(source, "user"), ...(isOther ? [set(target, "trial")] : [])]
  return { workload, sets, ...(isOther && { trial: trialOf(metadata.name, revisionHash(target)) }) }
}

const trialOf = (name: string, checksum: string): NonNullable<Sight["trial"]> => ({
  ...{ name, checksum, size: 1 },
  ...{ isOurs: true, isGoing: false, isPaused: false, isPauseSeen: false },
})

/** A Service has no generation: its runs are told apart by what it selects, and by their number. */
const revisionNumber = ({ metadata }: RouteObject): number => metadata.generation ?? 0

/** What the Service of one side selects, and how many pods of that are ready behind it. */
export const sideOfService = (near: Near, object: RouteObject): ServiceSeen => ({
  hash: revisionHash(object),
  ready: { [revisionHash(object)]: readyOf(near, object) },
})

/** Endpoints that the Service had before its selector changed are not counted. */
function readyOf(near: Near, service: RouteObject): number {
  let count = 0
  for (const key of near.slices.keysBy("service", service.metadata.name))
    for (const uid of near.slices.get(key)?.ready ?? [])
      for (const each of near.pods.keysBy("uid", uid)) {
        const pod = near.pods.get(each)
        if (pod?.isReady && isSelected(service, pod.labels)) count++
      }
  return count
}
