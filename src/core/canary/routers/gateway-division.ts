import type { SessionAffinity } from "#api/v1alpha1/canary/index.ts"
import { isSame } from "#lib/same.ts"
import type { RouteContext, Split } from "../router.ts"
import { strategyOf } from "../steps.ts"
import { analysisMatches, goDurationMs } from "./gateway-rule.ts"
import {
  bothOf,
  type Filter,
  type Match,
  matchesOf,
  quoted,
  type Ref,
  type Rule,
  withAnswerHeader,
} from "./http-route.ts"

/** What was done to one rule: how many were put before it, and what its backends were. */
export type Division = { readonly before: number; readonly refs?: readonly Ref[]; readonly isMirrored?: true }

type Services = Pick<RouteContext, "services" | "canary">

const isService = ({ group = "", kind = "Service", namespace }: Ref, { canary }: Services) =>
  (group === "" || group === "core") &&
  kind === "Service" &&
  (namespace === undefined || namespace === canary.metadata.namespace)

export const names = (rule: Rule, context: Services, role: keyof RouteContext["services"]) =>
  (rule.backendRefs ?? []).some(ref => ref.name === context.services[role] && isService(ref, context))

export const isOwn = (context: Services) => (ref: Ref) =>
  Object.values(context.services).includes(ref.name) && isService(ref, context)

/** A rule that has been divided: both revisions stand in it, one of them perhaps with no share. */
export const isDivided = (rule: Rule, context: Services) =>
  names(rule, context, "source") && names(rule, context, "target")

/**
 * A rule to divide. One that names the target's Service alone is its owner's way to the new revision, by a header for
 * instance, and stays as it is. So does one in which our Services have no share.
 */
export const isToDivide = (rule: Rule, context: Services) =>
  (names(rule, context, "apex") || names(rule, context, "source")) &&
  (rule.backendRefs ?? []).some(ref => isOwn(context)(ref) && weightOf(ref) > 0)

export const weightOf = ({ weight = 1 }: Ref) => weight

type Change = (filters: readonly Filter[] | undefined) => readonly Filter[]

/** Our backends with these weights in place of those that were there. A foreign one beside them keeps its share. */
export function refsOf(
  rule: Rule,
  context: RouteContext,
  weight: number,
  filters: { readonly source?: Change; readonly target?: Change } = {},
): readonly Ref[] {
  const { backendRefs = [] } = rule
  const own = backendRefs.filter(isOwn(context))
  const isAlone = own.length === backendRefs.length
  const share = isAlone ? 1 : own.reduce((sum, ref) => sum + weightOf(ref), 0)
  const [first] = own
  const ref = (role: "source" | "target", part: number): Ref => {
    const changed = filters[role]?.(first!.filters)
    return { ...first!, name: context.services[role], weight: share * part, ...(changed && { filters: changed }) }
  }
  return backendRefs.flatMap(each => {
    if (each === first) return [ref("source", 100 - weight), ref("target", weight)]
    return isOwn(context)(each) ? [] : [{ ...each, weight: 100 * weightOf(each) }]
  })
}

const cookieMatch = (cookie: string): readonly Match[] => [
  { headers: [{ type: "RegularExpression", name: "Cookie", value: `(.*; *)?${quoted(cookie)}(;.*)?` }] },
]

type Lifetime = { readonly maxAge: number }

function cookieText(cookie: string, affinity: SessionAffinity, { maxAge }: Lifetime): string {
  const { domain, path, httpOnly, secure, partitioned, sameSite } = affinity
  return [
    cookie,
    `Max-Age=${maxAge}`,
    domain && `Domain=${domain}`,
    path && `Path=${path}`,
    httpOnly && "HttpOnly",
    secure && "Secure",
    partitioned && "Partitioned",
    sameSite && `SameSite=${sameSite}`,
  ]
    .filter(Boolean)
    .join("; ")
}

const setting = (cookie: string, affinity: SessionAffinity, lifetime: Lifetime) => (filters?: readonly Filter[]) =>
  withAnswerHeader(filters, { name: "Set-Cookie", value: cookieText(cookie, affinity, lifetime) })

const dayS = 86_400

/**
 * One rule, divided. Rules that come first are for requests that are told apart: those that match, and those of clients
 * that stay with a revision.
 */
