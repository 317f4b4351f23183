import { type PodSpec, snapshotsIn } from "#core/canary/config-refs.ts"
import { canaryHolder } from "#core/canary/hold.ts"
import type { SetSeen, TroubleSeen } from "#core/canary/sight.ts"
import { parseHold } from "#core/in-place/marks.ts"
import { heldMark, strategyAnnotation } from "#core/in-place/names.ts"
import { hashLabel } from "#core/in-place/template.ts"
import { controllerOf, type PodTrouble, readPod as readTrouble } from "#core/pods/pod-facts.ts"
import { Interner } from "#lib/interner.ts"
import type { KubeObject } from "#runtime/resource.ts"
import { type KeptWorkload, revisionKey } from "./kept.ts"

// biome-ignore lint/suspicious/noExplicitAny: what the server sends
export type Json = Record<string, any>

export const revisionIn = ({ metadata }: KubeObject): number => Number(metadata.annotations?.[revisionKey] ?? 0) || 0

/** A pod, reduced to what a run reads of it. */
export type PodSeen = {
  readonly resourceVersion: string
  readonly owner: string
  readonly uid: string
  /** The revision that it is of. */
  readonly hash: string
  readonly labels: Readonly<Record<string, string>>
  readonly isReady: boolean
  readonly isTerminating: boolean
  readonly isFinished: boolean
  readonly trouble: PodTrouble | undefined
  readonly restarts: number
  /** ConfigMaps by name. */
  readonly snapshots: readonly string[]
}

const noNames: readonly string[] = []

/** Enough for pods that follow each other in a list: these have the most in common. */
const sharedMax = 4096

/** Reads pods for a cache. The labels of a revision and its uid are kept once for all of its pods: they are half of a pod. */
export function podReader(): (object: KubeObject) => PodSeen {
  const revisions = new Interner<Pick<PodSeen, "owner" | "hash" | "labels">>(sharedMax)
  return object => {
    const pod = readPod(object)
    const { owner, hash, labels } = pod
    return { ...pod, ...revisions.share(JSON.stringify([owner, labels]), { owner, hash, labels }) }
  }
}

function readPod(object: KubeObject): PodSeen {
  const { resourceVersion, owner, trouble, isFinished, isTerminating } = readTrouble(object)
  const { metadata, status = {} } = object as Json
  const conditions: Json[] = status.conditions ?? []
  const isReady = conditions.some(({ type, status: is }) => type === "Ready" && is === "True")
  const snapshots = snapshotsIn(((object as Json).spec ?? {}) as PodSpec)
  const restarts = (status.containerStatuses ?? []).map(({ restartCount = 0 }: Json) => restartCount as number)
  return {
    resourceVersion,
    owner,
    uid: metadata.uid,
    hash: metadata.labels?.[hashLabel] ?? "",
    labels: metadata.labels ?? {},
    isReady: isReady && !isTerminating && !isFinished,
    isTerminating,
    isFinished,
    trouble: isTerminating ? undefined : trouble,
    restarts: Math.max(0, ...restarts),
    snapshots: snapshots.length > 0 ? snapshots : noNames,
  }
}

/** As often must a container end before it is a loop, and not a start that needed another try. */
const crashes = 2

/** What is wrong with the pods of a revision: what does not pass by itself comes first. */
export function troubleIn(pods: readonly PodSeen[], set: KubeObject | undefined): TroubleSeen | undefined {
  const found = pods.flatMap(({ trouble, restarts }): TroubleSeen[] => {
    if (!trouble) return []
    const { reason, message, isTentative } = trouble
    if (reason === "ImagePullFailed") return [{ reason: "ImageUnavailable", message, isFatal: false }]
    if (reason === "Unschedulable") return [{ reason, message, isFatal: false }]
    return isTentative
      ? [{ reason: "Unhealthy", message, isFatal: false }]
      : [{ reason: "CrashLoop", message, isFatal: restarts >= crashes }]
  })
  const conditions: Json[] = (set as Json | undefined)?.status?.conditions ?? []
  const refused = conditions.find(({ type, status }) => type === "ReplicaFailure" && status === "True")
  if (refused && /exceeded quota/.test(refused.message ?? ""))
    found.push({ reason: "QuotaExceeded", message: refused.message, isFatal: false })
  return found.find(({ isFatal }) => isFatal) ?? found[0]
}

export type SliceSeen = {
  readonly resourceVersion: string
  readonly service: string
  readonly ready: readonly string[]
}

export function readSlice({ metadata, ...rest }: KubeObject): SliceSeen {
  const endpoints: Json[] = (rest as Json).endpoints ?? []
  const isReady = ({ conditions = {} }: Json) => conditions.ready !== false && conditions.terminating !== true
  return {
    resourceVersion: metadata.resourceVersion ?? "",
    service: metadata.labels?.["kubernetes.io/service-name"] ?? "",
    ready: endpoints.filter(isReady).flatMap(({ targetRef }) => (targetRef?.uid ? [targetRef.uid as string] : [])),
  }
}

export const ownerUid = ({ metadata }: KubeObject): string => controllerOf(metadata)

const hashIn = (object: KubeObject): string => String(object.metadata.labels?.[hashLabel] ?? "")

export const readSet = (object: KeptWorkload, owner: SetSeen["owner"], ready: number): SetSeen => ({
  name: object.metadata.name,
  owner,
  hash: hashIn(object),
  ...object.template.facts,
  size: object.spec.replicas ?? 1,
  ready,
  revision: revisionIn(object),
})

/** Our marks, and in which way another part of aim has the workload. */
export function readMarks({ metadata }: KubeObject) {
  const annotation = metadata.annotations?.[heldMark]
  const hold = parseHold(annotation)
  const label = metadata.labels?.[heldMark]
  // A release takes the annotation first and the label last: a label alone is what is left of one.
  const isOurs = label === canaryHolder && (annotation === undefined || hold?.by === canaryHolder)
  const strategy = metadata.annotations?.[strategyAnnotation]
  const isInPlace = strategy === "InPlaceIfPossible" || strategy === "InPlaceOnly"
  const other =
    label !== undefined && !isOurs
      ? `${label} holds it: wait for that, or end it with aim release`
      : isInPlace
        ? `its annotation ${strategyAnnotation} asks for updates in place: remove the annotation, or delete the Canary`
        : undefined
  return {
    hold: isOurs ? { isStanding: hold?.isStanding === true } : undefined,
    otherHolder: other,
  }
}
