import type { Json, ManagedFields, Obj } from "../object.ts"
import { type Cause, StatusError } from "../status-error.ts"
import { emptyObject, readValue, WrongValue } from "./decode.ts"
import {
  difference,
  emptySet,
  type FieldSet,
  has,
  inside,
  intersection,
  isEmpty,
  isFieldSet,
  paths,
  pathText,
  shared,
  union,
  without,
} from "./field-set.ts"
import { kindText } from "./go-text.ts"
import type { Schema } from "./schema.ts"
import { ofObject } from "./table.ts"
import {
  compare,
  equalValues,
  fieldsOf,
  merge,
  problemsOf,
  remove,
  TypeProblem,
  withNamedFields,
  withoutEmptied,
} from "./typed.ts"

/** The owner of a set of fields. The version is part of an updater's identity, but not of an applier's. */
type Manager = { name: string; operation: "Apply" | "Update"; apiVersion: string; subresource?: string | undefined }
type Owned = Manager & { fields: FieldSet; time?: string | undefined }
/** By identity, as the server distinguishes managers. */
type Managed = Map<string, Owned>

const mostUpdaters = 10
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

/** Fields without an owner: those that identify the object, and the server's own fields of metadata. */
const unowned = new Set(["f:apiVersion", "f:kind"])
const unownedMetadata = new Set(
  [
    ...["name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation", "managedFields"],
    "resourceVersion",
  ].map(name => `f:${name}`),
)

export type TrackInput = {
  schema: Schema
  /** The stored object; undefined on create. */
  before: Obj | undefined
  /** The sent object with its managedFields, decoded and defaulted, before prepareCreate or prepareUpdate. */
  after: Json
  manager: string
  apiVersion: string
  subresource?: string | undefined
  now: string // RFC 3339, seconds
  /** Fields that this endpoint resets, so none is owned through it: `["status"]`, `["spec", "metadata.labels"]`. */
  resetFields?: readonly string[] | undefined
  isCustom?: boolean | undefined
}

/** metadata.managedFields after a create, update or non-apply patch. Undefined: no field has an owner. */
export function trackUpdate(asked: TrackInput): readonly ManagedFields[] | undefined {
  const input = { ...asked, schema: ofObject(asked.schema) }
  const { before, after, manager, apiVersion, subresource } = input
  const managed = managedBefore(input)
  // A client has ended the tracking of this object. The next apply starts it again.
  if (managed.size === 0 && before !== undefined) return undefined
  const self: Manager = { name: manager || "unknown", operation: "Update", apiVersion, subresource }
  const empty = input.isCustom ? { apiVersion, kind: after.kind } : emptyObject(input.schema)
  try {
    return written(capped(updated(managed, self, { ...input, before: before ?? empty })))
  } catch (error) {
    // A value that does not fit the schema cannot be owned. The validation that follows reports it, in its own words.
    if (error instanceof TypeProblem) return before?.metadata.managedFields
    throw error
  }
}

/** The managers before this write. Clients may write them, but a client that omits them does not delete them. */
function managedBefore({ before, after, subresource }: TrackInput): Managed {
  const live = read(before?.metadata.managedFields) ?? new Map()
  if (subresource) return live
  const sent = after.metadata?.managedFields
  if (Array.isArray(sent) && (sent.length === 0 || (sent.length === 1 && Object.keys(sent[0] ?? {}).length === 0)))
    return new Map()
  const given = read(sent)
  return given && given.size > 0 ? given : live
}

export type TrackScaleInput = Pick<TrackInput, "manager" | "apiVersion"> & {
  /** The scaled object before and after the write. */
  before: Obj
  after: Json
  /** The path of its replicas: `["spec", "replicas"]`. */
  path: readonly string[]
}

/**
 * The managedFields after a write of an object's Scale. The server tracks a Scale as an object of its own, and converts
 * the owners of the replicas there and back. That leaves an updater with two entries; the one for the replicas has no
 * time.
 */
