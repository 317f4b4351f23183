import { everyOrdinal } from "../../in-place/names.ts"
import type { SetPod } from "../sight.ts"
import { isAllNew, nextToGo, podsOf, releasedSet } from "./shared.ts"
import type { Step, Target } from "./target.ts"

const partitioned = (at: number, message: string): Step => ({ act: { do: "partition", at }, message })
const held = "no other pod becomes one of the new revision"

const byOrdinal = (pods: readonly SetPod[]) => pods.toSorted((a, b) => a.ordinal - b.ordinal)

/**
 * A StatefulSet by its partition: as it falls, its own controller makes pods of the new revision from the highest ordinal
 * down. Once they are ready the partition rises again, above every ordinal, and they stay; so a change of the template
 * during a run replaces none of them. A pod that is deleted under such a partition comes back as the revision that its
 * controller calls current, whatever the template says. So a failed run deletes its pods one by one, and the template
 * waits as it was written.
 */
export const statefulSetTarget: Target = {
  resized(sight, run, size) {
    const { partition } = sight.set!
    const there = byOrdinal(podsOf(sight, run.target.hash)).filter(({ isGoing }) => !isGoing)
    const message = `the new revision gets ${size} of ${run.sizes.full} pods`
    if (there.length > size)
      return partition === everyOrdinal ? nextToGo(sight, there, message) : partitioned(everyOrdinal, held)
    const at = sight.workload!.size - size
    return partition === at ? "done" : partitioned(at, message)
  },
  settled(sight, run) {
    const { set, workload } = sight
    if (set!.partition === everyOrdinal || !workload!.isObserved) return "done"
    const due = set!.pods.filter(({ ordinal }) => ordinal - set!.start >= set!.partition)
    const isMade = due.every(({ hash, isReady, isGoing }) => hash === run.target.hash && isReady && !isGoing)
    return isMade && due.length === workload!.size - set!.partition ? partitioned(everyOrdinal, held) : "done"
  },
  emptied(sight, run) {
    const { workload, set } = sight
    if (!workload?.isPaused || !set) return "done"
    if (set.partition !== everyOrdinal) return partitioned(everyOrdinal, held)
    const left = byOrdinal(podsOf(sight, run.target.hash)).toReversed()
    if (left.length === 0) return "done"
    if (!workload.isObserved) return { wait: "the StatefulSet controller has not seen the partition yet" }
    return nextToGo(sight, left, "pods of the new revision go back")
  },
  handedOver(sight, run) {
    const { workload, set } = sight
    if (!workload!.isPaused || !workload!.hold) return "done"
    const isStanding = set!.partition === everyOrdinal
    // Its template changed since: its controller can make no pod of this revision any more, and the next run follows.
    if (workload!.checksum !== run.checksum) return isStanding ? "done" : partitioned(everyOrdinal, held)
    if (!isAllNew(sight, run)) {
      if (set!.partition === 0) return { wait: "the last pod is being replaced" }
      return partitioned(0, "the last pod of the revision before is replaced")
    }
    if (!workload!.hold.isStanding) return { act: { do: "release" }, message: "its controller has the workload again" }
    return isStanding ? "done" : partitioned(everyOrdinal, "the workload is held for the next change")
  },
  released: releasedSet,
}
