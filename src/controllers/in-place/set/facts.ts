import type { HeldKind } from "#core/in-place/hold.ts"
import { revisionLabel } from "#core/in-place/names.ts"
import type { PodTemplate } from "#core/in-place/template.ts"
import { type Json, type Owned, ownerOf, readCommon, type Workload } from "../facts.ts"

/** A held StatefulSet or DaemonSet, with what its controller reports. */
export type HeldSet = Workload & {
  /** As it is now, with the hold in it. */
  readonly updateStrategy: unknown
  readonly status: {
    /** Pods that it sees, those that end included. */
    readonly pods: number
    /** Those of them that it counts as of the template. */
    readonly updated: number
    /** Pods on nodes where they should not be: they are counted among neither. */
    readonly strays: number
    /** Names of ControllerRevisions, of a StatefulSet only. */
    readonly update: string
    readonly current: string
  }
  readonly ordinals?: { readonly isStrict: boolean }
}

/** A ControllerRevision. */
export type SetRevision = Owned & {
  readonly name: string
  readonly number: number
  /** The label of a DaemonSet's pods of this revision. */
  readonly hash: string
  readonly template: PodTemplate
}

/** A set has no deadline of its own. As a Deployment's, if that has none. */
const deadlineSeconds = 600

export const readSet = (object: object, kind: HeldKind) => ({
  ...readCommon(object, kind),
  updateStrategy: (object as Json).spec.updateStrategy as unknown,
  deadlineSeconds,
})

/** Undefined for a revision of another kind, or one that is being deleted. */
export function readSetRevision(object: { metadata: object }, kind: string): SetRevision | undefined {
  const { metadata, data, revision } = object as Json
  const owner = ownerOf(metadata, kind)
  if (!owner || metadata.deletionTimestamp) return undefined
  // It is a patch of the workload.
  const { $patch: _, ...template } = data?.spec?.template ?? {}
  return { owner, name: metadata.name, number: revision ?? 0, hash: metadata.labels?.[revisionLabel] ?? "", template }
}
