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
import type { RouteContext, RouteObject, Router, Split } from "../router.ts"
import { strategyOf } from "../steps.ts"
import { type Division, isDivided, isMirrored, isToDivide, undivided, weightIn } from "./gateway-division.ts"
import { awayFrom, stageOf, towards } from "./gateway-stages.ts"
import type { Rule } from "./http-route.ts"

type Fields = Readonly<Record<string, unknown>>
type Services = RouteContext["services"]

/**
 * What the kinds of routes have apart. All of them have rules that name Services with weights; how rules are found,
 * divided, staged and given back is the same for all, and speaks of rules as an HTTPRoute does.
 */
export type Dialect = Pick<Router, "providers" | "kind" | "problemsOf"> & {
  /** The object is as `read` gives it. */
  readonly isAccepted: Router["isAccepted"]
  /**
   * What serves it takes routes and Services over together, or refuses a route that names a Service without pods: there are
   * no stages.
   */
  readonly isAtOnce?: true
  /**
   * A spec with `rules`. What an HTTPRoute has no word for stays as it is. `own` are our Services where the object is
   * divided by us: one without a share may be missing in it.
   */
  read(spec: Fields, own?: Services): Fields
  /** The same, written back. `own` where it is divided. */
  write(spec: Fields, own?: Services): Fields
  /** The rules of a route that is made: requests go to the Service that clients use, and are divided later. */
  rulesOf(context: RouteContext): readonly Rule[]
  /** What else the spec of such a route says. */
  followed(spec: Fields, context: RouteContext): Fields
  /** One rule, divided. Rules that come first are for requests that are told apart. */
  divided(rule: Rule, context: RouteContext, split: Split): readonly Rule[]
}

export const rulesIn = ({ spec }: RouteObject) => (fieldsOf(spec).rules ?? []) as readonly Rule[]

const divisionsIn = (object: RouteObject) => {
  const { divisions } = savedIn(object)
  return Array.isArray(divisions) ? (divisions as readonly Division[]) : undefined
}

/** A rule that we have divided. One in which our Services have no share is its owner's. */
const isOurs = (rule: Rule, context: RouteContext) => isDivided(rule, context) && isToDivide(rule, context)

/** A divided rule, those that were put before it, and what was done. */
type Group = { readonly first: readonly Rule[]; readonly rule: Rule; readonly division: Partial<Division> }

/**
 * The rules of a route, with ours taken together. Where the route has changed since and the counts do not fit any more,
 * the last of divided rules side by side is the one that was there before.
 */
