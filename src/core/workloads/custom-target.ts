import { unsafeNames } from "#api/v1alpha1/serviceimage/index.ts"
import { parseInstant } from "#lib/instant.ts"
import type { ImageRecord } from "../image/record.ts"
import {
  conditionOf,
  fieldOf,
  generationOf,
  imageText,
  isObject,
  isObserved,
  type TargetObject,
  wholeNumber,
} from "./object-facts.ts"
import type { KindOfTarget } from "./target-reader.ts"

/** A custom kind: images at paths, everything else as in the ImageSpec contract. */
export function customTarget(paths: readonly string[]): KindOfTarget {
  const places = paths.map(path => path.split("."))
  return {
    patchType: "merge",

    read(object) {
      const images: string[] = []
      for (const path of places) {
        const found = imageAt(object, path)
        if ("problem" in found) return { images: [], problem: found.problem }
        images.push(found.image)
      }
      return { images }
    },

    isUnmanaged: object => fieldOf(fieldOf(object, "spec"), "manuallySpecifiedImage") === true,
    haltsOnFailure: object => fieldOf(fieldOf(object, "spec"), "failureHaltsUpdate") === true,
    isUpToDate: object => isTrueNow(object, "UpToDate"),
    unwellSince(object) {
      const found = conditionOf(object, "UpToDate")
      return found?.status === "False" ? parseInstant(found.lastTransitionTime) : undefined
    },
    wellSince: object => parseInstant(conditionOf(object, "UpToDate")?.lastTransitionTime),
    isDeployed: object => conditionOf(object, "Deployed")?.status === "True",
    remembersDeployed: true,

    ownedFields: () => places.map(path => path.map(name => `f:${name}`)),

    // The record was read from an annotation: only our own paths are written, whatever else it holds.
    imageFields: (_, to) =>
      nest(
        places.flatMap((path, index) => {
          const image = typeof to === "string" ? to : fieldOf(to, paths[index]!)
          // It never had an image: taking the decision back removes the field again.
          return typeof image === "string" ? [{ path, value: image === "" ? null : image }] : []
        }),
      ),
  }
}

/**
 * Why these paths cannot be stamped, if so. A property that JavaScript objects inherit is no field. With `spec.a` and
 * `spec.a.b` the first would have to be both a text and an object.
 */
export function pathsProblem(paths: readonly string[]): string | undefined {
  const unsafe = paths.find(path => path.split(".").some(name => unsafeNames.includes(name)))
  if (unsafe) return `${unsafe} has a part that cannot be a field: ${unsafeNames.join(", ")}`
  for (const outer of paths)
    for (const inner of paths)
      if (inner.startsWith(`${outer}.`)) return `${inner} stands inside ${outer}, which is to hold an image itself`
  return undefined
}

/** The image of each path, where they differ. */
export const imagesByPath = (paths: readonly string[], images: readonly string[]): NonNullable<ImageRecord["was"]> =>
  Object.fromEntries(paths.map((path, index) => [path, images[index] ?? ""]))

/**
 * An absent field was never given, and neither were absent parents: all paths are stamped, so a missing `spec.sidecar`
 * is created. A field of another type is left alone: a patch would replace it, and what its owner keeps in it.
 */
function imageAt(object: TargetObject, path: readonly string[]): { image: string } | { problem: string } {
  let value: unknown = object
  for (const [index, name] of path.entries()) {
    if (!isObject(value)) return { problem: `${path.slice(0, index).join(".")} is not an object` }
    value = fieldOf(value, name)
    if (value === undefined || value === null) return { image: "" }
  }
  return typeof value === "string" ? { image: imageText(value) } : { problem: `${path.join(".")} is not a text` }
}

/**
 * A condition counts only when both the status and the condition itself are about the present generation. Trusting an
 * older "healthy" is how later waves overtake earlier ones (argo-cd#29410).
 */
function isTrueNow(object: TargetObject, type: string): boolean {
  if (!isObserved(object)) return false
  const found = conditionOf(object, type)
  const generation = generationOf(object)
  return found?.status === "True" && (wholeNumber(found.observedGeneration) ?? generation) >= generation
}

type Leaf = { path: readonly string[]; value: string | null }

/** Nests the values in objects, so that the fields beside them stay as they are. */
function nest(leaves: readonly Leaf[]): object {
  const byName = Map.groupBy(leaves, ({ path }) => path[0]!)
  return Object.fromEntries(
    [...byName].map(([name, below]) => {
      const inside = below.map(({ path, value }) => ({ path: path.slice(1), value }))
      return [name, inside[0]!.path.length === 0 ? inside[0]!.value : nest(inside)]
    }),
  )
}