export function trackScale({ before, after, path, manager, apiVersion }: TrackScaleInput) {
  const managed = read(before.metadata.managedFields) ?? new Map()
  const fields = path.reduceRight<FieldSet>((inner, step) => ({ [`f:${step}`]: inner }), emptySet)
  const owners = [...managed.values()].filter(owned => !isEmpty(intersection(owned.fields, fields)))
  if (owners.length === 0) return written(managed) // replicas without an owner stay without one
  const replicas = (object: Json): number => path.reduce((node, step) => node?.[step], object) ?? 0
  const self: Owned = { name: manager || "unknown", operation: "Update", apiVersion, subresource: "scale", fields }
  const isChanged = replicas(before) !== replicas(after)
  // A Scale does not write the number zero: the field is absent then, and has no owner.
  const claims = !isChanged ? owners : replicas(after) > 0 ? [self] : []
  const kept = claims.filter(({ operation }) => operation === "Apply")
  const left = [...managed].flatMap(([key, owned]): [string, Owned][] =>
    kept.includes(owned) ? [[key, owned]] : [...released(new Map([[key, owned]]), fields)],
  )
  const moved = claims
    .filter(owner => !kept.includes(owner))
    .map((owner): [string, Owned] => [`scale ${identity(owner)}`, { ...owner, apiVersion, fields, time: undefined }])
  return written(new Map([...left, ...moved]))
}

type Change = Pick<TrackInput, "schema" | "after" | "now" | "resetFields"> & { before: Json }

/** The manager that changes a field owns it; a removed field has no owner. */
function updated(managed: Managed, self: Manager, { schema, before, after, now, resetFields = [] }: Change): Managed {
  const { removed, modified, added } = compare(schema, unmanaged(before), unmanaged(after))
  const taken = without(union(modified, added), resetFields)
  const gone = without(removed, resetFields)
  const left = released(managed, union(taken, gone))
  const mine = stripped(taken)
  if (isEmpty(mine)) return left
  const key = identity(self)
  const fields = union(mine, left.get(key)?.fields ?? emptySet)
  return new Map(left).set(key, { ...self, fields, time: now })
}

/** All managers without these fields. Managers without any fields are dropped. */
function released(managed: Managed, fields: FieldSet, except?: string): Managed {
  if (isEmpty(fields)) return managed
  return new Map(
    [...managed].flatMap(([key, owned]): [string, Owned][] => {
      if (key === except) return [[key, owned]]
      const left = difference(owned.fields, fields)
      return isEmpty(left) ? [] : [[key, { ...owned, fields: left }]]
    }),
  )
}

export type ApplyInput = {
  schema: Schema
  /** The stored object; undefined: the apply creates it. */
  live: Obj | undefined
  /** The applied configuration as sent, not decoded: its error messages differ from those of a body. */
  applied: Json
  manager: string
  force: boolean
  apiVersion: string
  kind: string
  subresource?: string | undefined
  now: string
  resetFields?: readonly string[] | undefined
  isCustom?: boolean | undefined
}

/**
 * Merges an applied configuration into the live object. The result still has to go through defaulting, prepareUpdate
 * and validation like any update; its metadata.managedFields are already right, so it is not tracked again.
 * Throws StatusError: 409 with the server's causes, 400 and 500 for a configuration that cannot be applied.
 */
export function applyServerSide(asked: ApplyInput): Json {
  const input = { ...asked, schema: ofObject(asked.schema) }
  const { schema, live, applied, apiVersion, kind, subresource, now, isCustom = false } = input
  if (applied?.apiVersion !== apiVersion || applied?.kind !== kind)
    throw badRequest(`invalid object type: ${kindText(applied)}`)
  if (applied.metadata?.managedFields) throw badRequest("metadata.managedFields must be nil")
  const problems = problemsOf(schema, applied)
  if (problems.length > 0) throw internal(`failed to create typed patch object (${named(applied)}): ${told(problems)}`)

  const empty = isCustom ? { apiVersion, kind } : emptyObject(schema)
  const start = live ? unmanaged(live) : empty
  const managed = read(live?.metadata.managedFields)
  if (!managed) throw internal("failed to decode managed fields")
  const before =
    managed.size > 0 || !live
      ? managed
      : updated(
          managed,
          { name: "before-first-apply", operation: "Update", apiVersion, subresource },
          {
            ...{ schema, now, before: empty, after: start },
            resetFields: input.resetFields,
          },
        )

  const outcome = applying(input, { start, managed: before })
  const object = outcome.isSame ? start : readable(input, outcome.object)
  const annotated = syncLastApplied(input, object)
  return { ...annotated, metadata: { ...annotated.metadata, managedFields: written(outcome.managed) } }
}

