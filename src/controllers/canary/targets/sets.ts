import type { Canary } from "#api/v1alpha1/canary/index.ts"
import type { SetPod, SetSeen, Sight } from "#core/canary/sight.ts"
import { ownUnavailable } from "#core/in-place/budget.ts"
import { parseHold } from "#core/in-place/marks.ts"
import { everyOrdinal, heldMark, revisionLabel } from "#core/in-place/names.ts"
import { type KubeObject, nameOf } from "#runtime/resource.ts"
import { type Json, type PodSeen, readMarks, troubleIn } from "../facts.ts"
import type { KeptRevision, KeptWorkload } from "../kept.ts"
import type { Near } from "../world.ts"
import type { TargetSeen } from "./service.ts"

export type SetTargetSeen = TargetSeen & {
  readonly object?: KeptWorkload | undefined
  /** ControllerRevisions by name. */
  readonly revisions: ReadonlyMap<string, KeptRevision>
  readonly trouble?: ReturnType<typeof troubleIn>
}

type Kind = "StatefulSet" | "DaemonSet"

/** A StatefulSet or a DaemonSet: each ControllerRevision with the pods that have its label. */
export function seenSet(near: Near, canary: Canary, key: string): SetTargetSeen {
  const kind = canary.spec.targetRef.kind as Kind
  const object = near.workloads.get(kind)?.get(key)?.object as KeptWorkload | undefined
  if (!object) return { sets: [], revisions: new Map() }
  const { run, phase } = canary.status ?? {}
  const owned = [...near.pods.keysBy("owner", object.metadata.uid ?? "")].flatMap(each => {
    const pod = near.pods.get(each)
    return pod ? [{ name: nameOf(each).name, pod }] : []
  })
  const pods = owned.filter(({ pod }) => !pod.isFinished).map(({ name, pod }) => podOf(name, pod))
  const revisions = revisionsOf(near, object)
  const workload = workloadOf(kind, object, phase)
  const isTurned = run !== undefined && run.target.hash !== "" && sourceHash(near, canary) === run.target.hash
  const sets = [...revisions.values()].map((revision): SetSeen => {
    const { facts } = revision.template
    const hash = kind === "StatefulSet" ? revision.metadata.name : (revision.metadata.labels?.[revisionLabel] ?? "")
    const own = pods.filter(each => each.hash === hash && !each.isGoing)
    const isTested =
      workload.hold !== undefined &&
      run !== undefined &&
      facts.checksum === run.checksum &&
      hash !== run.source.hash &&
      !isTurned
    return {
      name: revision.metadata.name,
      owner: isTested ? "trial" : "user",
      hash,
      ...facts,
      size: own.length,
      ready: own.filter(({ isReady }) => isReady).length,
      revision: revision.revision,
    }
  })
  const set = stateOf(kind, object, pods)
  const tested = run && sets.find(({ owner }) => owner === "trial")
  const there = tested ? pods.filter(({ hash }) => hash === tested.hash).length : 0
  // Those that its controller is about to make count as well.
  const placed = kind === "StatefulSet" ? Math.max(0, workload.size - set.partition) : 0
  const size = Math.max(tested?.size ?? 0, placed)
  const troubled = tested && owned.filter(({ pod }) => pod.labels[revisionLabel] === tested.hash).map(({ pod }) => pod)
  return {
    object,
    revisions,
    workload,
    sets: sets.sort((a, b) => (a.name < b.name ? -1 : 1)),
    set,
    ...(tested && (there > 0 || size > 0) && { trial: trialOf(object.metadata.name, tested.checksum, size) }),
    ...(troubled && { trouble: troubleIn(troubled, undefined) }),
  }
}

const podOf = (name: string, pod: PodSeen): SetPod => ({
  name,
  hash: pod.labels[revisionLabel] ?? "",
  ordinal: Number(/-(\d+)$/.exec(name)?.[1] ?? 0),
  isReady: pod.isReady,
  isGoing: pod.isTerminating,
})

function revisionsOf(near: Near, { metadata }: KubeObject): ReadonlyMap<string, KeptRevision> {
  const cache = near.workloads.get("ControllerRevision")
  const keys = cache ? [...cache.keysBy("owner", metadata.uid ?? "")] : []
  const found = keys.flatMap(each => (cache?.get(each)?.object as KeptRevision | undefined) ?? [])
  return new Map(found.filter(each => !each.metadata.deletionTimestamp).map(each => [each.metadata.name, each]))
}

function sourceHash(near: Near, canary: Canary): string | undefined {
  const name = `${canary.spec.service?.name || canary.spec.targetRef.name}-primary`
  const service = near.services.get(`${canary.metadata.namespace}/${name}`)?.object as Json | undefined
  return service?.spec?.selector?.[revisionLabel]
}

function workloadOf(kind: Kind, object: KeptWorkload, phase: string | undefined): NonNullable<Sight["workload"]> {
  const { metadata, spec, status } = object as Json
  const marks = readMarks(object)
  const { type = "RollingUpdate", rollingUpdate } = spec.updateStrategy ?? {}
  // The last pod is replaced with no partition left: only a promotion gets there by itself.
  const isPartitioned = type === "RollingUpdate" && ((rollingUpdate?.partition ?? 0) > 0 || phase === "Finalising")
  const isStopped = kind === "StatefulSet" ? isPartitioned : type === "OnDelete"
  return {
    name: metadata.name,
    uid: metadata.uid,
    size: kind === "StatefulSet" ? (spec.replicas ?? 1) : (status.desiredNumberScheduled ?? 0),
    generation: metadata.generation ?? 0,
    isObserved: (status.observedGeneration ?? 0) >= (metadata.generation ?? 0),
    isPaused: marks.hold !== undefined && isStopped,
    ...marks,
    ...object.template.facts,
    revision: 0,
    updated: (kind === "StatefulSet" ? status.updatedReplicas : status.updatedNumberScheduled) ?? 0,
  }
}

function stateOf(kind: Kind, object: KeptWorkload, pods: readonly SetPod[]): NonNullable<Sight["set"]> {
  const { metadata, spec, status } = object as Json
  const { rollingUpdate } = spec.updateStrategy ?? {}
  const original = parseHold(metadata.annotations?.[heldMark])?.original?.rollingUpdate
  const size = kind === "StatefulSet" ? (spec.replicas ?? 1) : (status.desiredNumberScheduled ?? 0)
  const own = ownUnavailable(kind, { rollingUpdate: rollingUpdate ?? original }, size)
  const { updateRevision, currentRevision } = status
  return {
    start: spec.ordinals?.start ?? 0,
    partition: rollingUpdate?.partition ?? (spec.updateStrategy?.type === "OnDelete" ? everyOrdinal : 0),
    maxUnavailable: Math.max(1, own),
    pods: pods.toSorted((a, b) => (a.name < b.name ? -1 : 1)),
    isSettled:
      kind === "StatefulSet"
        ? updateRevision === currentRevision && (status.updatedReplicas ?? 0) === size && status.replicas === size
        : (status.updatedNumberScheduled ?? 0) === size,
  }
}

const trialOf = (name: string, checksum: string, size: number): NonNullable<Sight["trial"]> => ({
  ...{ name, checksum, size },
  ...{ isOurs: true, isGoing: false, isPaused: false, isPauseSeen: false },
})
