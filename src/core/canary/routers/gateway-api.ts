import { fieldsOf } from "../before.ts"
import type { Accepted, RouteContext, RouteObject, Router } from "../router.ts"
import { divided, isToDivide } from "./gateway-division.ts"
import { gatewayProblems } from "./gateway-problems.ts"
import { hostnamesOf, parentRefsOf, ruleOf } from "./gateway-rule.ts"
import type { Condition, ParentRef, ParentStatus } from "./http-route.ts"
import { routeRouter, rulesIn } from "./route-router.ts"

const kind = { group: "gateway.networking.k8s.io", version: "v1", kind: "HTTPRoute", plural: "httproutes" } as const

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
export const gatewayApi: Router = routeRouter({
  providers: ["gatewayapi", "gatewayapi:v1", "gatewayapi:v1beta1"],
  kind,
  problemsOf: gatewayProblems,
  isAccepted,
  read: spec => spec,
  write: spec => spec,
  rulesOf: context => [ruleOf(context)],
  followed({ hostnames: _, ...spec }, { canary }) {
    const hostnames = hostnamesOf(canary)
    return { ...spec, parentRefs: parentRefsOf(canary), ...(hostnames.length > 0 && { hostnames }) }
  },
  divided,
})
