import type { Json } from "../object.ts"

/**
 * A set of fields in its stored form (FieldsV1). Each key is a step of a path (`f:spec`, `k:{"name":"c"}`, `v:"x"`). A
 * node without children is a member; a node with children is a member if it has ".". Working on the stored form saves
 * parsing and writing it at every update. Sets are immutable, so they share parts.
 */
export type FieldSet = { readonly [step: string]: FieldSet }

export const emptySet: FieldSet = {}

const leaf: FieldSet = {}
const self = "."

const hasSteps = (set: FieldSet) => {
  for (const step in set) if (step !== self) return true
  return false
}

/** Whether the node itself is in the set, besides the nodes below it. */
const isMember = (node: FieldSet) => Object.hasOwn(node, self) || !hasSteps(node)

/** A node from its parts; undefined if it would be empty. */
function node(member: boolean, children: FieldSet): FieldSet | undefined {
  if (!hasSteps(children)) return member ? leaf : undefined
  return member ? { [self]: leaf, ...children } : children
}

export const isEmpty = (set: FieldSet) => !hasSteps(set)

/** Combines two sets step by step; `keep` decides on membership. */
function combine(left: FieldSet, right: FieldSet, keep: (inLeft: boolean, inRight: boolean) => boolean): FieldSet {
  const out: Record<string, FieldSet> = {}
  const visit = (step: string) => {
    if (step === self || Object.hasOwn(out, step)) return
    const one = left[step]
    const other = right[step]
    const combined =
      one && other
        ? node(keep(isMember(one), isMember(other)), combine(one, other, keep))
        : keep(one !== undefined, other !== undefined) && (one ?? other) // the whole branch, or none of it
    if (combined) out[step] = combined
  }
  for (const step in left) visit(step)
  for (const step in right) visit(step)
  return out
}

export function union(left: FieldSet, right: FieldSet): FieldSet {
  if (isEmpty(left)) return withoutSelf(right)
  if (isEmpty(right)) return withoutSelf(left)
  return combine(left, right, (one, other) => one || other)
}

export function intersection(left: FieldSet, right: FieldSet): FieldSet {
  if (isEmpty(left) || isEmpty(right)) return emptySet
  return combine(left, right, (one, other) => one && other)
}

export function difference(left: FieldSet, right: FieldSet): FieldSet {
  if (isEmpty(left) || isEmpty(right)) return withoutSelf(left)
  return combine(left, right, (one, other) => one && !other)
}

function withoutSelf(set: FieldSet): FieldSet {
  if (!Object.hasOwn(set, self)) return set
  const { [self]: _, ...rest } = set
  return rest
}

/** Without these fields and all below them, each a dotted path of field names. */
export function without(set: FieldSet, paths: readonly string[]): FieldSet {
  return paths.reduce((left, path) => cut(left, path.split(".")), set)
}

function cut(set: FieldSet, [name, ...rest]: string[]): FieldSet {
  const step = `f:${name}`
  const child = set[step]
  if (child === undefined) return set
  const { [step]: _, ...others } = set
  if (rest.length === 0) return others
  const left = cut(withoutSelf(child), rest)
  const kept = node(isMember(child), left)
  return kept ? { ...others, [step]: kept } : others
}

/** Whether the field is in the set. */
export function has(set: FieldSet, step: string): boolean {
  const child = set[step]
  return child !== undefined && isMember(child)
}

/** The set of the fields below a field. */
export const inside = (set: FieldSet, step: string): FieldSet => withoutSelf(set[step] ?? emptySet)

/** Adds a path to a set that is still being made. */
export function insert(set: Record<string, Json>, path: readonly string[]) {
  let at = set
  for (let index = 0; index < path.length; index++) {
    const step = path[index]!
    const next = at[step]
    const isLast = index === path.length - 1
    if (next === undefined) at[step] = {}
    else if (isLast && hasSteps(next)) next[self] = {}
    else if (!isLast && !hasSteps(next)) next[self] = {}
    at = at[step]
  }
}

/**
 * Returns one shared set for equal sets. Ten thousand pods of a workload have equal sets, and a set is larger than the
 * rest of a small pod.
 */
export function shared(set: FieldSet): FieldSet {
  const text = JSON.stringify(set)
  const known = sets.get(text)
  if (known) return known
  if (sets.size >= mostShared) sets.clear() // sets in use stay referenced by their objects
  sets.set(text, set)
  ours.add(set)
  return set
}

/** Sets that were made here need no second check. */
const ours = new WeakSet<FieldSet>()

const sets = new Map<string, FieldSet>()
const mostShared = 5_000

/** Every member, in the server's order: the members of a level, then those below it. */
export function paths(set: FieldSet, prefix: readonly string[] = []): string[][] {
  const steps = Object.keys(set)
    .filter(step => step !== self)
    .sort(byStep)
  const members = steps.filter(step => isMember(set[step]!)).map(step => [...prefix, step])
  return [...members, ...steps.flatMap(step => paths(set[step]!, [...prefix, step]))]
}

/** Fields before keys before values before indexes, as the server orders them. */
function byStep(left: string, right: string): number {
  const rank = (step: string) => "fkvi".indexOf(step[0]!)
  return rank(left) - rank(right) || (left < right ? -1 : left > right ? 1 : 0)
}

/** `.spec.template.spec.containers[name="c"].image` */
export const pathText = (path: readonly string[]) =>
  path
    .map(step => {
      const rest = step.slice(2)
      if (step.startsWith("f:")) return `.${rest}`
      if (step.startsWith("v:")) return `[=${rest}]`
      if (step.startsWith("i:")) return `[${rest}]`
      const keys = Object.entries(JSON.parse(rest)).map(([name, value]) => `${name}=${JSON.stringify(value)}`)
      return `[${keys.join(",")}]`
    })
    .join("")

/** Whether this is a valid set. Clients may write managedFields, so it can be anything. */
export const isFieldSet = (value: Json): value is FieldSet => ours.has(value) || isReadable(value)

const isReadable = (value: Json): boolean =>
  typeof value === "object" && value !== null && !Array.isArray(value) && Object.values(value).every(isReadable)
