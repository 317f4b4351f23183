import { ownUnavailable } from "#core/in-place/budget.ts"
import { holdKinds } from "#core/in-place/hold.ts"
import type { Hold } from "#core/in-place/marks.ts"
import { isSameTemplate } from "#core/in-place/template.ts"
import { controllerRevisions } from "#runtime/resource.ts"
import type { Json } from "../facts.ts"
import type { Adapter } from "../kind.ts"
import { daemonSets } from "../resources.ts"
import { type HeldSet, readSet, readSetRevision, type SetRevision } from "./facts.ts"
import { nativeOf, type SetKind } from "./native.ts"

const newest = (revisions: Iterable<SetRevision>): SetRevision | undefined =>
  [...revisions].sort((a, b) => b.number - a.number)[0]

const kind: SetKind = {
  kind: "DaemonSet",
  shortName: "ds",
  keyOf: ({ hash }) => hash,
  wanted: (_, same) => newest(same),
  before({ template }, _, used) {
    return newest([...used].filter(revision => !isSameTemplate(revision.template, template)))?.template
  },
  countsEnding: true,
  isSettled: () => true,
}

/** Held by OnDelete. Pods that are made while it is held are of the new template. */
export const daemonSet: Adapter<HeldSet, SetRevision> = {
  resource: daemonSets,
  revisions: controllerRevisions,
  read(object) {
    const { spec, status = {} } = object as Json
    const common = readSet(object, "DaemonSet")
    const replicas = status.desiredNumberScheduled ?? 0
    return {
      ...common,
      isInForce: holdKinds.DaemonSet.isInForce(spec),
      replicas,
      maxUnavailable: ownUnavailable("DaemonSet", { rollingUpdate: blockOf(spec, common.hold) }, replicas),
      status: {
        pods: status.currentNumberScheduled ?? 0,
        updated: status.updatedNumberScheduled ?? 0,
        strays: status.numberMisscheduled ?? 0,
        update: "",
        current: "",
      },
    }
  },
  readRevision: object => readSetRevision(object, "DaemonSet"),
  podOwners: ({ uid }) => [uid],
  workloadOf: podOwner => podOwner,
  native: (workload, revisions, pods, ending) => nativeOf(kind, workload, revisions, pods, ending),
  releasedSpec: ({ isInForce, hold, updateStrategy }) =>
    isInForce ? holdKinds.DaemonSet.released(hold, { updateStrategy }) : {},
}

/** OnDelete has no need of the block, and a write may leave it out: then what was there before the hold counts. */
const blockOf = ({ updateStrategy }: Json, hold: Hold | undefined): Json | null | undefined =>
  updateStrategy?.rollingUpdate ?? hold?.original?.rollingUpdate
