import type { SetSeen } from "#core/canary/sight.ts"
import type { KubeObject } from "#runtime/resource.ts"
import { type PodSeen, readSet } from "./facts.ts"
import type { KeptWorkload } from "./kept.ts"
import type { Near } from "./world.ts"

export const podsOf = (near: Near, set: KubeObject): readonly PodSeen[] =>
  [...near.pods.keysBy("owner", set.metadata.uid ?? "")].flatMap(key => near.pods.get(key) ?? [])

/** The ReplicaSets of two Deployments: the one that its owner has, and the one that is judged. */
export function setsOf(near: Near, workload: KeptWorkload | undefined, trial: KeptWorkload | undefined) {
  const setObjects = new Map<string, KeptWorkload>()
  const sets: SetSeen[] = []
  for (const [owner, by] of [
    ["user", workload],
    ["trial", trial],
  ] as const) {
    if (!by) continue
    for (const key of near.sets.keysBy("owner", by.metadata.uid ?? "")) {
      const object = near.sets.get(key)?.object
      if (!object || object.metadata.deletionTimestamp) continue
      setObjects.set(object.metadata.name, object)
      sets.push(readSet(object, owner, podsOf(near, object).filter(({ isReady }) => isReady).length))
    }
  }
  sets.sort((a, b) => (a.name < b.name ? -1 : 1))
  return { sets, setObjects }
}
