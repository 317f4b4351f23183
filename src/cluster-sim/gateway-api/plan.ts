import { selects } from "#lib/label-selector.ts"
import type { Json, Obj } from "../object.ts"
import { overlap } from "./hosts.ts"

/** The objects that a gateway reads, at one moment. */
export type Snapshot = {
  controllerName: string
  /** What the class says the gateway can do. Contour says nothing. */
  supportedFeatures: readonly string[]
  classes: readonly Obj[]
  gateways: readonly Obj[]
  routes: readonly Obj[]
  grants: readonly Obj[]
  service(name: { namespace: string; name: string }): Obj | undefined
  namespace(name: string): Obj | undefined
  /** Why the gateway does not take a route; undefined: it does. */
  refusal(route: Obj): string | undefined
}

/** A route in effect: the object as it was taken, and the gateways (`NAMESPACE/NAME`) that serve it. */
export type AppliedRoute = { readonly route: Obj; readonly gateways: readonly string[] }

export type Condition = { type: string; status: "True" | "False"; reason: string; message: string }
export type Report = { object: Obj; status: Json }
export type Plan = { applied: AppliedRoute[]; reports: Report[] }

const group = "gateway.networking.k8s.io"

/**
 * Decides which routes are in effect and what the gateway reports of classes, gateways and routes. The conditions have
 * no time yet; all of them are about the generation that was read.
 */
export function plan(snapshot: Snapshot): Plan & { gateways: string[] } {
  const classes = snapshot.classes.filter(({ spec }) => spec.controllerName === snapshot.controllerName)
  const names = new Set(classes.map(({ metadata }) => metadata.name))
  const gateways = snapshot.gateways.filter(({ spec }) => names.has(spec.gatewayClassName))
  const judged = snapshot.routes.map(route => judgeRoute(snapshot, gateways, route))
  return {
    gateways: gateways.map(keyOf),
    applied: judged.flatMap(({ applied }) => applied ?? []),
    reports: [
      ...classes.map(object => ({ object, status: classStatus(snapshot, object) })),
      ...gateways.map(object => ({ object, status: gatewayStatus(object, attachedTo(object, judged)) })),
      ...judged.flatMap(({ report }) => report ?? []),
    ],
  }
}

const condition = (type: string, isTrue: boolean, reason: string, message: string): Condition => ({
  type,
  status: isTrue ? "True" : "False",
  reason,
  message,
})

function classStatus({ supportedFeatures }: Snapshot, { status }: Obj): Json {
  const features = supportedFeatures.toSorted().map(name => ({ name }))
  return {
    ...status,
    conditions: [condition("Accepted", true, "Accepted", "Valid GatewayClass")],
    ...(features.length > 0 && { supportedFeatures: features }),
  }
}

function gatewayStatus({ spec, status }: Obj, attached: (listener: string) => number): Json {
  return {
    ...status,
    conditions: [
      condition("Accepted", true, "Accepted", "Gateway is accepted"),
      condition("Programmed", true, "Programmed", "Valid Gateway"),
    ],
    listeners: spec.listeners.map(({ name }: Json) => ({
      name,
      attachedRoutes: attached(name),
      supportedKinds: [{ group, kind: "HTTPRoute" }],
      conditions: [
        condition("Programmed", true, "Programmed", "Valid listener"),
        condition("Accepted", true, "Accepted", "Listener accepted"),
        condition("ResolvedRefs", true, "ResolvedRefs", "Listener references resolved"),
      ],
    })),
  }
}

type Judged = {
  applied?: AppliedRoute
  report?: Report
  /** By gateway: the names of its listeners that the route is attached to. */
  attached: Map<string, readonly string[]>
}

const keyOf = ({ metadata: { namespace, name } }: Obj) => `${namespace}/${name}`

const attachedTo = (gateway: Obj, judged: readonly Judged[]) => (listener: string) =>
  judged.filter(({ attached }) => attached.get(keyOf(gateway))?.includes(listener)).length

function judgeRoute(snapshot: Snapshot, gateways: readonly Obj[], route: Obj): Judged {
  const { controllerName } = snapshot
  const attached = new Map<string, readonly string[]>()
  const parents = (route.spec.parentRefs ?? []).flatMap((parentRef: Json) => {
    const gateway = gateways.find(each => isNamed(parentRef, each, route))
    if (!gateway) return [] // another controller's, or not there yet: nothing is said about it
    const { accepted, listeners } = judgeParent(snapshot, { gateway, route, parentRef })
    if (accepted.status === "True")
      attached.set(keyOf(gateway), [...(attached.get(keyOf(gateway)) ?? []), ...listeners])
    return [{ parentRef, controllerName, conditions: [accepted, resolved(snapshot, route)] }]
  })
  const others = (route.status?.parents ?? []).filter((each: Json) => each.controllerName !== controllerName)
  return {
    attached,
    ...(attached.size > 0 && { applied: { route, gateways: [...attached.keys()] } }),
    ...((parents.length > 0 || others.length !== (route.status?.parents ?? []).length) && {
      report: { object: route, status: { parents: [...parents, ...others] } },
    }),
  }
}

