import { parseInstant } from "#lib/instant.ts"
import type { Part, PhysicsWorld } from "../world.ts"
import { findCondition, isFinished } from "./conditions.ts"
import { keyOf, loop, nameOf, servedKind } from "./loop.ts"

/** Deletes finished jobs after their ttlSecondsAfterFinished. Reads and deletes Jobs. */
export function ttlController(world: PhysicsWorld): Part {
  const { storage, clock } = world
  const jobs = servedKind(storage, "batch/v1", "Job")
  return loop(world, {
    name: "ttl-after-finished-controller",
    watches: [{ apiVersion: "batch/v1", kind: "Job", keys: ({ object }) => [keyOf(object)] }],
    reconcile(key) {
      const job = storage.find(jobs, nameOf(key))
      const seconds = job?.spec.ttlSecondsAfterFinished
      if (!job || job.metadata.deletionTimestamp || seconds === undefined || !isFinished(job)) return undefined
      const { conditions } = job.status
      const end = findCondition(conditions, "Complete") ?? findCondition(conditions, "Failed")
      const left = (parseInstant(end?.lastTransitionTime) ?? clock.now()) + seconds * 1000 - clock.now()
      if (left > 0) return left
      const { uid } = job.metadata
      storage.delete(jobs, job.metadata, { propagationPolicy: "Foreground", preconditions: { uid } })
      return undefined
    },
  })
}