type Start = { start: Json; managed: Managed }
type Applied = { object: Json; managed: Managed; isSame: boolean }

function applying(input: ApplyInput, from: Start): Applied {
  const conflicts: Conflict[] = []
  const result = applyOnce(input, from, conflicts)
  if (input.force || conflicts.length === 0) return result
  const left = input.manager === "kubectl" ? notLastApplied(input, from.start, conflicts) : conflicts
  if (left.length > 0) throw conflictError(left)
  return result
}

type Conflict = { owner: Owned; path: string[] }

function applyOnce(input: ApplyInput, { start, managed }: Start, conflicts: Conflict[]): Applied {
  const { schema, applied, apiVersion, subresource, now, resetFields = [] } = input
  const self: Manager = { name: input.manager, operation: "Apply", apiVersion, subresource }
  const key = identity(self)
  const last = managed.get(key)
  const fields = without(fieldsOf(schema, applied), resetFields)
  const claimed: Managed = new Map(managed).set(key, { ...self, fields, time: last?.time })
  const merged = merge(schema, start, applied)
  const object = pruned(schema, merged, { claimed, last: last?.fields ?? emptySet })

  const { removed, modified, added } = compare(schema, start, object)
  const changed = without(union(modified, added), resetFields)
  for (const [owner, owned] of [...claimed].sort(([one], [other]) => (one < other ? -1 : 1)))
    if (owner !== key)
      for (const path of paths(intersection(owned.fields, changed))) conflicts.push({ owner: owned, path })

  const left = released(claimed, union(changed, without(removed, resetFields)), key)
  // A field emptied by the removal is null here. For a custom resource, no later step makes it absent again.
  const isSame = equalValues(start, object)
  const mine = stripped(fields)
  const after = new Map(left)
  if (isEmpty(mine)) after.delete(key)
  else after.set(key, { ...self, fields: mine, time: isSame ? last?.time : now })
  return { object: input.isCustom ? withoutEmptied(schema, object, merged) : object, managed: after, isSame }
}

/** Removes the fields that this manager no longer applies and no other manager owns. */
function pruned(schema: Schema, merged: Json, { claimed, last }: { claimed: Managed; last: FieldSet }): Json {
  if (isEmpty(last)) return merged
  const withNames = (set: FieldSet) => withNamedFields(schema, set)
  const allOf = (value: Json) => withNames(fieldsOf(schema, value ?? {}))
  const without = remove(schema, merged, withNames(last))
  const owned = [...claimed.values()].reduce((all, { fields }) => union(all, fields), emptySet)
  const kept = remove(schema, merged, difference(allOf(merged), union(allOf(without), withNames(owned))))
  return remove(schema, merged, intersection(difference(allOf(merged), allOf(kept)), withNames(last)))
}

/** kubectl may take over the fields that its own client-side apply wrote and that have not changed since. */
function notLastApplied({ schema, apiVersion }: ApplyInput, live: Json, conflicts: Conflict[]): Conflict[] {
  const text = live.metadata?.annotations?.[lastApplied]
  if (!text) return conflicts
  let configuration: Json
  try {
    configuration = JSON.parse(text)
  } catch {
    return conflicts
  }
  if (configuration?.apiVersion !== apiVersion || problemsOf(schema, configuration).length > 0) return conflicts
  const { removed, modified, added } = compare(schema, configuration, live)
  const allowed = difference(fieldsOf(schema, configuration), union(union(modified, added), removed))
  const isAllowed = ([step, ...rest]: string[], set: FieldSet): boolean =>
    rest.length === 0 ? has(set, step!) : isAllowed(rest, inside(set, step!))
  return conflicts.filter(({ path }) => !isAllowed(path, allowed))
}