function grouped(object: RouteObject, context: RouteContext): readonly (Rule | Group)[] {
  const divisions = divisionsIn(object)
  const rules = rulesIn(object)
  const ours = rules.filter(rule => isOurs(rule, context))
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
    if (!isOurs(rule, context)) return [rule]
    const next = rules[index + 1]
    const isEnd = fits ? ends.has(rule) : !(next && isOurs(next, context))
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

/** The rules as their owner has them, each beside what stands in its place. */
const rulesBefore = (object: RouteObject, context: RouteContext) =>
  grouped(object, context).map(each =>
    isGroup(each)
      ? {
          base: undivided(each.rule, context, each.division),
          parts: [...each.first, each.rule],
          division: each.division,
        }
      : { base: each, parts: [each] },
  )

/** The route as its owner has it. */
function baseOf(object: RouteObject, context: RouteContext): RouteObject {
  const rules = rulesBefore(object, context).map(({ base }) => base)
  const saved = savedIn(object)
  return withMetadata(
    { ...object, ...(object.spec !== undefined && { spec: { ...fieldsOf(object.spec), rules } }) },
    { labels: undone(labelsOf(object), saved.labels), annotations: undone(annotationsOf(object), saved.annotations) },
  )
}

function newRoute({ kind }: Dialect, { canary, services }: RouteContext): RouteObject {
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
function followed(dialect: Dialect, base: RouteObject, context: RouteContext) {
  const { canary } = context
  const there = rulesIn(base)
  const place = there.findIndex(rule => isToDivide(rule, context))
  const foreign = (rules: readonly Rule[]) => rules.filter(rule => !isToDivide(rule, context))
  const at = Math.max(0, place)
  const { labels = {}, annotations = {} } = canary.spec.service?.apex ?? {}
  const unmanaged = canary.spec.service?.unmanagedMetadata
  const managed = (map: Readonly<Record<string, string>>, now: object, keys: readonly string[] = []) =>
    Object.fromEntries(Object.entries(map).filter(([key]) => !(keys.includes(key) && Object.hasOwn(now, key))))
  return {
    spec: dialect.followed(fieldsOf(base.spec), context),
    rules: [...foreign(there.slice(0, at)), ...dialect.rulesOf(context), ...foreign(there.slice(at))],
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

function routed(dialect: Dialect, context: RouteContext, existing: RouteObject | undefined, split: Split): RouteObject {
  const base = existing ? baseOf(existing, context) : newRoute(dialect, context)
  const { spec, rules, labels, annotations } = isMade(base) ? followed(dialect, base, context) : kept(base)
  const standing = existing && !isMade(existing) ? rulesBefore(existing, context) : []
  const divisions: Division[] = []
  const next = rules.flatMap((rule, index) => {
    if (!isToDivide(rule, context)) return [rule]
    const now = standing[index]?.parts.at(-1)
    const whole = dialect.divided(rule, context, split)
    const parts = now && !dialect.isAtOnce ? towards(rule, now, context, whole) : whole
    // A rule of our own is written from the spec.
    divisions.push(noteOf(parts, rule, { ...(!isMade(base) && { refs: rule.backendRefs! }) }))
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

/** Copies are noted where these rules make them: a filter of its owner's may look the same. */
const noteOf = (rules: readonly Rule[], base: Rule, { refs }: Partial<Division>): Division => ({
  before: rules.length - 1,
  ...(refs && { refs }),
  ...((rules.at(-1)!.filters?.length ?? 0) > (base.filters?.length ?? 0) && { isMirrored: true }),
})

function splitIn(context: RouteContext, existing: RouteObject): Split | undefined {
  const all = grouped(existing, context)
  // One that its owner has put back, beside others that are divided, is to be divided again.
  if (all.some(each => !isGroup(each) && isToDivide(each, context) && !isDivided(each, context))) return undefined
  const hasNote = divisionsIn(existing) !== undefined
  const groups = all.flatMap((each): Group[] => {
    if (isGroup(each)) return [each]
    return !hasNote && isDivided(each, context) ? [{ first: [], rule: each, division: {} }] : []
  })
  if (isUnderWay(context, existing)) return undefined
  const splits = groups.map(group => splitOf(group, context))
  return splits.length > 0 && splits.every(split => split && isSame(split, splits[0])) ? splits[0] : undefined
}

const isUnderWay = (context: RouteContext, existing: RouteObject): boolean =>
  rulesIn(existing).some(rule => ["Joined", "Passed"].includes(stageOf(rule, context)))

/** The next stage on the way back. */
function restored({ isAtOnce }: Dialect, context: RouteContext, existing: RouteObject): RouteObject | undefined {
  if (isMade(existing)) return undefined
  const owners = baseOf(existing, context)
  if (isAtOnce) return owners
  const next = rulesBefore(existing, context).map(({ base, parts, division }) => ({
    ...{ base, parts, division },
    rules: division ? awayFrom(parts, base, context) : parts,
  }))
  const isLast = next.every(({ base, rules }) => rules.at(-1) === base)
  if (isLast) return owners
  // All go the last step together: until then one note is about all of them.
  const staged = next.map(each => (each.rules.at(-1) === each.base ? { ...each, rules: each.parts } : each))
  const divisions = staged.flatMap(({ rules, base, division }) => (division ? [noteOf(rules, base, division)] : []))
  const spec = { ...fieldsOf(owners.spec), rules: staged.flatMap(({ rules }) => rules) }
  const [labels, annotations] = [labelsOf(owners), annotationsOf(owners)]
  return withMetadata({ ...owners, spec }, { labels, annotations, saved: { divisions } })
}

function splitOf({ first, rule }: Group, context: RouteContext): Split | undefined {
  const isMatched = strategyOf(context.canary.spec.analysis) === "HeaderOrCookie"
  const weight = weightIn(isMatched && first.length > 0 ? first[0]! : rule, context)
  if (weight === undefined) return undefined
  return { weight, isMirrored: isMirrored(rule, context) }
}

/** A router of routes with rules. */
export function routeRouter(dialect: Dialect): Router {
  const { providers, kind, problemsOf } = dialect
  const withSpec = (object: RouteObject, change: (spec: Fields) => Fields): RouteObject =>
    object.spec === undefined ? object : { ...object, spec: change(fieldsOf(object.spec)) }
  const read = ({ services }: RouteContext, object: RouteObject) => {
    const own = isMade(object) || divisionsIn(object) ? services : undefined
    return withSpec(object, spec => dialect.read(spec, own))
  }
  const write = (object: RouteObject, own?: Services) => withSpec(object, spec => dialect.write(spec, own))
  return {
    ...{ providers, kind, problemsOf },
    nameOf: ({ services }) => services.apex,
    routed(context, existing, split) {
      const there = existing && read(context, existing)
      return write(routed(dialect, context, there, split), context.services)
    },
    splitIn: (context, existing) => splitIn(context, read(context, existing)),
    isUnderWay: (context, existing) => isUnderWay(context, read(context, existing)),
    isAccepted: (context, existing) => dialect.isAccepted(context, read(context, existing)),
    restored(context, existing) {
      const next = restored(dialect, context, read(context, existing))
      return next && write(next)
    },
  }
}
