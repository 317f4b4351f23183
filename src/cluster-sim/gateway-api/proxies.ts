import type { Json, Obj } from "../object.ts"
import type { AppliedRoute, Plan, Report } from "./plan.ts"

/** What Contour reads of HTTPProxies, at one moment. */
export type ProxySnapshot = {
  proxies: readonly Obj[]
  /** The gateways (`NAMESPACE/NAME`) that serve them: all of this Contour. */
  gateways: readonly string[]
  service(name: { namespace: string; name: string }): Obj | undefined
  /** Why the gateway does not take an object; undefined: it does. */
  refusal(proxy: Obj): string | undefined
}

const keyOf = ({ namespace, name }: Json) => `${namespace}/${name}`

type Problem = { type: string; reason: string; message: string }

const orphaned: Problem = {
  ...{ type: "Orphaned", reason: "Orphaned" },
  message: "this HTTPProxy is not part of a delegation chain from a root HTTPProxy",
}

/**
 * Decides which HTTPProxies are in effect, each in the words of an HTTPRoute, and what Contour reports of them. One with a
 * virtualhost is a root; another is in effect where a root includes it, at once or by way of others.
 */
export function planProxies(snapshot: ProxySnapshot): Plan {
  const { proxies, gateways } = snapshot
  const byName = new Map(proxies.map(proxy => [keyOf(proxy.metadata), proxy]))
  const problems = new Map<Obj, Problem>()
  const reached = new Set<Obj>()
  const applied: AppliedRoute[] = []

  function take(proxy: Obj, fqdn: string, conditions: Json[]) {
    if (reached.has(proxy)) return // the first chain counts here
    reached.add(proxy)
    const bad = problemOf(snapshot, proxy)
    if (bad) {
      problems.set(proxy, bad)
      return
    }
    applied.push({ route: routeOf(proxy, fqdn, conditions), gateways })
    for (const { name, namespace = proxy.metadata.namespace, conditions: more = [] } of proxy.spec.includes ?? []) {
      const child = byName.get(keyOf({ namespace, name }))
      if (child && !child.spec.virtualhost) take(child, fqdn, [...conditions, ...more])
      else
        problems.set(proxy, {
          type: "IncludeError",
          reason: "IncludeNotFound",
          message: `include ${namespace}/${name} not found`,
        })
    }
  }

  for (const proxy of proxies) if (proxy.spec.virtualhost) take(proxy, proxy.spec.virtualhost.fqdn, [])
  for (const proxy of proxies) if (!reached.has(proxy)) problems.set(proxy, orphaned)
  return { applied, reports: proxies.map(proxy => reportOf(proxy, problems.get(proxy))) }
}

function reportOf(object: Obj, problem: Problem | undefined): Report {
  const valid = problem
    ? {
        ...{ type: "Valid", status: "False", reason: "ErrorPresent" },
        message: "At least one error present, see Errors for details",
        errors: [{ status: "True", ...problem }],
      }
    : { type: "Valid", status: "True", reason: "Valid", message: "Valid HTTPProxy" }
  const word = problem ? (problem.type === "Orphaned" ? "orphaned" : "invalid") : "valid"
  return {
    object,
    status: {
      ...object.status,
      currentStatus: word,
      description: problem?.message ?? valid.message,
      conditions: [valid],
    },
  }
}

function problemOf({ service, refusal }: ProxySnapshot, proxy: Obj): Problem | undefined {
  const refused = refusal(proxy)
  if (refused !== undefined) return { type: "SpecError", reason: "Refused", message: refused }
  const { namespace } = proxy.metadata
  for (const { services = [] } of proxy.spec.routes ?? []) {
    if (services.filter(({ mirror }: Json) => mirror).length > 1)
      return {
        ...{ type: "ServiceError", reason: "OnlyOneMirror" },
        message: "only one service per route may be nominated as mirror",
      }
    for (const { name, port } of services) {
      const found = service({ namespace: namespace!, name })
      const why = !found
        ? `service "${namespace}/${name}" not found`
        : found.spec.ports?.some((each: Json) => each.port === port)
          ? undefined
          : `port "${port}" on service "${namespace}/${name}" not matched`
      if (why)
        return {
          ...{ type: "ServiceError", reason: "ServiceUnresolvedReference" },
          message: `Spec.Routes unresolved service reference: ${why}`,
        }
    }
  }
  return undefined
}

/** The same in the words of an HTTPRoute. */
function routeOf({ metadata, spec, ...proxy }: Obj, fqdn: string, included: Json[]): Obj {
  const rules = (spec.routes ?? []).map(({ conditions = [], services = [], timeoutPolicy }: Json) => {
    const refs = services.filter(({ mirror }: Json) => !mirror)
    const isEqual = refs.every(({ weight = 0 }: Json) => weight === 0)
    return {
      matches: [matchOf([...included, ...conditions])],
      backendRefs: refs.map(({ name, port, weight = 0 }: Json) => ({ name, port, weight: isEqual ? 1 : weight })),
      filters: services
        .filter(({ mirror }: Json) => mirror)
        .map(({ name, port, weight }: Json) => ({
          type: "RequestMirror",
          requestMirror: { backendRef: { name, port }, percent: weight || 100 },
        })),
      ...(timeoutPolicy?.response && { timeouts: { request: timeoutPolicy.response } }),
    }
  })
  return { ...proxy, metadata, spec: { hostnames: [fqdn], rules } }
}

/** All conditions hold together; prefixes are joined. */
function matchOf(conditions: Json[]): Json {
  const prefix =
    conditions
      .map(each => each.prefix ?? "")
      .join("")
      .replace(/\/+/g, "/") || "/"
  const exact = conditions.find(each => each.exact)?.exact
  const compared = ({ name, exact, contains, regex, present }: Json) => {
    if (exact !== undefined) return { name, type: "Exact", value: exact }
    const pattern = regex ?? (contains === undefined ? present && ".*" : `.*${contains}.*`)
    if (!pattern) throw new Error("the simulated gateway compares exact, contains, regex and present")
    return { name, type: "RegularExpression", value: pattern }
  }
  return {
    path: exact ? { type: "Exact", value: exact } : { type: "PathPrefix", value: prefix },
    headers: conditions.flatMap(({ header }) => (header ? [compared(header)] : [])),
    queryParams: conditions.flatMap(({ queryParameter }) => (queryParameter ? [compared(queryParameter)] : [])),
  }
}