/** The last-applied annotation of kubectl's client-side apply is kept current, so that kubectl can return to it. */
function syncLastApplied({ manager, applied }: ApplyInput, object: Json): Json {
  if (manager !== "kubectl" || !object.metadata?.annotations?.[lastApplied]) return object
  const { [lastApplied]: _, ...annotations } = applied.metadata?.annotations ?? {}
  const { annotations: __, ...metadata } = applied.metadata ?? {}
  const kept = Object.keys(annotations).length > 0 ? { annotations } : {}
  const configuration = sortedKeys({ ...applied, metadata: { ...metadata, ...kept } })
  return {
    ...object,
    metadata: {
      ...object.metadata,
      annotations: { ...object.metadata.annotations, [lastApplied]: `${JSON.stringify(configuration)}\n` },
    },
  }
}

function sortedKeys(value: Json): Json {
  if (Array.isArray(value)) return value.map(sortedKeys)
  if (value === null || typeof value !== "object") return value
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map(key => [key, sortedKeys(value[key])]),
  )
}

/** The merged object as the server decodes it into its type. */
function readable({ schema, kind, apiVersion, applied, isCustom = false }: ApplyInput, object: Json): Json {
  try {
    return readValue(schema, object, { kind, isCustom }).value
  } catch (error) {
    if (!(error instanceof WrongValue)) throw error
    throw internal(
      `failed to convert new object (${named(applied)}) to proper version: unable to convert unstructured object to ${kindText({ apiVersion, kind })}: ${error.message}`,
    )
  }
}

/**
 * Whether two versions differ in nothing but the times of their managedFields: then nothing is written, and the old
 * version stays with its times.
 */
export function isIdleUpdate(before: Obj, after: Json): boolean {
  const olds = before.metadata.managedFields ?? []
  const news = after.metadata?.managedFields ?? []
  if (olds.length !== news.length) return false
  const timeless = (entries: readonly ManagedFields[]) => entries.map(({ time: _, ...entry }) => entry)
  return equalValues(timeless(olds), timeless(news)) && equalValues(unmanaged(before), unmanaged(after))
}

/** The field manager of a request; by default the client's program. */
export function managerName(fieldManager: string | undefined, userAgent: string | undefined): string {
  if (fieldManager) return fieldManager
  const program = (userAgent ?? "").split("/")[0]!.slice(0, 128)
  return [...program].filter(character => character >= " ").join("") || "unknown"
}

function unmanaged(object: Json): Json {
  if (object.metadata?.managedFields === undefined) return object
  const { managedFields: _, ...metadata } = object.metadata
  return { ...object, metadata }
}

function stripped(fields: FieldSet): FieldSet {
  const out: Record<string, FieldSet> = {}
  for (const step in fields) {
    if (unowned.has(step)) continue
    if (step !== "f:metadata") out[step] = fields[step]!
    else {
      const metadata: Record<string, FieldSet> = {}
      for (const inner in fields[step])
        if (inner !== "." && !unownedMetadata.has(inner)) metadata[inner] = fields[step][inner]!
      if (!isEmpty(metadata)) out[step] = metadata
    }
  }
  return out
}

const identity = ({ name, operation, apiVersion, subresource = "" }: Manager) =>
  JSON.stringify([name, operation, operation === "Apply" ? "" : apiVersion, subresource])

/** The managers of an object; undefined if the entries cannot be parsed. */
function read(entries: readonly ManagedFields[] | undefined | null): Managed | undefined {
  const managed: Managed = new Map()
  for (const { manager: name = "", operation, apiVersion, subresource, time, fieldsType, fieldsV1 = {} } of entries ??
    []) {
    const isReadable = (operation === "Apply" || operation === "Update") && apiVersion && fieldsType === "FieldsV1"
    if (!isReadable || !isFieldSet(fieldsV1)) return undefined
    const owned = { name, operation, apiVersion, subresource, time, fields: fieldsV1 }
    managed.set(identity(owned), owned)
  }
  return managed
}

