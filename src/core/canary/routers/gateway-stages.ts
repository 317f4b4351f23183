import { isSame } from "#lib/same.ts"
import type { RouteContext } from "../router.ts"
import { isDivided, isOwn, names, refsOf, weightOf } from "./gateway-division.ts"
import type { Ref, Rule } from "./http-route.ts"

/**
 * A gateway learns of routes and of the Services behind them by separate ways, in no order. A request for a Service that
 * a route has just named, or has just dropped, may find none. So requests pass from the Service that its owner wrote to
 * those of the revisions in stages, and back in the reverse order. Each is accepted before the next is written.
 *
 *   Own      web 1                                    as its owner wrote it
 *   Joined   web 100, web-primary 0, web-canary 0     the gateway gets to know ours
 *   Passed   web 0, web-primary 100, web-canary 0     requests pass
 *   Divided  web-primary 100, web-canary 0            the other one goes, which has none
 */
type Stage = "Own" | "Joined" | "Passed" | "Divided"

export function stageOf(rule: Rule, context: RouteContext): Stage {
  if (!isDivided(rule, context)) return "Own"
  if (!names(rule, context, "apex")) return "Divided"
  return apexOf(rule, context).some(ref => weightOf(ref) > 0) ? "Joined" : "Passed"
}

const apexOf = ({ backendRefs = [] }: Rule, context: RouteContext) =>
  backendRefs.filter(ref => ref.name === context.services.apex && isOwn(context)(ref))

/** The rules that follow on the way to `parts`. `base` is the rule as its owner wrote it, `now` as it stands. */
export function towards(base: Rule, now: Rule, context: RouteContext, parts: readonly Rule[]): readonly Rule[] {
  const stage = stageOf(now, context)
  if (stage === "Own") return [joined(base, context)]
  return stage === "Joined" ? passed(parts, base, context) : parts
}

/** The rules that follow on the way back. `parts` are those that stand in place of the owner's, which comes last. */
export function awayFrom(parts: readonly Rule[], base: Rule, context: RouteContext): readonly Rule[] {
  const first = joined(base, context)
  if (isSame(parts, [first]) || stageOf(parts.at(-1)!, context) === "Joined") return [base]
  const hasRequests = stageOf(parts.at(-1)!, context) === "Divided" && names(base, context, "apex")
  return hasRequests ? passed(parts, base, context) : [first]
}

/** What had the requests has all of them, and ours are named beside it. */
function joined(base: Rule, context: RouteContext): Rule {
  const [apex] = apexOf(base, context)
  const refs = refsOf(base, context, 0)
  if (!apex) return { ...base, backendRefs: refs }
  const { source } = context.services
  const share = refs.find(({ name }) => name === source)!.weight!
  const idle = (ref: Ref): Ref => (ref.name === source ? { ...ref, weight: 0 } : ref)
  return { ...base, backendRefs: before({ ...apex, weight: share }, refs.map(idle), context) }
}

const passed = (parts: readonly Rule[], base: Rule, context: RouteContext): readonly Rule[] =>
  parts.map((part, index) => {
    const [apex] = apexOf(base, context)
    if (!apex || index < parts.length - 1) return part
    return { ...part, backendRefs: before({ ...apex, weight: 0 }, part.backendRefs ?? [], context) }
  })

/** In front of our own backends, wherever they stand among others. */
function before(apex: Ref, refs: readonly Ref[], context: RouteContext): readonly Ref[] {
  const at = refs.findIndex(isOwn(context))
  return refs.toSpliced(at, 0, apex)
}
