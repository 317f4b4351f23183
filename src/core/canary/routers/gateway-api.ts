import { isSame } from "#lib/same.ts"
import {
  annotationsOf,
  fieldsOf,
  isMade,
  labelsOf,
  ownerOf,
  savedIn,
  undone,
  withMetadata,
  written,
} from "../before.ts"
import type { Accepted, RouteContext, RouteObject, Router, Split } from "../router.ts"
import { strategyOf } from "../steps.ts"
import { type Division, divided, isDivided, isMirrored, isToDivide, undivided, weightIn } from "./gateway-division.ts"
import { gatewayProblems } from "./gateway-problems.ts"
import { hostnamesOf, parentRefsOf, ruleOf } from "./gateway-rule.ts"
import type { Condition, ParentRef, ParentStatus, Rule } from "./http-route.ts"

const kind = { group: "gateway.networking.k8s.io", version: "v1", kind: "HTTPRoute", plural: "httproutes" } as const

const rulesIn = ({ spec }: RouteObject) => (fieldsOf(spec).rules ?? []) as readonly Rule[]
const divisionsIn = (object: RouteObject) => {
  const { divisions } = savedIn(object)
  return Array.isArray(divisions) ? (divisions as readonly Division[]) : undefined
}

/** A divided rule, those that were put before it, and what was done. */
type Group = { readonly first: readonly Rule[]; readonly rule: Rule; readonly division: Partial<Division> }

/**
 * The rules of a route, with ours taken together. Where the route has changed since and the counts do not fit any more,
 * the last of divided rules side by side is the one that was there before.
 */
function grouped(object: RouteObject, context: RouteContext): readonly (Rule | Group)[] {
  const divisions = divisionsIn(object)
  const rules = rulesIn(object)
  const ours = rules.filter(rule => isDivided(rule, context))
  // Without a note, a rule with both revisions is its owner's.
  if (!divisions) return rules
  const fits = ours.length === divisions.reduce((sum, { before }) => sum + before + 1, 0)
  const ends = new Map<Rule, Partial<Division>>()
  let end = -1
  for (const division of fits ? divisions : []) {
    end += division.before + 1
    if (ours[end]) ends.set(ours[end]!, division)
  }
  let waiting: Rule[] = []
  return rules.flatMap((rule, index): (Rule | Group)[] => {
    if (!isDivided(rule, context)) return [rule]
    const next = rules[index + 1]
    const isEnd = fits ? ends.has(rule) : !(next && isDivided(next, context))
    if (!isEnd) {
      waiting.push(rule)
      return []
    }
    const first = waiting
    waiting = []
    return [{ first, rule, division: ends.get(rule) ?? { isMirrored: true } }]
  })
}

const isGroup = (each: Rule | Group): each is Group => "division" in each

/** The route as its owner has it. */
function baseOf(object: RouteObject, context: RouteContext): RouteObject {
  const rules = grouped(object, context).map(each =>
    isGroup(each) ? undivided(each.rule, context, each.division) : each,
  )
  const saved = savedIn(object)
  return withMetadata(
    { ...object, ...(object.spec !== undefined && { spec: { ...fieldsOf(object.spec), rules } }) },
    { labels: undone(labelsOf(object), saved.labels), annotations: undone(annotationsOf(object), saved.annotations) },
  )
}

function newRoute({ canary, services }: RouteContext): RouteObject {
  const { namespace } = canary.metadata
  return {
    apiVersion: `${kind.group}/${kind.version}`,
    kind: kind.kind,
    metadata: {
      name: services.apex,
      ...(namespace !== undefined && { namespace }),
      ownerReferences: [ownerOf(canary)],
    },
  }
}

/** A route that was made for the Canary follows its spec. Rules that others have added stay. */
function followed(base: RouteObject, context: RouteContext) {
  const { canary } = context
  const there = rulesIn(base)
  const place = there.findIndex(rule => isToDivide(rule, context))
  const foreign = (rules: readonly Rule[]) => rules.filter(rule => !isToDivide(rule, context))
  const at = Math.max(0, place)
  const hostnames = hostnamesOf(canary)
  const { hostnames: _, ...spec } = fieldsOf(base.spec)
  const { labels = {}, annotations = {} } = canary.spec.service?.apex ?? {}
  const unmanaged = canary.spec.service?.unmanagedMetadata
  const managed = (map: Readonly<Record<string, string>>, now: object, keys: readonly string[] = []) =>
    Object.fromEntries(Object.entries(map).filter(([key]) => !(keys.includes(key) && Object.hasOwn(now, key))))
  return {
    spec: { ...spec, parentRefs: parentRefsOf(canary), ...(hostnames.length > 0 && { hostnames }) },
    rules: [...foreign(there.slice(0, at)), ruleOf(context), ...foreign(there.slice(at))],
    labels: written(labelsOf(base), managed(labels, labelsOf(base), unmanaged?.labels)),
    annotations: written(annotationsOf(base), managed(annotations, annotationsOf(base), unmanaged?.annotations)),
  }
}

/** Foreign rules, filters and fields stay; only the backends of rules that reach our Services are divided. */
const kept = (base: RouteObject) => ({
  spec: fieldsOf(base.spec),
  rules: rulesIn(base),
  labels: { next: labelsOf(base), before: {} },
  annotations: { next: annotationsOf(base), before: {} },
})

