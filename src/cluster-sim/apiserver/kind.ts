import type { Json, Obj } from "../object.ts"
import type { Schema } from "../schema/schema.ts"
import type { Cause } from "../status-error.ts"

/** A kind as it is served: everything that differs from one kind to the next, as data and small pure functions. */
export type ServedKind = {
  readonly group: string
  readonly version: string
  readonly kind: string
  readonly listKind: string
  readonly plural: string
  readonly singular: string
  readonly shortNames: readonly string[]
  readonly categories: readonly string[]
  readonly namespaced: boolean
  readonly verbs: readonly string[]
  readonly subresources: readonly string[] // status, scale, eviction, binding, token, log, exec
  readonly schema: Schema
  readonly strategy: Strategy
  readonly printer: Printer
  /** Where objects are kept: `apps/deployments`. Versions of one kind, and both Event groups, share a place. */
  readonly storage: string
  readonly isCustom: boolean
  /** The warning for clients that still use this version. */
  readonly deprecation?: string
  /** Where this version's fields differ from the stored ones (both Event groups). By default only apiVersion differs. */
  readonly convert?: { toStorage(object: Json): Json; fromStorage(object: Obj): Obj }
  /** For the scale subresource: paths in the object. */
  readonly scale?: { spec: string; status: string; selector?: string }
}

/** What a kind adds to the generic create/update/delete. Every function is pure: it gets `now` where it needs it. */
export type Strategy = {
  /** Fills in what the user left out. Applied to every written object, and to the stored one before it. */
  default?(object: Json): Json
  /** Create: drops fields that the user may not set (status), sets those that the server sets. */
  prepareCreate?(object: Json, context: StrategyContext): Json
  /** Update: keeps fields that this endpoint may not change (status on the main one, spec on /status). */
  prepareUpdate?(object: Json, old: Obj, context: StrategyContext): Json
  prepareStatusUpdate?(object: Json, old: Obj, context: StrategyContext): Json
  validateCreate?(object: Json): Cause[]
  validateUpdate?(object: Json, old: Obj): Cause[]
  validateStatusUpdate?(object: Json, old: Obj): Cause[]
  /** Whether a change moves metadata.generation; by default: anything but metadata and status differs. */
  movesGeneration?(object: Json, old: Obj): boolean
  /** Seconds between the delete and the end; pods take theirs from the spec. Undefined: at once. */
  graceSeconds?(object: Obj, asked: number | undefined): number | undefined
  /** A PUT or PATCH without resourceVersion is accepted (built-in workloads) or refused (custom resources). */
  allowsUnconditionalUpdate?: boolean
  /** A PUT of a name that does not exist creates it (few kinds: Lease, Endpoints, RBAC …). */
  allowsCreateOnUpdate?: boolean
  /** Fields that a fieldSelector may name, besides metadata.name and metadata.namespace. */
  selectableFields?(object: Obj): Record<string, string>
}

export type StrategyContext = { now: string; random: () => number }

/** How `kubectl get` shows it: the columns, and one row of cells. */
export type Printer = {
  readonly columns: readonly TableColumn[]
  row(object: Obj, nowMs: number): Json[]
}

export type TableColumn = {
  name: string
  type: string
  format: string
  description: string
  priority: number
}