function isNamed(parentRef: Json, { metadata }: Obj, route: Obj): boolean {
  const { group: of = group, kind = "Gateway", namespace = route.metadata.namespace, name } = parentRef
  return of === group && kind === "Gateway" && name === metadata.name && namespace === metadata.namespace
}

function judgeParent(
  snapshot: Snapshot,
  { gateway, route, parentRef }: { gateway: Obj; route: Obj; parentRef: Json },
): { accepted: Condition; listeners: string[] } {
  const refused = (reason: string, message: string) => ({
    accepted: condition("Accepted", false, reason, message),
    listeners: [],
  })
  const refusal = snapshot.refusal(route)
  if (refusal !== undefined) return refused("UnsupportedValue", refusal)
  const { sectionName, port } = parentRef
  const named = gateway.spec.listeners.filter(
    (each: Json) => (!sectionName || each.name === sectionName) && (!port || each.port === port),
  )
  if (named.length === 0) return refused("NoMatchingParent", "No listeners match this parent ref")
  const allowed = named.filter((each: Json) => isAllowed(snapshot, each, gateway, route))
  if (allowed.length === 0)
    return refused("NotAllowedByListeners", "No listeners included by this parent ref allowed this attachment.")
  const hosts: (string | undefined)[] = route.spec.hostnames?.length ? route.spec.hostnames : [undefined]
  const matching = allowed.filter(({ hostname }: Json) => hosts.some(host => overlap(hostname, host)))
  if (matching.length === 0)
    return refused(
      "NoMatchingListenerHostname",
      "No intersecting hostnames were found between the listener and the route.",
    )
  return {
    accepted: condition("Accepted", true, "Accepted", "Accepted HTTPRoute"),
    listeners: matching.map(({ name }: Json) => name),
  }
}

function isAllowed({ namespace }: Snapshot, { allowedRoutes }: Json, gateway: Obj, route: Obj): boolean {
  const { from = "Same", selector } = allowedRoutes?.namespaces ?? {}
  if (from === "All") return true
  if (from === "Selector") return selects(selector, namespace(route.metadata.namespace!)?.metadata.labels)
  return from === "Same" && gateway.metadata.namespace === route.metadata.namespace
}

/** Whether every Service that the route names is there and may be named. */
function resolved(snapshot: Snapshot, route: Obj): Condition {
  for (const backend of backendsOf(route)) {
    const problem = backendProblem(snapshot, route, backend)
    if (problem) return condition("ResolvedRefs", false, problem.reason, problem.message)
  }
  return condition("ResolvedRefs", true, "ResolvedRefs", "References resolved")
}

function backendsOf({ spec }: Obj): Json[] {
  const mirrors = (filters: Json[] = []) => filters.flatMap(({ requestMirror }) => requestMirror?.backendRef ?? [])
  return (spec.rules ?? []).flatMap(({ backendRefs = [], filters }: Json) => [
    ...backendRefs.flatMap((each: Json) => [each, ...mirrors(each.filters)]),
    ...mirrors(filters),
  ])
}

function backendProblem(
  { service, grants }: Snapshot,
  route: Obj,
  { group: of = "", kind = "Service", namespace = route.metadata.namespace, name, port }: Json,
): { reason: string; message: string } | undefined {
  if (of !== "" || kind !== "Service")
    return { reason: "InvalidKind", message: "Spec.Rules.BackendRef.Kind must be 'Service'" }
  const isOwn = namespace === route.metadata.namespace
  if (!isOwn && !grants.some(grant => permits(grant, route, { namespace, name })))
    return {
      reason: "RefNotPermitted",
      message: `Spec.Rules.BackendRef.Namespace must match the route's namespace or be covered by a ReferenceGrant`,
    }
  const found = service({ namespace, name })
  if (!found)
    return { reason: "BackendNotFound", message: `service "${namespace}/${name}" is invalid: service not found` }
  if (!found.spec.ports?.some((each: Json) => each.port === port))
    return { reason: "BackendNotFound", message: `service "${namespace}/${name}" is invalid: port ${port} not found` }
  return undefined
}

function permits(
  { metadata, spec }: Obj,
  route: Obj,
  { namespace, name }: { namespace: string; name: string },
): boolean {
  return (
    metadata.namespace === namespace &&
    spec.from.some(
      (each: Json) => each.group === group && each.kind === "HTTPRoute" && each.namespace === route.metadata.namespace,
    ) &&
    spec.to.some((each: Json) => each.group === "" && each.kind === "Service" && (!each.name || each.name === name))
  )
}