function routed(context: RouteContext, existing: RouteObject | undefined, split: Split): RouteObject {
  const base = existing ? baseOf(existing, context) : newRoute(context)
  const { spec, rules, labels, annotations } = isMade(base) ? followed(base, context) : kept(base)
  const divisions: Division[] = []
  const next = rules.flatMap(rule => {
    if (!isToDivide(rule, context)) return [rule]
    const parts = divided(rule, context, split)
    divisions.push({
      before: parts.length - 1,
      // A rule of our own is written from the spec.
      ...(!isMade(base) && { refs: rule.backendRefs! }),
      ...(split.isMirrored && { isMirrored: true }),
    })
    return parts
  })
  const changed = existing === undefined || existing.spec !== undefined ? { spec: { ...spec, rules: next } } : {}
  return withMetadata(
    { ...base, ...changed },
    {
      labels: labels.next,
      annotations: annotations.next,
      saved: { divisions, labels: labels.before, annotations: annotations.before },
    },
  )
}

function splitIn(context: RouteContext, existing: RouteObject): Split | undefined {
  const all = grouped(existing, context)
  // One that its owner has put back, beside others that are divided, is to be divided again.
  if (all.some(each => !isGroup(each) && isToDivide(each, context) && !isDivided(each, context))) return undefined
  const hasNote = divisionsIn(existing) !== undefined
  const groups = all.flatMap((each): Group[] => {
    if (isGroup(each)) return [each]
    return !hasNote && isDivided(each, context) ? [{ first: [], rule: each, division: {} }] : []
  })
  const splits = groups.map(group => splitOf(group, context))
  return splits.length > 0 && splits.every(split => split && isSame(split, splits[0])) ? splits[0] : undefined
}

function splitOf({ first, rule }: Group, context: RouteContext): Split | undefined {
  const isMatched = strategyOf(context.canary.spec.analysis) === "HeaderOrCookie"
  const weight = weightIn(isMatched && first.length > 0 ? first[0]! : rule, context)
  if (weight === undefined) return undefined
  return { weight, isMirrored: isMirrored(rule, context) }
}

const groupOf = ({ group = kind.group }: ParentRef) => (group === "core" ? "" : group)

/** A reference without a namespace is to the route's own. */
const isParent = (wanted: ParentRef, found: ParentRef, namespace: string | undefined) =>
  groupOf(wanted) === groupOf(found) &&
  (wanted.kind ?? "Gateway") === (found.kind ?? "Gateway") &&
  wanted.name === found.name &&
  (wanted.namespace ?? namespace) === (found.namespace ?? namespace) &&
  wanted.sectionName === found.sectionName &&
  wanted.port === found.port

const no = (why: string): Accepted => ({ ok: false, why })

function isAccepted(context: RouteContext, existing: RouteObject): Accepted {
  const { namespace, name, generation } = existing.metadata
  if (!rulesIn(existing).some(rule => isToDivide(rule, context)))
    return no(
      `no rule of HTTPRoute ${name} sends requests to Service ${context.services.apex}: add a backendRef to one`,
    )
  const parents = (fieldsOf(existing.status).parents ?? []) as readonly ParentStatus[]
  const named = (fieldsOf(existing.spec).parentRefs ?? []) as readonly ParentRef[]
  for (const parent of parentRefsOf(context.canary)) {
    const what = `${parent.kind ?? "Gateway"} ${parent.name}`
    if (!named.some(each => isParent(parent, each, namespace)))
      return no(
        `HTTPRoute ${name} is not attached to ${what}: add it to parentRefs, or take it from service.gatewayRefs`,
      )
    // Two controllers may report about one parent: it is enough that one serves it.
    const reports = parents.filter(({ parentRef }) => isParent(parent, parentRef, namespace))
    if (reports.length === 0) return no(`${what} has not reported about HTTPRoute ${name}`)
    const refusals = reports.map(({ conditions = [] }) => refusalOf(conditions, what, generation))
    if (!refusals.includes(undefined)) return no(refusals[0]!)
  }
  return { ok: true }
}

function refusalOf(conditions: readonly Condition[], what: string, generation: number | undefined): string | undefined {
  for (const type of ["Accepted", "ResolvedRefs"]) {
    const found = conditions.find(condition => condition.type === type)
    if (!found || found.observedGeneration !== generation) return `${what} has not looked at the route as it is now`
    if (found.status !== "True")
      return `${what} says ${type}=${found.status}, ${found.reason ?? "without a reason"}: ${found.message ?? ""}`.slice(
        0,
        300,
      )
  }
  return undefined
}

/** Weights and matches in an HTTPRoute. `gatewayapi:v1beta1` is Flagger's word for older servers; v1 is the same object. */
export const gatewayApi: Router = {
  providers: ["gatewayapi", "gatewayapi:v1", "gatewayapi:v1beta1"],
  kind,
  nameOf: ({ services }) => services.apex,
  problemsOf: gatewayProblems,
  routed,
  splitIn,
  isAccepted,
  restored: (context, existing) => (isMade(existing) ? undefined : baseOf(existing, context)),
}
