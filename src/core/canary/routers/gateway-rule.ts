import type { Canary, Service } from "#api/v1alpha1/canary/index.ts"
import { parseDuration } from "#lib/duration.ts"
import type { RouteContext } from "../router.ts"
import {
  type Filter,
  type HeaderChange,
  type Match,
  matchesOf,
  type ParentRef,
  quoted,
  type Rule,
} from "./http-route.ts"

/** What the spec of a Canary says about its route, in the words of the Gateway API. Server defaults are written out. */

type Text = {
  exact?: string | undefined
  prefix?: string | undefined
  suffix?: string | undefined
  regex?: string | undefined
}
type Texts = Readonly<Record<string, Text>>

const textMatch = (name: string, { exact, prefix, suffix, regex }: Text) => {
  if (exact !== undefined) return { type: "Exact", name, value: exact }
  const pattern = prefix !== undefined ? `^${quoted(prefix)}.*` : suffix !== undefined ? `.*${quoted(suffix)}$` : regex
  return { type: "RegularExpression", name, value: pattern ?? ".*" }
}

const textMatches = (texts: Texts = {}) => Object.entries(texts).map(([name, text]) => textMatch(name, text))

const listed = <K extends string, T>(key: K, list: readonly T[]) =>
  list.length > 0 ? ({ [key]: list } as { [key in K]: readonly T[] }) : {}

/** Requests that go to the target, where requests are matched. */
export const analysisMatches = ({ spec }: Canary): readonly Match[] =>
  spec.analysis.match.map(({ headers, queryParams }) => ({
    ...listed("headers", textMatches(headers)),
    ...listed("queryParams", textMatches(queryParams)),
  }))

const pathOf = ({ exact, prefix, regex }: Text = {}) => {
  if (exact !== undefined) return { type: "Exact", value: exact }
  return regex !== undefined
    ? { type: "RegularExpression", value: regex }
    : { type: "PathPrefix", value: prefix ?? "/" }
}

const serviceMatches = ({ match = [] }: Service): readonly Match[] =>
  match.map(({ uri, method, headers, queryParams }) => ({
    path: pathOf(uri),
    ...listed("headers", textMatches(headers)),
    ...listed("queryParams", textMatches(queryParams)),
    ...(method?.exact && { method: method.exact }),
  }))

type HeaderChanges = NonNullable<NonNullable<Service["headers"]>["request"]>

function headerFilter(
  type: "RequestHeaderModifier" | "ResponseHeaderModifier",
  { add = {}, set = {}, remove = [] }: HeaderChanges = {},
): readonly Filter[] {
  const pairs = (texts: Readonly<Record<string, string>>) =>
    Object.entries(texts).map(([name, value]) => ({ name, value }))
  const change: HeaderChange = {
    ...listed("add", pairs(add)),
    ...listed("set", pairs(set)),
    ...listed("remove", remove),
  }
  if (Object.keys(change).length === 0) return []
  return [{ type, [`${type[0]!.toLowerCase()}${type.slice(1)}`]: change }]
}

function rewriteFilter({ uri, authority, type }: NonNullable<Service["rewrite"]>): readonly Filter[] {
  if (!uri && !authority) return []
  const path =
    type === "ReplacePrefixMatch"
      ? { type, replacePrefixMatch: uri }
      : { type: "ReplaceFullPath", replaceFullPath: uri }
  return [{ type: "URLRewrite", urlRewrite: { ...(authority && { hostname: authority }), ...(uri && { path }) } }]
}

function corsFilter(cors: NonNullable<Service["corsPolicy"]>): readonly Filter[] {
  const { allowOrigin = [], allowOrigins = [], allowMethods = [], allowHeaders = [], exposeHeaders = [] } = cors
  const origins = [...allowOrigin, ...allowOrigins.flatMap(({ exact }) => (exact === undefined ? [] : [exact]))]
  const maxAgeMs = parseDuration(cors.maxAge ?? "")
  return [
    {
      type: "CORS",
      cors: {
        ...listed("allowOrigins", origins),
        ...listed("allowMethods", allowMethods),
        ...listed("allowHeaders", allowHeaders),
        ...listed("exposeHeaders", exposeHeaders),
        // 5 is what the server fills in.
        maxAge: maxAgeMs === undefined ? 5 : Math.max(1, Math.round(maxAgeMs / 1000)),
        ...(cors.allowCredentials !== undefined && { allowCredentials: cors.allowCredentials }),
      },
    },
  ]
}

const unitsMs = { h: 3_600_000, m: 60_000, s: 1000, ms: 1 } as const
const goUnitsMs: Readonly<Record<string, number>> = { ...unitsMs, us: 0.001, ns: 0.000001 }

/** Milliseconds of a duration as Go writes it, which may repeat units and have fractions of any. */
export function goDurationMs(text: string): number {
  return [...text.matchAll(/([0-9]+(?:[.][0-9]+)?)(h|ms|us|ns|m|s)/g)].reduce(
    (sum, [, count, unit]) => sum + Number(count) * goUnitsMs[unit!]!,
    0,
  )
}

/** As the Gateway API writes it: whole numbers, and nothing below a millisecond. */
function gatewayDuration(text: string): string {
  let left = Math.max(text === "0s" ? 0 : 1, Math.round(goDurationMs(text)))
  const parts = Object.entries(unitsMs).flatMap(([unit, size]) => {
    const count = Math.floor(left / size)
    left -= count * size
    return count > 0 ? [`${count}${unit}`] : []
  })
  return parts.join("") || "0s"
}

function timeoutsOf({ timeout, backendTimeout }: Service) {
  const timeouts = {
    ...(timeout && { request: gatewayDuration(timeout) }),
    ...(backendTimeout && { backendRequest: gatewayDuration(backendTimeout) }),
  }
  return Object.keys(timeouts).length > 0 ? { timeouts } : {}
}

/** The rule of a new route: requests go to the Service that clients use, and are divided later. */
export function ruleOf({ canary: { spec }, services }: RouteContext): Rule {
  const service = spec.service ?? ({ port: 80 } as Service)
  const { headers, rewrite, corsPolicy, mirror = [], port } = service
  const filters = [
    ...(rewrite ? rewriteFilter(rewrite) : []),
    ...headerFilter("RequestHeaderModifier", headers?.request),
    ...headerFilter("ResponseHeaderModifier", headers?.response),
    ...(corsPolicy ? corsFilter(corsPolicy) : []),
    ...mirror.map(({ backendRef }) => ({ type: "RequestMirror", requestMirror: { backendRef } }) as Filter),
  ]
  return {
    matches: matchesOf({ matches: serviceMatches(service) }),
    ...listed("filters", filters),
    backendRefs: [{ group: "", kind: "Service", name: services.apex, port, weight: 1 }],
    ...timeoutsOf(service),
  }
}

export const parentRefsOf = ({ spec }: Canary): readonly ParentRef[] => (spec.service?.gatewayRefs ?? []) as ParentRef[]

/** `*` is every host, which a route has without a list. */
export function hostnamesOf({ spec }: Canary): readonly string[] {
  const { hosts = [] } = spec.service ?? {}
  return hosts.includes("*") ? [] : hosts
}
