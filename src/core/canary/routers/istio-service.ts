import type { Canary } from "#api/v1alpha1/canary/index.ts"
import { fieldsOf } from "../before.ts"
import { type Filter, quoted, type Ref, type Rule } from "./http-route.ts"

/** The part of a VirtualService that is read and written, to and from rules of an HTTPRoute. Other fields are kept. */

type Fields = Readonly<Record<string, unknown>>

type Destination = { readonly host: string; readonly subset?: string; readonly [other: string]: unknown }
type Share = { readonly destination: Destination; readonly weight?: number; readonly [other: string]: unknown }
type Copy = { readonly destination: Destination; readonly percentage?: { readonly value: number } }
type Route = {
  readonly route?: readonly Share[]
  readonly mirror?: Destination
  readonly mirrorPercentage?: { readonly value: number }
  readonly mirrors?: readonly Copy[]
  readonly [other: string]: unknown
}

/** A host of Kubernetes, in its own words: the name of a Service, and how the name goes on. */
type HostRef = Ref & { readonly hostAfter?: string; readonly destination?: Fields }

export const read = ({ http = [], ...spec }: Fields): Fields => ({
  ...spec,
  rules: (http as readonly Route[]).map(ruleOf),
})

/** A spec without http routes stays without. */
export const write = ({ rules, ...spec }: Fields): Fields => ({
  ...spec,
  ...((rules as readonly Rule[]).length > 0 && { http: (rules as readonly Rule[]).map(routeOf) }),
})

function ruleOf({ route, mirror, mirrorPercentage, mirrors, ...rest }: Route): Rule {
  const one: readonly Copy[] = mirror
    ? [{ destination: mirror, ...(mirrorPercentage && { percentage: mirrorPercentage }) }]
    : []
  const copies = mirrors ?? one
  return {
    ...rest,
    // How its owner writes copies is kept: one, or a list.
    ...(mirrors && { mirrors: [] }),
    ...(copies.length > 0 && { filters: copies.map(filterOf) }),
    ...(route && { backendRefs: route.map(share => refOf(share, route.length === 1)) }),
  }
}

/** Of several, one without a weight has no share. A subset is of its owner's own making, and no Service of ours. */
function refOf({ destination, weight, ...rest }: Share, isAlone: boolean): HostRef {
  return {
    ...rest,
    ...hostRef(destination),
    ...(isAlone ? weight !== undefined && { weight } : { weight: weight ?? 0 }),
  }
}

const kubernetesHost = /^([a-z0-9-]+)((?:[.]([a-z0-9-]+)(?:[.]svc(?:[.].*)?)?)?)$/

function hostRef({ host, ...destination }: Destination): HostRef {
  const [, name = host, hostAfter = "", namespace] = kubernetesHost.exec(host) ?? []
  return {
    name,
    ...(destination.subset !== undefined && { kind: "Subset" }),
    ...(namespace !== undefined && { namespace }),
    ...(hostAfter && { hostAfter }),
    ...(Object.keys(destination).length > 0 && { destination }),
  }
}

const destinationOf = ({ name, hostAfter = "", destination }: HostRef): Destination => ({
  host: `${name}${hostAfter}`,
  ...destination,
})

const filterOf = ({ destination, percentage }: Copy): Filter => ({
  type: "RequestMirror",
  requestMirror: { backendRef: hostRef(destination), ...(percentage && { percent: percentage.value }) },
})

function copyOf({ requestMirror }: Filter): Copy {
  const { backendRef, percent } = requestMirror!
  return { destination: destinationOf(backendRef), ...(percent !== undefined && { percentage: { value: percent } }) }
}

function routeOf({ backendRefs, filters = [], mirrors, matches: _, ...route }: Rule): Route {
  const copies = filters.filter(({ requestMirror }) => requestMirror).map(copyOf)
  const [first] = copies
  const asOne = first && {
    mirror: first.destination,
    ...(first.percentage && { mirrorPercentage: first.percentage }),
  }
  return {
    ...route,
    ...(mirrors || copies.length > 1 ? { mirrors: copies } : asOne),
    ...(backendRefs && { route: backendRefs.map(shareOf) }),
  }
}

function shareOf(ref: Ref): Share {
  const { name: _, namespace: _namespace, kind: _kind, group: _group, filters: _filters, weight, ...rest } = ref
  const { hostAfter: _after, destination: _destination, ...kept } = rest as HostRef
  return { destination: destinationOf(ref), ...(weight !== undefined && { weight }), ...kept } as Share
}

type Match = Fields & { readonly headers?: Fields; readonly queryParams?: Fields }

export const matchesIn = (rule: Rule) => (rule.match ?? []) as readonly Match[]

type Asked = Canary["spec"]["analysis"]["match"][number]

/** Requests that fit one of the first and one of the second. Of one header only one comparison counts. */
export function bothOf(asked: readonly Asked[], there: readonly Match[]): readonly Match[] {
  return (there.length > 0 ? there : [{}]).flatMap((each: Match) =>
    asked.map(({ headers = {}, queryParams = {}, sourceLabels = {} }) => ({
      ...each,
      ...joined("headers", each, mapped(headers)),
      ...joined("queryParams", each, queryParams),
      ...joined("sourceLabels", each, sourceLabels),
    })),
  )
}

function joined(field: string, there: Match, ours: Fields): Fields {
  const both = { ...fieldsOf(there[field]), ...ours }
  return Object.keys(both).length > 0 ? { [field]: both } : {}
}

/** Istio compares no ends; a pattern must fit the whole value. */
const mapped = (headers: NonNullable<Asked["headers"]>): Fields =>
  Object.fromEntries(
    Object.entries(headers).map(([name, { suffix, ...text }]) => [
      // Istio takes names in lower case only.
      name.toLowerCase(),
      suffix === undefined ? text : { regex: `.*${quoted(suffix)}` },
    ]),
  )
