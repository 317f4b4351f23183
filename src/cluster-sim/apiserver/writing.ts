import { apiVersionOf } from "#runtime/resource.ts"
import type { Json, Obj } from "../object.ts"
import { kubernetesSchema } from "../schema/index.ts"
import type { Backend } from "./backend.ts"
import { createObject } from "./creation.ts"
import type { ServedKind } from "./kind.ts"
import { badRequest, conflict, notFound } from "./refusals.ts"
import { reviseObject } from "./revision.ts"
import { appliedScale, scaleOf, withScale } from "./scale.ts"
import type { Name, PatchBody, WriteOptions } from "./storage.ts"

export function postObject(backend: Backend, kind: ServedKind, body: Json, options: WriteOptions = {}): Obj {
  const decoded = backend.patching.decode(kind, typed(kind, body), options)
  return createObject(backend, kind, decoded, options, false)
}

export function putObject(
  backend: Backend,
  kind: ServedKind,
  name: Name,
  body: Json,
  options: WriteOptions = {},
): { object: Obj; isNew: boolean } {
  if (options.subresource === "scale") {
    const old = backend.get(kind, name)
    checkUid(kind, old, body.metadata?.uid)
    return { object: reviseObject(backend, kind, old, withScale(kind, old, body), options), isNew: false }
  }
  const decoded = backend.patching.decode(kind, typed(kind, body), options)
  checkName(decoded, name)
  const old = backend.find(kind, name)
  if (!old) {
    if (!kind.strategy.allowsCreateOnUpdate || options.subresource) throw notFound(kind, name.name)
    return { object: createObject(backend, kind, decoded, options, false), isNew: true }
  }
  checkUid(kind, old, decoded.metadata?.uid)
  return { object: reviseObject(backend, kind, old, decoded, options), isNew: false }
}

function checkUid(kind: ServedKind, { metadata }: Obj, uid: string | undefined) {
  if (!uid || uid === metadata.uid) return
  const key = `/registry/${kind.storage.replace(/^core\//, "")}/${metadata.namespace ? `${metadata.namespace}/` : ""}${metadata.name}`
  throw conflict(
    kind,
    metadata.name,
    `StorageError: invalid object, Code: 4, Key: ${key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: ${uid}, UID in object meta: ${metadata.uid}`,
  )
}

export function patchObject(
  backend: Backend,
  kind: ServedKind,
  name: Name,
  patch: PatchBody,
  options: WriteOptions = {},
) {
  const { patching, now } = backend
  const old = backend.find(kind, name)
  if (options.subresource === "scale") {
    const current = old ?? backend.get(kind, name)
    if (patch.type === "apply") {
      const applied = patching.apply(kind, current, appliedScale(kind, patch.body), { ...options, now: now() })
      return { object: reviseObject(backend, kind, current, applied, options, true), isNew: false }
    }
    const scale = patching.patch(scaleKind(kind), scaleOf(kind, current) as Obj, asMerge(patch), options)
    return { object: reviseObject(backend, kind, current, withScale(kind, current, scale), options), isNew: false }
  }
  if (patch.type === "apply") {
    if (!old && options.subresource) throw notFound(kind, name.name)
    const applied = patching.apply(kind, old, patch.body, { ...options, now: now() })
    checkName(applied, name)
    if (!old) {
      if (applied.metadata?.uid)
        throw conflict(
          kind,
          name.name,
          `uid mismatch: the provided object specified uid ${applied.metadata.uid}, and no existing object was found`,
        )
      const metadata = { ...applied.metadata, ...(kind.namespaced && { namespace: name.namespace }) }
      return { object: createObject(backend, kind, { ...applied, metadata }, options, true), isNew: true }
    }
    return { object: reviseObject(backend, kind, old, applied, options, true), isNew: false }
  }
  if (!old) throw notFound(kind, name.name)
  const patched = patching.patch(kind, old, patch, options)
  checkName(patched, name)
  return { object: reviseObject(backend, kind, old, patched, options), isNew: false }
}

/** Typed clients omit apiVersion and kind, and the server accepts that. */
const typed = (kind: ServedKind, body: Json): Json =>
  body && typeof body === "object" && !body.apiVersion && !body.kind && !kind.isCustom
    ? { apiVersion: apiVersionOf(kind), kind: kind.kind, ...body }
    : body

function checkName({ metadata }: Json, { name, namespace }: Name) {
  if (!metadata?.name)
    throw badRequest(`the name of the object (${name} based on URL) was undeterminable: name must be provided`)
  if (metadata.name !== name)
    throw badRequest(`the name of the object (${metadata.name}) does not match the name on the URL (${name})`)
  if (namespace && metadata.namespace && metadata.namespace !== namespace)
    throw badRequest("the namespace of the provided object does not match the namespace sent on the request")
}

/** A Scale has a schema of its own, whatever it scales. */
export const scaleKind = (kind: ServedKind): ServedKind => ({
  ...kind,
  group: "autoscaling",
  version: "v1",
  kind: "Scale",
  schema: kubernetesSchema("autoscaling/v1", "Scale") ?? { type: "any" },
  isCustom: false,
})

/** Without lists to merge, a strategic patch of a Scale is a merge patch. */
const asMerge = (patch: PatchBody): PatchBody => (patch.type === "strategic" ? { ...patch, type: "merge" } : patch)
