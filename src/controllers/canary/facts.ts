import { checksumOf } from "#core/canary/checksum.ts"
import { canaryHolder } from "#core/canary/hold.ts"
import type { SetSeen, TroubleSeen } from "#core/canary/sight.ts"
import { parseHold } from "#core/in-place/marks.ts"
import { heldMark, strategyAnnotation } from "#core/in-place/names.ts"
import { hashLabel, imagesOf, type PodTemplate } from "#core/in-place/template.ts"
import { controllerOf, type PodTrouble, readPod as readTrouble } from "#core/pods/pod-facts.ts"
import type { KubeObject } from "#runtime/resource.ts"

// biome-ignore lint/suspicious/noExplicitAny: what the server sends
export type Json = Record<string, any>

const revisionKey = "deployment.kubernetes.io/revision"

const checksums = new WeakMap<object, string>()

/** Templates change rarely, and a look compares many. */
export function checksumIn(object: KubeObject): string {
  const known = checksums.get(object)
  if (known !== undefined) return known
  const made = checksumOf((object as Json).spec.template as PodTemplate)
  checksums.set(object, made)
  return made
}

export const imagesIn = (object: KubeObject): readonly string[] =>
  [...imagesOf((object as Json).spec.template).values()].slice(0, 8)

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
}

export function readPod(object: KubeObject): PodSeen {
  const { resourceVersion, owner, trouble, isFinished, isTerminating } = readTrouble(object)
  const { metadata, status = {} } = object as Json
  const conditions: Json[] = status.conditions ?? []
  const isReady = conditions.some(({ type, status: is }) => type === "Ready" && is === "True")
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

export function readSet(object: KubeObject, owner: SetSeen["owner"], ready: number): SetSeen {
  const { spec } = object as Json
  return {
    name: object.metadata.name,
    owner,
    hash: hashIn(object),
    checksum: checksumIn(object),
    images: imagesIn(object),
    size: spec.replicas ?? 1,
    ready,
    revision: revisionIn(object),
  }
}

/** Our marks, and whether another part of aim has the workload. */
export function readMarks({ metadata }: KubeObject) {
  const annotation = metadata.annotations?.[heldMark]
  const hold = parseHold(annotation)
  const label = metadata.labels?.[heldMark]
  // A release takes the annotation first and the label last: a label alone is what is left of one.
  const isOurs = label === canaryHolder && (annotation === undefined || hold?.by === canaryHolder)
  const strategy = metadata.annotations?.[strategyAnnotation]
  const isInPlace = strategy === "InPlaceIfPossible" || strategy === "InPlaceOnly"
  const other = label !== undefined && !isOurs ? label : isInPlace ? `its annotation ${strategyAnnotation}` : undefined
  return {
    hold: isOurs ? { isStanding: hold?.isStanding === true } : undefined,
    otherHolder: other,
  }
}
