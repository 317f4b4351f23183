import assert from "node:assert/strict"
import { fenceAnnotation, type Target } from "#api/v1alpha1/serviceimage/index.ts"
import type { Instant } from "#lib/instant.ts"
import { canaryOf } from "../canary/run-object.ts"
import type { Member } from "../fleet/member.ts"
import type { ImageRecord } from "../image/record.ts"
import { sameImage } from "../image/reference.ts"
import type { Strategy } from "../in-place/names.ts"
import type { HoldFields, InPlaceFacts } from "../in-place/own-hold.ts"
import { customTarget, imagesByPath } from "./custom-target.ts"
import { lastChangeOf, otherOwnerOf } from "./field-owner.ts"
import { healthCheck } from "./health.ts"
import { isObserved, readCommon, type TargetObject } from "./object-facts.ts"
import { isWorkload, workloadTarget } from "./workload-target.ts"

export { pathsProblem } from "./custom-target.ts"
export { healthProblem } from "./health.ts"

/** One image for every place the target has, or one for each path. */
export type Images = string | Readonly<Record<string, string>>

export type TargetPatch = { type: "merge" | "strategic"; body: object }

/** How one kind of target is read and written. Made once per `spec.target`. */
export type TargetReader = {
  /** Never throws: what cannot be read is a `problem` of the member. */
  read(object: TargetObject): Member
  /** What a decision must record of the member, so that it can be taken back. */
  recordOf(member: Member): Pick<ImageRecord, "from" | "was" | "wasDeployed">
  /**
   * Writes the image wherever the target has one, on exactly the version the member was read from. Where the strategy,
   * or the workload's own, keeps pods, the same write holds the workload. With a Canary, that holds it: neither a hold nor
   * a strategy of ours comes with the image.
   */
  patchFor(
    member: Member,
    to: Images,
    annotations: Readonly<Record<string, string>>,
    how?: { readonly strategy?: Strategy | undefined; readonly hasCanary?: boolean },
  ): TargetPatch
}

type ImageFields = { readonly spec?: object }

/** The differences between kinds of targets. */
export type KindOfTarget = {
  readonly patchType: TargetPatch["type"]
  /** The image at each place, or why none of them may be touched. */
  read(
    object: TargetObject,
  ): Pick<Member, "problem" | "replicas" | "minReadyMs" | "isInitContainer"> & { images: readonly string[] }
  isUnmanaged(object: TargetObject): boolean
  haltsOnFailure(object: TargetObject): boolean
  isUpToDate(object: TargetObject): boolean
  /** Since when an object with a status of its present generation is not up to date, where it reports that. */
  unwellSince(object: TargetObject): Instant | undefined
  /** Since when an object is up to date, where it reports that. */
  wellSince(object: TargetObject): Instant | undefined
  isDeployed(object: TargetObject): boolean
  /** `isDeployed` also covers the past. Where it does not, our decision records it. */
  readonly remembersDeployed: boolean
  /** The fields that hold the images, as `managedFields` names them. */
  ownedFields(member: Pick<Member, "isInitContainer">): readonly (readonly string[])[]
  /** The part of a patch that holds the images. */
  imageFields(member: Member, to: Images): ImageFields
  /** For kinds of which some can be updated in place. */
  readInPlace?(object: TargetObject, image: string): InPlaceFacts | undefined
  /** The part of a patch that keeps the pods of a workload. */
  holdFields?(member: Member, strategy: Strategy | undefined): HoldFields | undefined
}

