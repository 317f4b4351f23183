import { ownUnavailable } from "#core/in-place/budget.ts"
import { holdKinds } from "#core/in-place/hold.ts"
import { parseNote, type WorkloadNote } from "#core/in-place/marks.ts"
import { inPlaceAnnotation } from "#core/in-place/names.ts"
import type { PodTemplate } from "#core/in-place/template.ts"
import { type Json, type Owned, ownerOf, readCommon, type Workload } from "../facts.ts"

/** A held Deployment. */
export type Deployment = Workload & { readonly keepsHistory: boolean }

/** A ReplicaSet of a Deployment. */
export type Revision = Owned & {
  readonly resourceVersion: string
  readonly namespace: string
  readonly name: string
  readonly uid: string
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

export const revisionKey = "deployment.kubernetes.io/revision"

export function readDeployment(object: object): Deployment {
  const { spec } = object as Json
  const replicas = spec.replicas ?? 1
  return {
    ...readCommon(object, "Deployment"),
    isInForce: holdKinds.Deployment.isInForce(spec),
    replicas,
    deadlineSeconds: Math.min(spec.progressDeadlineSeconds ?? 600, 86_400),
    keepsHistory: spec.revisionHistoryLimit !== 0,
    maxUnavailable: ownUnavailable("Deployment", spec.strategy, replicas),
  }
}

/** Undefined for one that is not a Deployment's, or is being deleted. */
export function readRevision(object: { metadata: object }): Revision | undefined {
  const { metadata, spec, status = {} } = object as Json
  const owner = ownerOf(metadata, "Deployment")
  if (!owner || metadata.deletionTimestamp) return undefined
  // A namespace has up to ten without pods for each Deployment, and only the end of an update asks for their templates.
  const isEmpty = (spec.replicas ?? 1) + (status.replicas ?? 0) === 0
  return Object.assign(new KeptTemplate(isEmpty ? JSON.stringify(spec.template) : spec.template), {
    resourceVersion: metadata.resourceVersion,
    namespace: metadata.namespace,
    name: metadata.name,
    uid: metadata.uid,
    owner,
    replicas: spec.replicas ?? 1,
    running: status.replicas ?? 0,
    annotations: metadata.annotations ?? {},
    number: metadata.annotations?.[revisionKey] ?? "",
    generation: metadata.generation ?? 0,
    note: parseNote(metadata.annotations?.[inPlaceAnnotation]),
    isObserved: (status.observedGeneration ?? 0) >= (metadata.generation ?? 0),
  })
}

/** As text, or as it is. A class, because V8 keeps an object literal with a getter as a dictionary of half a kilobyte. */
class KeptTemplate {
  readonly #kept: PodTemplate | string

  constructor(kept: PodTemplate | string) {
    this.#kept = kept
  }

  get template(): PodTemplate {
    return typeof this.#kept === "string" ? JSON.parse(this.#kept) : this.#kept
  }
}
