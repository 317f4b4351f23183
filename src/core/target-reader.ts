import assert from "node:assert"
import { fenceAnnotation, type Target } from "#api/v1alpha1/serviceimage/index.ts"
import { customTarget, imagesByPath } from "./custom-target.ts"
import type { Decision } from "./decision.ts"
import type { Member } from "./member.ts"
import { readCommon, type TargetObject } from "./object-facts.ts"

/** One image for every place the target has, or one for each path. */
export type Images = string | Readonly<Record<string, string>>

export type TargetPatch = { type: "merge" | "strategic"; body: object }

/** How one kind of target is read and written. Made once per `spec.target`. */
export type TargetReader = {
  /** Never throws: what cannot be read is a `problem` of the member. */
  read(object: TargetObject): Member
  /** What a decision about the member has to keep of it, so that it can be taken back. */
  recordOf(member: Member): Pick<Decision, "from" | "was" | "wasDeployed">
  /** Writes the image wherever the target has one, on exactly the version the member was read from. */
  patchFor(member: Member, to: Images, annotations: Readonly<Record<string, string>>): TargetPatch
}

/** What kinds of target differ in. */
export type KindOfTarget = {
  /** Where the images stand, as names of fields. */
  readonly places: readonly (readonly string[])[]
  readonly patchType: TargetPatch["type"]
  /** The image at each place, or why none of them may be touched. */
  read(object: TargetObject): Pick<Member, "problem" | "replicas" | "isInitContainer"> & { images: readonly string[] }
  isUnmanaged(object: TargetObject): boolean
  haltsOnFailure(object: TargetObject): boolean
  isUpToDate(object: TargetObject): boolean
  isDeployed(object: TargetObject): boolean
  /** `isDeployed` tells about the past. Where it does not, our decision remembers it. */
  readonly remembersDeployed: boolean
  /** The part of a patch that holds the images. */
  imageFields(member: Member, to: Images): object
}

export function targetReader({ image }: Pick<Target, "apiVersion" | "kind" | "image" | "health">): TargetReader {
  const paths = image.paths ?? ["spec.image"]
  const kind = customTarget(paths)
  return {
    read(object) {
      const { saysUnmanaged, saysHalt, ...common } = readCommon(object)
      const { images, ...more } = kind.read(object)
      const isUpToDate = kind.isUpToDate(object)
      return {
        ...common,
        image: images.find(each => each !== "") ?? "",
        images: images.every(each => each === images[0]) ? undefined : images,
        isUnmanaged: saysUnmanaged || kind.isUnmanaged(object),
        haltsOnFailure: saysHalt || kind.haltsOnFailure(object),
        isUpToDate,
        isDeployed: kind.isDeployed(object) || common.decision?.wasDeployed === true,
        ...more,
      }
    },

    recordOf: ({ image, images, isDeployed }) => ({
      from: image,
      ...(images && { was: imagesByPath(paths, images) }),
      ...(isDeployed && !kind.remembersDeployed && { wasDeployed: true }),
    }),

    patchFor(member, to, annotations) {
      assert(member.problem === undefined, "what could not be read is never written")
      const metadata = { resourceVersion: member.resourceVersion, annotations }
      return { type: kind.patchType, body: { ...kind.imageFields(member, to), metadata } }
    },
  }
}

/** Moves the object's resourceVersion and nothing else: a write decided from an older version can no longer arrive. */
export const touchPatch = (value: string): TargetPatch => ({
  type: "merge",
  body: { metadata: { annotations: { [fenceAnnotation]: value } } },
})

const contract = targetReader({ apiVersion: "", kind: "", image: { paths: ["spec.image"] }, health: "" })

/** Reads an object that follows the ImageSpec contract. */
export const readMember = (object: TargetObject): Member => contract.read(object)