/** Appliers before updaters, then by time. */
function written(managed: Managed): ManagedFields[] | undefined {
  if (managed.size === 0) return undefined
  const seconds = ({ time }: Owned) => (time ? Date.parse(time) : 0)
  const text = (one: string, other: string) => (one < other ? -1 : one > other ? 1 : 0)
  return [...managed.values()]
    .sort(
      (one, other) =>
        text(one.operation, other.operation) ||
        seconds(one) - seconds(other) ||
        text(one.name, other.name) ||
        text(one.apiVersion, other.apiVersion) ||
        text(one.subresource ?? "", other.subresource ?? ""),
    )
    .map(({ name, operation, apiVersion, subresource, time, fields }) => ({
      ...{ manager: name, operation, apiVersion },
      ...(time && { time }),
      ...{ fieldsType: "FieldsV1" as const, fieldsV1: shared(fields) },
      ...(subresource && { subresource }),
    }))
}

/** Past ten updaters, the oldest of a version share one entry. */
function capped(managed: Managed): Managed {
  const updaters = [...managed].filter(([, { operation }]) => operation === "Update")
  if (updaters.length <= mostUpdaters) return managed
  const seconds = ({ time }: Owned) => (time ? Date.parse(time) : 0)
  updaters.sort(([one, left], [other, right]) => seconds(left) - seconds(right) || (one < other ? -1 : 1))
  const out = new Map(managed)
  const first = new Map<string, string>()
  let count = updaters.length
  for (const [key, owned] of updaters) {
    if (count <= mostUpdaters) break
    const { apiVersion } = owned
    const bucket: Manager = { name: "ancient-changes", operation: "Update", apiVersion }
    const into = identity(bucket)
    const oldest = first.get(apiVersion)
    if (oldest === undefined) {
      first.set(apiVersion, key)
      continue
    }
    if (!out.has(into)) {
      const { fields, time } = out.get(oldest)!
      out.delete(oldest)
      out.set(into, { ...bucket, fields, time })
    }
    out.set(into, { ...bucket, fields: union(owned.fields, out.get(into)!.fields), time: owned.time })
    out.delete(key)
    count--
  }
  return out
}

const badRequest = (message: string) => new StatusError(400, "BadRequest", message)
const internal = (message: string) => new StatusError(500, "", message)

const told = (problems: string[]) =>
  problems.length === 1 ? problems[0] : ["errors:", ...problems.map(problem => `  ${problem}`)].join("\n")

const named = (object: Json) =>
  `${object.metadata?.namespace ?? ""}/${object.metadata?.name ?? ""}; ${kindText(object)}`

function conflictError(conflicts: Conflict[]): StatusError {
  const causes: Cause[] = conflicts.map(({ owner, path }) => ({
    reason: "FieldManagerConflict",
    message: `conflict with ${shown(owner)}`,
    field: pathText(path),
  }))
  return new StatusError(409, "Conflict", conflictText(conflicts), { causes })
}

function conflictText(conflicts: Conflict[]): string {
  const [first] = conflicts
  if (conflicts.length === 1 && first)
    return `Apply failed with 1 conflict: conflict with ${shown(first.owner)}: ${pathText(first.path)}`
  const byOwner = Map.groupBy(conflicts, ({ owner }) => owner)
  const lines = [...byOwner].flatMap(([owner, of]) => [
    `conflicts with ${shown(owner)}:`,
    ...of.map(({ path }) => `- ${pathText(path)}`),
  ])
  return `Apply failed with ${conflicts.length} conflicts: ${lines.join("\n")}`
}

function shown({ name, operation, apiVersion, subresource }: Owned): string {
  const manager = JSON.stringify(name) + (subresource ? ` with subresource ${JSON.stringify(subresource)}` : "")
  return operation === "Update" ? `${manager} using ${apiVersion}` : manager
}
