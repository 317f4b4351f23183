import type { Clock } from "#runtime/clock.ts"
import type { Random } from "#runtime/random.ts"
import { apiVersionOf } from "#runtime/resource.ts"
import type { User } from "../auth/user.ts"
import type { Json, ManagedFields, Obj } from "../object.ts"
import type { Store } from "../store/index.ts"
import type { ServedKind, StrategyContext } from "./kind.ts"
import { orderedMetadata } from "./metadata.ts"
import type { Patching } from "./patching.ts"
import type { PolicyRequest } from "./policies.ts"
import type { Name } from "./storage.ts"

/**
 * Runs before a write is validated. It may change the object, or refuse the write by throwing. For rules that depend on
 * other objects, which a kind's strategy does not see (the admission plugins of a real server).
 */
export type Admission = (request: {
  operation: "create" | "update"
  kind: ServedKind
  object: Json
  old: Obj | undefined
  subresource: string | undefined
  /** Undefined for the cluster's own writes. */
  user: User | undefined
}) => Json

/** Checks an object as it would be stored, and refuses it by throwing. The last step before the store. */
export type Validation = (request: {
  operation: "create" | "update"
  kind: ServedKind
  object: Json
  old: Obj | undefined
  subresource: string | undefined
  dryRun: boolean
}) => void

/** What the verbs are built on: reading, one committing write, and this server's clock and random numbers. */
export type Backend = {
  readonly store: Store
  readonly clock: Clock
  readonly random: Random
  readonly patching: Patching
  now(): string
  context(): StrategyContext
  /** A stored object as this kind's version shows it. */
  present(kind: ServedKind, stored: Obj): Obj
  find(kind: ServedKind, name: Name): Obj | undefined
  get(kind: ServedKind, name: Name): Obj // throws NotFound
  /** The object after every admission plugin, in order, and after mutating policies. */
  admit(request: PolicyRequest & { operation: "create" | "update" }): Json
  /** Throws the refusal of a validating policy, or else of a validation. */
  validate(request: PolicyRequest): void
  commit(kind: ServedKind, before: Obj | undefined, after: Obj | undefined, manager: string): Obj
  /** Where namespaces are kept. */
  namespacesPlace(): string
}

export const isNamespace = ({ group, plural }: ServedKind) => group === "" && plural === "namespaces"

/** apiVersion and kind come first, then metadata. Lists omit the first two by cutting them off the text. */
export const ordered = (kind: ServedKind, object: Json): Json => {
  const { apiVersion: _, kind: __, metadata, ...rest } = object
  return { apiVersion: apiVersionOf(kind), kind: kind.kind, metadata, ...rest }
}

export const managedBy = (object: Json, managedFields: readonly ManagedFields[] | undefined): Json => ({
  ...object,
  metadata: orderedMetadata({ ...object.metadata, managedFields: managedFields?.map(shared) }),
})

/**
 * A thousand pods of one template have the same managed fields. Unless they share them, that takes a third of their
 * memory.
 */
function shared(entry: ManagedFields): ManagedFields {
  const text = JSON.stringify(entry.fieldsV1)
  const known = ownerships.get(text)
  if (known) return { ...entry, fieldsV1: known }
  if (ownerships.size >= 1000) ownerships.clear()
  ownerships.set(text, entry.fieldsV1)
  return entry
}

const ownerships = new Map<string, Json>()

export function without(object: Json, field: string): Json {
  const { [field]: _, ...rest } = object
  return rest
}
