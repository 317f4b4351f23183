import { Canary } from "#api/v1alpha1/canary/index.ts"
import { group } from "#api/v1alpha1/group.ts"
import { ownValue } from "#lib/own.ts"
import { isSame } from "#lib/same.ts"
import type { RouteObject } from "./router.ts"

/**
 * What a Canary changes in an object that was there before is kept on that object, with what stood in its place. So the
 * object goes back exactly, also by a process that has not seen how it was.
 */
const beforeAnnotation = `${group}/canary-before`

type Fields = Readonly<Record<string, unknown>>
type Map<T> = Readonly<Record<string, T>>

/** What stood where something was written, by key; null where nothing stood. */
export type Before<T> = Map<T | null>

/** Writes keys; those that are wanted undefined go. Only what differs is remembered. Every key keeps its place. */
export function written<T>(there: Map<T>, wanted: Map<T | undefined>): { next: Map<T>; before: Before<T> } {
  const changed = Object.keys(wanted).filter(key => !isSame(ownValue(there, key), wanted[key]))
  return {
    next: replaced(there, Object.fromEntries(changed.map(key => [key, wanted[key] ?? null]))),
    before: Object.fromEntries(changed.map(key => [key, ownValue(there, key) ?? null])),
  }
}

/** The same keys as they were. */
export const undone = <T>(there: Map<T>, before: unknown): Map<T> => replaced(there, fieldsOf(before) as Before<T>)

function replaced<T>(there: Map<T>, by: Before<T>): Map<T> {
  const keys = [...Object.keys(there), ...Object.keys(by).filter(key => !Object.hasOwn(there, key))]
  const entries = keys.map(key => [key, Object.hasOwn(by, key) ? by[key] : there[key]] as const)
  return Object.fromEntries(entries.filter((entry): entry is [string, T] => entry[1] !== null))
}

export const annotationsOf = ({ metadata }: RouteObject) => (metadata.annotations ?? {}) as Map<string>
export const labelsOf = ({ metadata }: RouteObject) => (metadata.labels ?? {}) as Map<string>

/** What the annotation says; nothing where it is gone or was written by another hand. */
export function savedIn(object: RouteObject): Fields {
  try {
    return fieldsOf(JSON.parse(annotationsOf(object)[beforeAnnotation] ?? "{}"))
  } catch {
    return {}
  }
}

export const fieldsOf = (value: unknown): Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {}

/** The object with these labels and annotations, and with what is to be kept; a map without entries is left out. */
export function withMetadata(
  object: RouteObject,
  { labels, annotations, saved = {} }: { labels: Map<string>; annotations: Map<string>; saved?: Fields },
): RouteObject {
  const { [beforeAnnotation]: _, ...rest } = annotations
  const isKept = Object.values(saved).some(part => part !== undefined && Object.keys(part as object).length > 0)
  const all = isKept ? { ...rest, [beforeAnnotation]: JSON.stringify(saved) } : rest
  const { labels: _labels, annotations: _annotations, ...metadata } = object.metadata
  return {
    ...object,
    metadata: {
      ...metadata,
      ...(Object.keys(labels).length > 0 && { labels }),
      ...(Object.keys(all).length > 0 && { annotations: all }),
    } as RouteObject["metadata"],
  }
}

type Owner = { readonly apiVersion?: string; readonly kind?: string; readonly controller?: boolean }

const ownersOf = ({ metadata }: RouteObject) => (metadata.ownerReferences ?? []) as readonly Owner[]
const isCanary = ({ apiVersion, kind }: Owner) => apiVersion === Canary.apiVersion && kind === Canary.kind

/** Made for a Canary, and not only changed by one. */
export const isMade = (object: RouteObject) => ownersOf(object).some(isCanary)

/** The owner reference of what is made for a Canary. */
export const ownerOf = ({ metadata: { name, uid } }: Canary) => ({
  apiVersion: Canary.apiVersion,
  kind: Canary.kind,
  name,
  uid,
  controller: true,
  blockOwnerDeletion: true,
})

/** The object stays when its Canary goes. */
export function withoutOwner(object: RouteObject): RouteObject {
  const { ownerReferences: _, ...metadata } = object.metadata
  const others = ownersOf(object).filter(owner => !isCanary(owner))
  return {
    ...object,
    metadata: {
      ...metadata,
      ...(others.length > 0 && { ownerReferences: others }),
    } as RouteObject["metadata"],
  }
}
