import type { ImagePullJob } from "#api/v1alpha1/imagepulljob/index.ts"
import type { Budget } from "#core/in-place/cover.ts"
import type { HeldKind } from "#core/in-place/hold.ts"
import { type Hold, parseHold, parseNote, type WorkloadNote } from "#core/in-place/marks.ts"
import { heldMark, inPlaceAnnotation } from "#core/in-place/names.ts"
import { originalOf } from "#core/in-place/own-hold.ts"
import type { NodeState } from "#core/in-place/standing.ts"
import type { PodTemplate } from "#core/in-place/template.ts"
import { parseInstant } from "#lib/instant.ts"
import type { LabelSelector } from "#lib/label-selector.ts"

/** A held workload, as far as the kinds have it in common. */
export type Workload = {
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly resourceVersion: string
  readonly generation: number
  readonly annotations: Readonly<Record<string, string>>
  /** The hold is in its spec: its own controller replaces no pod. */
  readonly isInForce: boolean
  /** Its controller has seen this very version, and with it the hold. */
  readonly isObserved: boolean
  readonly replicas: number
  readonly selector: LabelSelector
  readonly template: PodTemplate
  readonly minReadySeconds: number
  readonly deadlineSeconds: number
  /** What its own strategy allows, as a number of pods. */
  readonly maxUnavailable: number
  readonly hold: Hold | undefined
  /** Of a hold that is lent: what it gives back when it has stood again; undefined where its owner has stopped it. */
  readonly original?: string | undefined
  readonly note: WorkloadNote | undefined
}

/** Something that a workload owns. */
export type Owned = { readonly owner: { readonly uid: string; readonly name: string } }

/** An ImagePullJob of a workload. */
export type Job = Owned & {
  readonly resourceVersion: string
  readonly name: string
  readonly uid: string
  readonly image: string
  /** What keeps it from asking nodes at all, such as a missing Secret. */
  readonly trouble: string
  /** Some of the nodes that have failed, and why: one without an agent says nothing itself. */
  readonly failed: ReadonlyMap<string, string>
}

// biome-ignore lint/suspicious/noExplicitAny: what the server sends
export type Json = Record<string, any>

/** What every kind has at the same place. */
export function readCommon({ metadata, spec, status }: Json, kind: HeldKind) {
  const annotations: Readonly<Record<string, string>> = metadata.annotations ?? {}
  const hold = parseHold(annotations[heldMark])
  return {
    namespace: metadata.namespace as string,
    name: metadata.name as string,
    uid: metadata.uid as string,
    resourceVersion: metadata.resourceVersion as string,
    generation: (metadata.generation ?? 0) as number,
    annotations,
    isObserved: (status?.observedGeneration ?? 0) >= (metadata.generation ?? 0),
    selector: spec.selector as LabelSelector,
    template: spec.template as PodTemplate,
    minReadySeconds: (spec.minReadySeconds ?? 0) as number,
    hold,
    ...(hold?.isLent && { original: originalOf(kind, spec) }),
    note: parseNote(annotations[inPlaceAnnotation]),
  }
}

type Read = { metadata: object }

/** Undefined for a job of another kind, or one that is being deleted. */
export function readJob(object: Read, kind: string): Job | undefined {
  const { metadata } = object as Json
  const { spec, status } = object as unknown as ImagePullJob
  const owner = ownerOf(metadata, kind)
  if (!owner || metadata.deletionTimestamp) return undefined
  const ready = status?.conditions.find(({ type }) => type === "Ready")
  return {
    resourceVersion: metadata.resourceVersion,
    name: metadata.name,
    uid: metadata.uid,
    owner,
    image: spec.image,
    trouble: ready && troubles.has(ready.reason) ? ready.message : "",
    failed: new Map((status?.failedNodes ?? []).map(({ name, reason }) => [name, reason])),
  }
}

const troubles = new Set(["SecretMissing", "SecretInvalid", "Forbidden", "InvalidImage", "Refused"])

export function ownerOf({ ownerReferences = [] }: Json, kind: string): { uid: string; name: string } | undefined {
  const owner = ownerReferences.find((each: Json) => each.controller === true && each.kind === kind)
  return owner && { uid: owner.uid, name: owner.name }
}

/** A node that this process has seen. There are many, so it is small. */
export type NodeSeen = NodeState & { readonly resourceVersion: string }

export function readNodeState(object: Read): NodeSeen {
  const { metadata, status } = object as Json
  const ready = (status?.conditions ?? []).find(({ type }: Json) => type === "Ready")
  return {
    resourceVersion: metadata.resourceVersion,
    isReady: ready?.status === "True",
    since: parseInstant(ready?.lastTransitionTime) ?? 0,
  }
}

export function readBudget(object: Read): Budget & { readonly resourceVersion: string } {
  const { metadata, spec, status } = object as Json
  return {
    resourceVersion: metadata.resourceVersion,
    name: metadata.name,
    selector: spec?.selector,
    allowed: status?.disruptionsAllowed ?? 0,
    desired: status?.desiredHealthy ?? 0,
    isCurrent: (status?.observedGeneration ?? 0) >= (metadata.generation ?? 0),
  }
}
