import { ownUnavailable } from "#core/in-place/budget.ts"
import { holdKinds } from "#core/in-place/hold.ts"
import { controllerRevisions } from "#runtime/resource.ts"
import type { Json } from "../facts.ts"
import type { Adapter } from "../kind.ts"
import { statefulSets } from "../resources.ts"
import { type HeldSet, readSet, readSetRevision, type SetRevision } from "./facts.ts"
import { nativeOf, type SetKind } from "./native.ts"

const kind: SetKind = {
  kind: "StatefulSet",
  shortName: "sts",
  keyOf: ({ name }) => name,
  wanted: ({ status }, same) => same.find(({ name }) => name === status.update),
  before: ({ status }, revisions) => revisions.find(({ name }) => name === status.current)?.template,
  countsEnding: false,
  // Until then, a pod that is lost comes back from the template before.
  isSettled: ({ status }) => status.current === status.update,
}

/** Held by a partition above every ordinal, and updated from the highest ordinal. */
export const statefulSet: Adapter<HeldSet, SetRevision> = {
  resource: statefulSets,
  revisions: controllerRevisions,
  read(object) {
    const { spec, status = {} } = object as Json
    const replicas = spec.replicas ?? 1
    return {
      ...readSet(object, "StatefulSet"),
      isInForce: holdKinds.StatefulSet.isInForce(spec),
      replicas,
      maxUnavailable: ownUnavailable("StatefulSet", spec.updateStrategy, replicas),
      ordinals: { isStrict: spec.podManagementPolicy !== "Parallel" },
      status: {
        pods: status.replicas ?? 0,
        updated: status.updatedReplicas ?? 0,
        strays: 0,
        update: status.updateRevision ?? "",
        current: status.currentRevision ?? "",
      },
    }
  },
  readRevision: object => readSetRevision(object, "StatefulSet"),
  podOwners: ({ uid }) => [uid],
  workloadOf: podOwner => podOwner,
  native: (workload, revisions, pods, ending) => nativeOf(kind, workload, revisions, pods, ending),
  releasedSpec: ({ isInForce, hold, updateStrategy }) =>
    isInForce ? holdKinds.StatefulSet.released(hold, { updateStrategy }) : {},
}