export function divided(rule: Rule, context: RouteContext, split: Split): readonly Rule[] {
  const { canary, cookies } = context
  const { analysis } = canary.spec
  const { sessionAffinity: affinity } = analysis
  const { weight } = split
  const mirrored = split.isMirrored ? { filters: [...(rule.filters ?? []), mirrorTo(rule, context)] } : {}
  const base: Rule = { ...rule, ...mirrored }
  const first = (matches: readonly Match[], change: Partial<Rule>): Rule => ({
    ...rule,
    matches: bothOf(matches, matchesOf(rule)),
    ...change,
  })

  if (strategyOf(analysis) === "HeaderOrCookie" && weight > 0)
    return [
      first(analysisMatches(canary), { backendRefs: refsOf(rule, context, weight) }),
      { ...base, backendRefs: refsOf(rule, context, 0) },
    ]

  if (affinity && weight > 0 && cookies?.target) {
    const source =
      affinity.primaryCookieName && cookies.source
        ? { text: cookies.source, maxAge: Math.max(1, Math.round(goDurationMs(analysis.interval) / 1000)) }
        : undefined
    const filters = {
      target: setting(cookies.target, affinity, { maxAge: affinity.maxAge || dayS }),
      ...(source && { source: setting(source.text, affinity, source) }),
    }
    return [
      first(cookieMatch(cookies.target), { backendRefs: refsOf(rule, context, 100) }),
      ...(source ? [first(cookieMatch(source.text), { backendRefs: refsOf(rule, context, 0) })] : []),
      { ...base, backendRefs: refsOf(rule, context, weight, filters) },
    ]
  }

  const plain = { ...base, backendRefs: refsOf(rule, context, weight) }
  if (affinity && weight === 0 && cookies?.previous)
    return [
      first(cookieMatch(cookies.previous), {
        filters: setting(cookies.previous, affinity, { maxAge: -1 })(rule.filters),
        backendRefs: refsOf(rule, context, 0),
      }),
      plain,
    ]
  return [plain]
}

/** Copies go to the target. What a copy is answered, no client sees. */
export function mirrorTo({ backendRefs = [] }: Rule, context: RouteContext): Filter {
  const { mirrorWeight = 100 } = context.canary.spec.analysis
  const { weight: _, filters: _filters, ...own } = backendRefs.find(isOwn(context))!
  const percent = mirrorWeight > 0 && mirrorWeight < 100 ? { percent: mirrorWeight } : {}
  return {
    type: "RequestMirror",
    requestMirror: { backendRef: { group: "", kind: "Service", ...own, name: context.services.target }, ...percent },
  }
}

const isMirrorTo =
  ({ services }: Services) =>
  ({ requestMirror }: Filter) =>
    requestMirror?.backendRef.name === services.target

export const isMirrored = ({ filters = [] }: Rule, context: Services) => filters.some(isMirrorTo(context))

/** The percentage that a divided rule gives to the target; undefined where neither side has a share. */
export function weightIn({ backendRefs = [] }: Rule, context: Services): number | undefined {
  const share = (role: "source" | "target") =>
    backendRefs
      .filter(ref => ref.name === context.services[role] && isService(ref, context))
      .reduce((sum, ref) => sum + weightOf(ref), 0)
  const [source, target] = [share("source"), share("target")]
  return source + target === 0 ? undefined : Math.round((100 * target) / (source + target))
}

/** A divided rule as it was. Where its foreign backends have changed since, theirs and a plain one of ours. */
export function undivided(rule: Rule, context: Services, { refs, isMirrored: wasMirrored }: Partial<Division>): Rule {
  const { filters, backendRefs = [], ...rest } = rule
  const lastMirror = wasMirrored ? (filters ?? []).findLastIndex(isMirrorTo(context)) : -1
  const kept = (filters ?? []).filter((_, index) => index !== lastMirror)
  return {
    ...rest,
    ...(filters && (kept.length > 0 || lastMirror < 0) && { filters: kept }),
    backendRefs: refs && hasForeignOf(backendRefs, refs, context) ? refs : collapsed(backendRefs, refs, context),
  }
}

function hasForeignOf(now: readonly Ref[], before: readonly Ref[], context: Services): boolean {
  const foreign = (refs: readonly Ref[]) => refs.filter(ref => !isOwn(context)(ref))
  return isSame(
    foreign(now),
    foreign(before).map(ref => ({ ...ref, weight: 100 * weightOf(ref) })),
  )
}

function collapsed(now: readonly Ref[], before: readonly Ref[] | undefined, context: Services): readonly Ref[] {
  const own = now.filter(isOwn(context))
  const isAlone = own.length === now.length
  const { filters: _, weight: _weight, ...first } = own[0]!
  const filters = before?.find(isOwn(context))?.filters
  const weight = isAlone ? 1 : own.reduce((sum, ref) => sum + weightOf(ref), 0)
  const one: Ref = { ...first, name: context.services.apex, weight, ...(filters && { filters }) }
  return now.flatMap(ref => (ref === own[0] ? [one] : isOwn(context)(ref) ? [] : [ref]))
}
