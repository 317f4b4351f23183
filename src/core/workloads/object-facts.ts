import { failureHaltsUpdateAnnotation, manuallySpecifiedImageAnnotation } from "#api/v1alpha1/serviceimage/index.ts"
import { parseInstant } from "#lib/instant.ts"
import { remember } from "#lib/remember.ts"
import { clip } from "#lib/text.ts"
import { decisionAnnotation, parseDecision } from "../image/record.ts"

export type Json = Record<string, unknown>

/** An object as it comes from the server. What its owner wrote into it is hostile: every field is checked. */
export type TargetObject = { readonly metadata: object }

export const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** An own field of a value that may not be an object. Names come from specs, and may be `constructor`. */
export const fieldOf = (value: unknown, name: string): unknown =>
  isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined

export const textOf = (value: unknown) => (typeof value === "string" ? value : "")
export const wholeNumber = (value: unknown) => (Number.isInteger(value) ? (value as number) : undefined)

/** An image as it is kept: one copy of each. A text longer than any image is cut, and equals none. */
export const imageText = (value: unknown) => shared(clip(textOf(value), 1024))

/** The fields that every kind of object has in the same place. */
export function readCommon({ metadata }: TargetObject) {
  const annotations = fieldOf(metadata, "annotations")
  const labels = fieldOf(metadata, "labels")
  const decision = fieldOf(annotations, decisionAnnotation)
  return {
    resourceVersion: textOf(fieldOf(metadata, "resourceVersion")),
    uid: textOf(fieldOf(metadata, "uid")),
    namespace: shared(textOf(fieldOf(metadata, "namespace"))),
    labels: isObject(labels) ? (labels as Record<string, string>) : noLabels,
    createdAt: parseInstant(fieldOf(metadata, "creationTimestamp")) ?? 0,
    isDeleting: fieldOf(metadata, "deletionTimestamp") !== undefined,
    saysUnmanaged: fieldOf(annotations, manuallySpecifiedImageAnnotation) === "true",
    saysHalt: fieldOf(annotations, failureHaltsUpdateAnnotation) === "true",
    decision: typeof decision === "string" ? sharedDecision(decision) : undefined,
  }
}

/** The status is about the present generation. Without a status nothing is known, so nothing is well. */
export function isObserved(object: TargetObject): boolean {
  const observed = wholeNumber(fieldOf(fieldOf(object, "status"), "observedGeneration"))
  return (observed ?? -1) >= generationOf(object)
}

export const generationOf = ({ metadata }: TargetObject) => wholeNumber(fieldOf(metadata, "generation")) ?? 0

export function conditionOf(object: TargetObject, type: string): Json | undefined {
  const conditions = fieldOf(fieldOf(object, "status"), "conditions")
  return Array.isArray(conditions) ? conditions.find(each => fieldOf(each, "type") === type) : undefined
}

const noLabels: Readonly<Record<string, string>> = Object.freeze({})
const shared = remember(10_000, text => text)
// Stamps of one batch carry the same text, so this is one decision for two hundred objects.
const sharedDecision = remember(1000, parseDecision)