export function targetReader(target: Pick<Target, "kind" | "image" | "health">): TargetReader {
  const { paths = ["spec.image"] } = target.image
  const kind = kindOfTarget(target, paths)
  const checkHealth = target.health === "" ? undefined : healthCheck(target.health)
  // An expression about the present cannot show whether an object was ever healthy, so each stamp records it.
  const remembersDeployed = kind.remembersDeployed && !checkHealth

  return {
    read(object) {
      const common = readCommon(object)
      const { images, problem, replicas, minReadyMs, isInitContainer } = kind.read(object)
      const health = checkHealth?.(object)
      const inPlace = kind.readInPlace?.(object, images[0] ?? "")
      // While it is held its pods are healthy with the old image, and an expression about their health is true.
      const isHeldBack = inPlace?.isHeld && (inPlace.isUnderWay || !kind.isUpToDate(object))
      const isUpToDate = (health?.isUpToDate ?? kind.isUpToDate(object)) && !isHeldBack
      const { decision } = common
      // Always the same fields in the same order, so that a hundred thousand members share one layout in memory.
      return {
        resourceVersion: common.resourceVersion,
        uid: common.uid,
        namespace: common.namespace,
        labels: common.labels,
        createdAt: common.createdAt,
        isDeleting: common.isDeleting,
        image: images.find(each => each !== "") ?? "",
        images: images.every(each => each === images[0]) ? undefined : images,
        isUnmanaged: common.saysUnmanaged || kind.isUnmanaged(object),
        haltsOnFailure: common.saysHalt || kind.haltsOnFailure(object),
        isUpToDate,
        unwellSince: isUpToDate || health ? undefined : unwellSince(object, kind),
        wellSince: isUpToDate && !health ? kind.wellSince(object) : undefined,
        minReadyMs,
        isDeployed: (health?.isUpToDate ?? kind.isDeployed(object)) || decision?.wasDeployed === true,
        decision,
        replicas,
        isInitContainer,
        problem: problem ?? (health?.isTooCostly ? health.problem : undefined),
        healthProblem: health?.problem,
        contestedBy: decision && whoElse(object, decision, images, () => kind.ownedFields({ isInitContainer })),
        inPlace,
        isOfRun: canaryOf(object) !== undefined,
      }
    },

    recordOf: ({ image, images, isDeployed }) => ({
      from: image,
      ...(images && { was: imagesByPath(paths, images) }),
      ...(isDeployed && !remembersDeployed && { wasDeployed: true }),
    }),

    patchFor(member, to, annotations, { strategy, hasCanary = false } = {}) {
      assert(member.problem === undefined, "what could not be read is never written")
      const metadata = { resourceVersion: member.resourceVersion, annotations }
      const fields = kind.imageFields(member, to)
      const hold = fields.spec && !hasCanary ? kind.holdFields?.(member, strategy) : undefined
      return { type: kind.patchType, body: hold ? held({ ...fields, metadata }, hold) : { ...fields, metadata } }
    },
  }
}

type Body = ImageFields & { readonly metadata: { readonly annotations: object } }

/** One request: the native controller never sees the new image without the hold. */
const held = ({ spec, metadata }: Body, { annotations, labels, spec: stop }: HoldFields) => ({
  spec: { ...spec, ...stop },
  metadata: { ...metadata, annotations: { ...metadata.annotations, ...annotations }, ...(labels && { labels }) },
})

// The schema lets only workloads name a container.
function kindOfTarget({ kind, image }: Pick<Target, "kind" | "image">, paths: readonly string[]) {
  return image.container !== undefined && isWorkload(kind) ? workloadTarget(kind, image.container) : customTarget(paths)
}

const unwellSince = (object: TargetObject, kind: KindOfTarget) =>
  isObserved(object) ? kind.unwellSince(object) : lastChangeOf(object.metadata)

/** Looked up only when an image is not our last decision: `managedFields` is the larger part of most objects. */
function whoElse(
  { metadata }: TargetObject,
  { to }: ImageRecord,
  images: readonly string[],
  ownedFields: () => readonly (readonly string[])[],
): string | undefined {
  if (images.every(image => sameImage(image, to))) return undefined
  const changed = ownedFields().filter((_, index) => !sameImage(images[index] ?? "", to))
  return otherOwnerOf(metadata, changed)
}

/** Moves the object's resourceVersion and nothing else: a write decided from an older version can no longer arrive. */
export const touchPatch = (value: string): TargetPatch => ({
  type: "merge",
  body: { metadata: { annotations: { [fenceAnnotation]: value } } },
})
