import type { SetPod, Sight } from "../sight.ts"
import { isAllNew, nextToGo, podsOf, releasedSet } from "./shared.ts"
import type { Target } from "./target.ts"

/** Pods of a run that was given up go before those of the revision that answers. */
function others(sight: Sight, target: string, source: string): readonly SetPod[] {
  const rank = ({ hash }: SetPod) => (hash === source ? 1 : 0)
  return sight
    .set!.pods.filter(({ hash }) => hash !== target)
    .toSorted((a, b) => rank(a) - rank(b) || (a.name < b.name ? -1 : 1))
}

const notSeen = { wait: "the DaemonSet controller has not seen the template yet" } as const

/**
 * A DaemonSet by OnDelete: its controller replaces nothing by itself, and a pod that is deleted comes back as the template
 * says. So the run deletes pods, node by node, and a failed one writes the running template back first.
 */
export const daemonSetTarget: Target = {
  resized(sight, run, size) {
    const { workload } = sight
    if (podsOf(sight, run.target.hash).length >= size) return "done"
    // Without its revision, a pod that is of it already looks like one that has to go.
    if (!workload!.isObserved || run.target.hash === "") return notSeen
    const message = `the new revision gets ${size} of ${run.sizes.full} pods`
    return nextToGo(sight, others(sight, run.target.hash, run.source.hash), message)
  },
  emptied(sight, run) {
    const { workload, set, sets } = sight
    if (!workload?.isPaused || !set) return "done"
    const source = sets.find(({ hash }) => hash === run.source.hash)
    if (!source) return "done"
    if (workload.checksum !== source.checksum) {
      // Its owner has written another template: the next run replaces these pods, and they answer nothing until then.
      if (workload.checksum !== run.checksum) return "done"
      return {
        act: { do: "writeBack", set: source.name },
        message: "the template of the running revision is written back",
      }
    }
    const left = podsOf(sight, run.target.hash)
    if (left.length === 0) return "done"
    return workload.isObserved ? nextToGo(sight, left, "pods of the new revision go back") : notSeen
  },
  handedOver(sight, run) {
    const { workload } = sight
    if (!workload!.isPaused || !workload!.hold || workload!.checksum !== run.checksum) return "done"
    const left = others(sight, run.target.hash, run.source.hash)
    if (left.length > 0) return nextToGo(sight, left, "the last pods of the revision before are replaced")
    if (!isAllNew(sight, run)) return { wait: "the last pods are being replaced" }
    if (workload!.hold.isStanding) return "done"
    return { act: { do: "release" }, message: "the workload is given back to its controller" }
  },
  released: releasedSet,
}
