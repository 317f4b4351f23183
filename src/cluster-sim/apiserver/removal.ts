import type { Obj } from "../object.ts"
import { type Backend, isNamespace } from "./backend.ts"
import { planDeletion, withMetadata } from "./deletion.ts"
import { equal } from "./equal.ts"
import type { ServedKind } from "./kind.ts"
import { conflict, forbidden } from "./refusals.ts"
import type { DeleteOptions, Name } from "./storage.ts"

export type Removal = { object: Obj; is: "removed" | "marked" | "pending" }

/** Deletes an object, or marks it where finalizers or a grace period hold it. */
export function removeObject(backend: Backend, kind: ServedKind, name: Name, options: DeleteOptions = {}): Removal {
  const old = backend.get(kind, name)
  const { uid, resourceVersion } = options.preconditions ?? {}
  const { metadata } = old
  if (isNamespace(kind)) {
    const why = (what: string, asked: string, is: string) =>
      conflict(kind, name.name, `Precondition failed: ${what} in precondition: ${asked}, ${what} in object meta: ${is}`)
    if (uid !== undefined && uid !== metadata.uid) throw why("UID", uid, metadata.uid)
    if (resourceVersion !== undefined && resourceVersion !== metadata.resourceVersion)
      throw why("ResourceVersion", resourceVersion, metadata.resourceVersion)
    return removeNamespace(backend, kind, old, options)
  }
  // Only here the server writes the kind in place of the resource.
  const about = { group: kind.group, plural: kind.kind }
  if (uid !== undefined && uid !== metadata.uid)
    throw conflict(
      about,
      name.name,
      `the UID in the precondition (${uid}) does not match the UID in record (${metadata.uid}). The object might have been deleted and then recreated`,
    )
  if (resourceVersion !== undefined && resourceVersion !== metadata.resourceVersion)
    throw conflict(
      about,
      name.name,
      `the ResourceVersion in the precondition (${resourceVersion}) does not match the ResourceVersion in record (${metadata.resourceVersion}). The object might have been modified`,
    )
  return carryOut(backend, kind, old, options)
}

function carryOut(backend: Backend, kind: ServedKind, old: Obj, options: DeleteOptions): Removal {
  const manager = "delete"
  const plan = planDeletion(kind, old, options, backend.clock.now())
  if (plan.is === "pending") return { object: old, is: "pending" }
  validate(backend, kind, old, options)
  if (options.dryRun) return { object: plan.next ?? old, is: plan.is }
  const marked = plan.next && !equal(plan.next, old) ? backend.commit(kind, old, plan.next, manager) : old
  return { object: plan.is === "removed" ? backend.commit(kind, marked, undefined, manager) : marked, is: plan.is }
}

function removeNamespace(backend: Backend, kind: ServedKind, old: Obj, options: DeleteOptions): Removal {
  if (["default", "kube-system", "kube-public"].includes(old.metadata.name))
    throw forbidden(kind, old.metadata.name, "this namespace may not be deleted")
  if (old.metadata.deletionTimestamp === undefined) {
    validate(backend, kind, old, options)
    const { finalizers = [] } = old.metadata
    const { propagationPolicy: policy } = options
    const wanted = [
      ...finalizers.filter(each => !policy || (each !== "orphan" && each !== "foregroundDeletion")),
      ...(policy === "Orphan" ? ["orphan"] : policy === "Foreground" ? ["foregroundDeletion"] : []),
    ]
    const next = {
      ...withMetadata(old, { deletionTimestamp: backend.now(), finalizers: wanted.length > 0 ? wanted : undefined }),
      status: { ...old.status, phase: "Terminating" },
    }
    return { object: options.dryRun ? next : backend.commit(kind, old, next, "delete"), is: "marked" }
  }
  if ((old.spec?.finalizers ?? []).length > 0) return { object: old, is: "marked" }
  return carryOut(backend, kind, old, options)
}

function validate(backend: Backend, kind: ServedKind, old: Obj, options: DeleteOptions): void {
  const { name, namespace } = old.metadata
  const asked = { name: options.isUnnamed ? "" : name, namespace }
  const request = { ...asked, operation: "delete", kind, old, subresource: undefined, options } as const
  backend.validate({ ...request, object: undefined })
}
