import { covers } from "../gateway-api/hosts.ts"
import type { AppliedRoute } from "../gateway-api/index.ts"
import type { Json, Obj } from "../object.ts"

/** A request as a gateway sees it. Names of headers are in lower case; cookies are the header `cookie`. */
export type Asked = {
  readonly gateway: string
  readonly host: string
  readonly path: string
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly query: Readonly<Record<string, string>>
}

/** A Service as a route names it. */
export type Backend = {
  readonly namespace: string
  readonly service: string
  readonly port: number
  /** Of a route of Traefik, which sends requests to these and does not ask for Services again. */
  readonly pods?: readonly string[]
}

export type Choice = {
  /** Undefined where no rule matches, or where the rule names no backend with a weight. */
  readonly backend?: Backend
  readonly isMatched: boolean
  /** Backends that get a copy. */
  readonly mirrors: readonly Backend[]
  /** Values of `Set-Cookie` that the gateway adds to the answer. */
  readonly setCookies: readonly string[]
  readonly timeoutMs?: number
}

const unmatched: Choice = { isMatched: false, mirrors: [], setCookies: [] }

/**
 * Decides where a request goes. The order of rules is the Gateway API's: the more exact host name, path, method, number
 * of headers and of query parameters, then the older route, then the first rule. `chance` gives numbers from [0, 1).
 */
export function choose(routes: readonly AppliedRoute[], asked: Asked, chance: () => number): Choice {
  let best: { rank: Rank; rule: Json; route: Obj } | undefined
  for (const { route, gateways } of routes) {
    if (!gateways.includes(asked.gateway)) continue
    const host = hostRank(route.spec.hostnames, asked.host)
    if (host === undefined) continue
    for (const rule of route.spec.rules ?? [])
      for (const match of rule.matches ?? [{}]) {
        if (!matches(match, asked)) continue
        const rank = [host, ...rankOf(match)]
        if (!best || isHigher(rank, best.rank) || (isEqual(rank, best.rank) && isOlder(route, best.route)))
          best = { rank, rule, route }
      }
  }
  return best ? choiceOf(best.rule, best.route, chance) : unmatched
}

type Rank = readonly number[]

function isHigher(one: Rank, other: Rank): boolean {
  const at = one.findIndex((value, index) => value !== other[index])
  return at >= 0 && one[at]! > other[at]!
}

const isEqual = (one: Rank, other: Rank) => one.every((value, index) => value === other[index])
const isOlder = (one: Obj, other: Obj) => one.metadata.creationTimestamp < other.metadata.creationTimestamp

function hostRank(hostnames: string[] | undefined, host: string): number | undefined {
  if (!hostnames?.length) return 0
  const ranks = hostnames.filter(name => covers(name, host)).map(name => (name.startsWith("*") ? 0.5 : 1) * name.length)
  return ranks.length > 0 ? Math.max(...ranks) : undefined
}

function rankOf({ path = {}, method, headers = [], queryParams = [] }: Json): Rank {
  const { type = "PathPrefix", value = "/" } = path
  return [
    type === "Exact" ? 2 : type === "PathPrefix" ? 1 : 0,
    value.length,
    method ? 1 : 0,
    headers.length,
    queryParams.length,
  ]
}

function matches({ path, method, headers = [], queryParams = [] }: Json, asked: Asked): boolean {
  return (
    (!path || pathMatches(path, asked.path)) &&
    (!method || method === asked.method) &&
    headers.every((each: Json) => valueMatches(each, asked.headers[each.name.toLowerCase()])) &&
    queryParams.every((each: Json) => valueMatches(each, asked.query[each.name]))
  )
}

function pathMatches({ type = "PathPrefix", value = "/" }: Json, path: string): boolean {
  if (type === "Exact") return path === value
  if (type === "RegularExpression") return new RegExp(`^(?:${value})$`).test(path)
  const prefix = value.replace(/\/$/, "")
  return path === prefix || path.startsWith(`${prefix}/`)
}

/** A regular expression must match the whole value, as in Envoy. */
const valueMatches = ({ type = "Exact", value }: Json, found: string | undefined): boolean =>
  found !== undefined && (type === "Exact" ? found === value : new RegExp(`^(?:${value})$`).test(found))

function choiceOf({ backendRefs = [], filters = [], timeouts }: Json, route: Obj, chance: () => number): Choice {
  const backendRef = byWeight(backendRefs, chance)
  const all = [...filters, ...(backendRef?.filters ?? [])]
  const asBackend = ({ namespace = route.metadata.namespace, name, port, pods }: Json): Backend => ({
    namespace,
    service: name,
    port,
    ...(pods && { pods }),
  })
  const timeoutMs = milliseconds(timeouts?.backendRequest ?? timeouts?.request)
  return {
    isMatched: true,
    ...(backendRef && { backend: asBackend(backendRef) }),
    mirrors: all.flatMap(({ requestMirror: mirror }) =>
      mirror && chance() < shareOf(mirror) ? [asBackend(mirror.backendRef)] : [],
    ),
    setCookies: all.flatMap(({ responseHeaderModifier: { add = [], set = [] } = {} }: Json) =>
      [...set, ...add].filter(({ name }) => name.toLowerCase() === "set-cookie").map(({ value }) => value),
    ),
    ...(timeoutMs && { timeoutMs }),
  }
}

function byWeight(backendRefs: Json[], chance: () => number): Json | undefined {
  const total = backendRefs.reduce((sum, { weight = 1 }) => sum + weight, 0)
  let left = chance() * total
  return backendRefs.find(({ weight = 1 }) => {
    left -= weight
    return left < 0
  })
}

function shareOf({ percent, fraction }: Json): number {
  if (percent !== undefined) return percent / 100
  return fraction ? fraction.numerator / (fraction.denominator ?? 100) : 1
}

/** A duration of the Gateway API, such as `500ms` or `1m30s`. 0 is no limit. */
function milliseconds(text: string | undefined): number | undefined {
  const units: Record<string, number> = { h: 3_600_000, m: 60_000, s: 1000, ms: 1 }
  const parts = [...(text ?? "").matchAll(/(\d+)(ms|h|m|s)/g)]
  return parts.reduce((sum, [, number, unit]) => sum + Number(number) * units[unit!]!, 0) || undefined
}

/** What a client keeps of cookies: by name. */
export type CookieJar = Map<string, string>

/** Takes a `Set-Cookie` into the jar. A maximum age that is not positive removes the cookie. */
export function keepCookie(jar: CookieJar, setCookie: string): void {
  const [pair = "", ...attributes] = setCookie.split(";").map(part => part.trim())
  const [name = "", ...value] = pair.split("=")
  const age = attributes.find(each => /^max-age=/i.test(each))
  if (age && Number(age.split("=")[1]) <= 0) jar.delete(name)
  else jar.set(name, value.join("="))
}

export const cookieHeader = (jar: ReadonlyMap<string, string>): string | undefined =>
  jar.size > 0 ? [...jar].map(([name, value]) => `${name}=${value}`).join("; ") : undefined
