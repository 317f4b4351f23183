import type { ImagePullJob } from "#api/v1alpha1/imagepulljob/index.ts"
import { type Hold, parseHold, parseNote, type WorkloadNote } from "#core/in-place/marks.ts"
import { heldMark, inPlaceAnnotation } from "#core/in-place/names.ts"
import { podsOf } from "#core/in-place/settings.ts"
import type { PodTemplate } from "#core/in-place/template.ts"
import type { LabelSelector } from "#lib/label-selector.ts"

/** A held Deployment. */
export type Workload = {
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly resourceVersion: string
  readonly annotations: Readonly<Record<string, string>>
  readonly isPaused: boolean
  /** Its controller has seen this very version, and with it the hold. */
  readonly isObserved: boolean
  readonly replicas: number
  readonly selector: LabelSelector
  readonly template: PodTemplate
  readonly minReadySeconds: number
  readonly deadlineSeconds: number
  readonly keepsHistory: boolean
  /** What its own strategy allows, as a number of pods. */
  readonly maxUnavailable: number
  readonly hold: Hold | undefined
  readonly note: WorkloadNote | undefined
}

/** A ReplicaSet of a Deployment. */
export type Revision = {
  readonly resourceVersion: string
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly owner: { readonly uid: string; readonly name: string }
  readonly replicas: number
  readonly running: number
  readonly template: PodTemplate
  readonly annotations: Readonly<Record<string, string>>
  readonly number: string
  readonly generation: number
  /** What the Deployment controller has copied to it when it took it for current. */
  readonly note: WorkloadNote | undefined
  readonly isObserved: boolean
}

/** An ImagePullJob of a Deployment. */
export type Job = {
  readonly resourceVersion: string
  readonly name: string
  readonly uid: string
  readonly owner: { readonly uid: string; readonly name: string }
  readonly image: string
  /** What keeps it from asking nodes at all, such as a missing Secret. */
  readonly trouble: string
}

// biome-ignore lint/suspicious/noExplicitAny: what the server sends
type Json = Record<string, any>

export const revisionKey = "deployment.kubernetes.io/revision"

export function readWorkload({ metadata, spec, status }: Json): Workload {
  const annotations = metadata.annotations ?? {}
  const replicas = spec.replicas ?? 1
  return {
    namespace: metadata.namespace,
    name: metadata.name,
    uid: metadata.uid,
    resourceVersion: metadata.resourceVersion,
    annotations,
    isPaused: spec.paused === true,
    isObserved: (status?.observedGeneration ?? 0) >= (metadata.generation ?? 0),
    replicas,
    selector: spec.selector,
    template: spec.template,
    minReadySeconds: spec.minReadySeconds ?? 0,
    deadlineSeconds: Math.min(spec.progressDeadlineSeconds ?? 600, 86_400),
    keepsHistory: spec.revisionHistoryLimit !== 0,
    maxUnavailable: unavailableOf(spec.strategy, replicas),
    hold: parseHold(annotations[heldMark]),
    note: parseNote(annotations[inPlaceAnnotation]),
  }
}

/**
 * As the Deployment controller counts, but a share is at least one pod: the controller can make a pod first where the
 * share rounds to none, and in place there is none to make. A single pod is not stopped without being asked for.
 */
function unavailableOf(strategy: Json | undefined, replicas: number): number {
  if (strategy?.type === "Recreate") return replicas
  const value = strategy?.rollingUpdate?.maxUnavailable ?? "25%"
  if (typeof value === "number") return Math.min(value, replicas)
  const percent = Number.parseInt(value, 10)
  return replicas > 1 ? podsOf({ percent }, replicas) : Math.floor(percent / 100)
}

type Read = { metadata: object }

/** Undefined for one that is not a Deployment's, or is being deleted. */
export function readRevision(object: Read): Revision | undefined {
  const { metadata, spec, status = {} } = object as Json
  const owner = deploymentOf(metadata)
  if (!owner || metadata.deletionTimestamp) return undefined
  return {
    resourceVersion: metadata.resourceVersion,
    namespace: metadata.namespace,
    name: metadata.name,
    uid: metadata.uid,
    owner,
    replicas: spec.replicas ?? 1,
    running: status.replicas ?? 0,
    template: spec.template,
    annotations: metadata.annotations ?? {},
    number: metadata.annotations?.[revisionKey] ?? "",
    generation: metadata.generation ?? 0,
    note: parseNote(metadata.annotations?.[inPlaceAnnotation]),
    isObserved: (status.observedGeneration ?? 0) >= (metadata.generation ?? 0),
  }
}

/** Undefined for a job of something else, or one that is being deleted. */
export function readJob(object: Read): Job | undefined {
  const { metadata } = object as Json
  const { spec, status } = object as unknown as ImagePullJob
  const owner = deploymentOf(metadata)
  if (!owner || metadata.deletionTimestamp) return undefined
  const ready = status?.conditions.find(({ type }) => type === "Ready")
  return {
    resourceVersion: metadata.resourceVersion,
    name: metadata.name,
    uid: metadata.uid,
    owner,
    image: spec.image,
    trouble: ready && troubles.has(ready.reason) ? ready.message : "",
  }
}

const troubles = new Set(["SecretMissing", "SecretInvalid", "Forbidden", "InvalidImage", "Refused"])

function deploymentOf({ ownerReferences = [] }: Json): { uid: string; name: string } | undefined {
  const owner = ownerReferences.find((each: Json) => each.controller === true && each.kind === "Deployment")
  return owner && { uid: owner.uid, name: owner.name }
}

/** A PodDisruptionBudget. */
export type Budget = {
  readonly resourceVersion: string
  readonly name: string
  readonly selector: LabelSelector | undefined
  readonly allowed: number
}

export function readBudget(object: Read): Budget {
  const { metadata, spec, status } = object as Json
  return {
    resourceVersion: metadata.resourceVersion,
    name: metadata.name,
    selector: spec?.selector,
    allowed: status?.disruptionsAllowed ?? 0,
  }
}
