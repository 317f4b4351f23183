import type { Canary, Service } from "#api/v1alpha1/canary/index.ts"
import {
  annotationsOf,
  type Before,
  fieldsOf,
  isMade,
  labelsOf,
  ownerOf,
  savedIn,
  undone,
  withMetadata,
  withoutOwner,
  written,
} from "./before.ts"
import { providerOf } from "./provider.ts"
import type { RouteContext, RouteObject } from "./router.ts"

/** The label that tells the pods of the revisions of a workload apart. */
export type HashLabel = "pod-template-hash" | "controller-revision-hash"

const deployed: readonly string[] = ["Deployment", "PodSpecWorkload", "ContainerizedWorkload"]

/** Each revision has ReplicaSets of its own: the target is a Deployment, or has one. */
export const isOfDeployments = ({ spec }: Pick<Canary, "spec">): boolean => deployed.includes(spec.targetRef.kind)

export const hashLabelOf = (canary: Canary): HashLabel =>
  isOfDeployments(canary) ? "pod-template-hash" : "controller-revision-hash"

export type Services<T = RouteObject> = { readonly apex: T; readonly source: T; readonly target: T }

type Texts = Readonly<Record<string, string>>

type Port = {
  readonly name?: string
  readonly port: number
  readonly protocol?: string
  readonly targetPort?: number | string
  readonly appProtocol?: string
  readonly nodePort?: number
}

/** What is read of a container of the template. */
export type ContainerPorts = {
  readonly name: string
  readonly ports?: readonly { readonly name?: string; readonly containerPort: number; readonly protocol?: string }[]
}

/** What was changed in a Service. */
type Saved = {
  readonly labels?: Before<string>
  readonly annotations?: Before<string>
  readonly selector?: Before<string>
  readonly ports?: Before<Port>
  readonly distribution?: Before<string>
}

export function serviceNamesOf({ spec }: Canary): RouteContext["services"] {
  const apex = spec.service?.name || spec.targetRef.name
  return { apex, source: `${apex}-primary`, target: `${apex}-canary` }
}

/**
 * The three Services of a Canary: those that exist, with our own parts changed and foreign ones kept, or new ones.
 *
 * - Those of the revisions select the pods with one hash each. Between runs both select the source, so that a request
 *   that reaches either is answered.
 * - The one that clients use selects the source alone while the target is another revision: the pods of both have the
 *   labels that it selects. Otherwise it selects as before, and an ordinary update does not change its pods.
 *   Where its selector is what divides the requests (provider `kubernetes`), the router writes it, and not this.
 */
export function servicesOf(
  canary: Canary,
  hashes: RouteContext["hashes"],
  existing: Partial<Services>,
  selector: Texts,
  hashLabel: HashLabel,
  containers: readonly ContainerPorts[] = [],
): Services {
  const names = serviceNamesOf(canary)
  const { apex: apexMetadata, primary, canary: canaryMetadata } = canary.spec.service ?? {}
  const { source, target } = hashes
  const base = baseOf(canary, names.apex, existing.apex, { selector, initial: selector })
  const ports = portsOf(canary, base, containers)
  const own = { ...selector, [hashLabel]: source }
  const isNarrowed = target !== undefined && target !== source && providerOf(canary) !== "kubernetes"

  const change = (role: keyof Services, wanted: Omit<Wanted, "ports" | "ofTarget">) =>
    serviceOf(canary, names[role], existing[role], { ...wanted, ofTarget: selector, ports })
  return {
    apex: change("apex", {
      selector: isNarrowed ? { [hashLabel]: source } : {},
      metadata: apexMetadata,
      initial: selector,
    }),
    source: change("source", { selector: own, isExact: true, metadata: primary }),
    target: change("target", {
      selector: { ...own, [hashLabel]: target ?? source },
      isExact: true,
      metadata: canaryMetadata,
    }),
  }
}

type Wanted = {
  readonly selector: Texts
  /** What the workload itself selects its pods by. */
  readonly ofTarget: Texts
  /** Other keys of the selector go. */
  readonly isExact?: true
  /** The selector of a new one. */
  readonly initial?: Texts
  readonly metadata: Service["apex"]
  readonly ports: readonly WantedPort[]
}

const service = { apiVersion: "v1", kind: "Service" } as const

/** The Service as its owner has it, or a new one without our parts. */
function baseOf(
  canary: Canary,
  name: string,
  existing: RouteObject | undefined,
  { selector, initial }: { selector: Texts; initial: Texts },
): RouteObject {
  if (existing) return withoutFlagger(restoredService(existing), selector)
  const { namespace } = canary.metadata
  return {
    ...service,
    metadata: { name, ...(namespace !== undefined && { namespace }), ownerReferences: [ownerOf(canary)] },
    spec: { type: "ClusterIP", ...(canary.spec.service?.headless && { clusterIP: "None" }), selector: initial },
  }
}

/**
 * Services that Flagger has left select its copy of the workload: the same label, with `-primary` behind its value. The
 * copy goes, and none of these Services goes back to it, also not when the Canary is deleted.
 */
function withoutFlagger(service: RouteObject, selector: Texts): RouteObject {
  const there = textsOf(fieldsOf(service.spec).selector)
  const copied = Object.keys(there).filter(key => there[key] === `${selector[key]}-primary`)
  if (copied.length === 0) return service
  const own = Object.fromEntries(copied.map(key => [key, selector[key]!]))
  return { ...service, spec: { ...fieldsOf(service.spec), selector: { ...there, ...own } } }
}

function serviceOf(canary: Canary, name: string, existing: RouteObject | undefined, wanted: Wanted): RouteObject {
  const base = baseOf(canary, name, existing, { selector: wanted.ofTarget, initial: wanted.initial ?? {} })
  const spec = fieldsOf(base.spec)
  const { trafficDistribution, unmanagedMetadata } = canary.spec.service ?? {}

  const there = textsOf(spec.selector)
  const gone = wanted.isExact ? Object.fromEntries(Object.keys(there).map(key => [key, undefined])) : {}
  const selector = written(there, { ...gone, ...wanted.selector })
  const ports = written(byKey(portsIn(spec)), byKey(merged(portsIn(spec), wanted.ports, portsIn(existing?.spec))))
  const distribution = written(distributionIn(spec), trafficDistribution ? { trafficDistribution } : {})

  /** A key that another writer owns is written only where it is missing. */
  const managed = (map: Texts = {}, current: Texts, unmanaged: readonly string[] = []) =>
    Object.fromEntries(Object.entries(map).filter(([key]) => !(unmanaged.includes(key) && Object.hasOwn(current, key))))
  const labels = written(labelsOf(base), managed(wanted.metadata?.labels, labelsOf(base), unmanagedMetadata?.labels))
  const annotations = written(
    annotationsOf(base),
    managed(wanted.metadata?.annotations, annotationsOf(base), unmanagedMetadata?.annotations),
  )

  const { trafficDistribution: _, ...rest } = spec
  const changed = {
    ...base,
    spec: { ...rest, ...distribution.next, selector: selector.next, ports: Object.values(ports.next) },
  }
  const saved: Saved = {
    labels: labels.before,
    annotations: annotations.before,
    selector: selector.before,
    ports: ports.before,
    distribution: distribution.before,
  }
  const kept = Object.fromEntries(Object.entries(saved).filter(([, part]) => Object.keys(part).length > 0))
  return withMetadata(changed, { labels: labels.next, annotations: annotations.next, saved: kept })
}

type WantedPort = {
  readonly name: string
  readonly port: number
  readonly protocol: string
  /** Absent: as the Service has it, or the port itself. */
  readonly targetPort?: number | string | undefined
  readonly appProtocol?: string | undefined
}

/** Containers of a mesh, whose ports are not the application's. */
const proxies = new Set(["istio-proxy", "envoy"])

function portsOf(canary: Canary, apex: RouteObject, containers: readonly ContainerPorts[]): readonly WantedPort[] {
  const { port = 80, portName, targetPort: asked, appProtocol, portDiscovery } = canary.spec.service ?? {}
  const there = portsIn(apex.spec).find(each => keyOf(each) === keyOf({ port }))
  // Without one in the spec, what an adopted Service has counts for the other two as well.
  const targetPort = asked ?? there?.targetPort
  const main: WantedPort = { name: portName || "http", port, protocol: "TCP", targetPort, appProtocol }
  if (!portDiscovery) return [main]
  const isMain = (each: { name?: string; containerPort: number }) =>
    each.containerPort === (targetPort ?? port) || each.name === targetPort
  const found = containers
    .filter(({ name }) => !proxies.has(name))
    .flatMap(({ name: container, ports = [] }) =>
      ports
        .map((each, index) => ({ ...each, fallback: `tcp-${container}-${index}`.slice(0, 63) }))
        .filter(each => !isMain(each))
        .map(({ name, fallback, containerPort, protocol = "TCP" }) => ({
          name: name || fallback,
          port: containerPort,
          protocol,
          targetPort: containerPort,
        })),
    )
  const isFirst = (each: WantedPort, index: number, all: readonly WantedPort[]) =>
    all.findIndex(other => keyOf(other) === keyOf(each)) === index
  return [main, ...found].filter(isFirst)
}

const keyOf = ({ port, protocol = "TCP" }: Pick<Port, "port" | "protocol">) => `${port}/${protocol}`
const byKey = (ports: readonly Port[]) => Object.fromEntries(ports.map(port => [keyOf(port), port]))
const portsIn = (spec: unknown) => (fieldsOf(spec).ports ?? []) as readonly Port[]
const textsOf = (value: unknown) => fieldsOf(value) as Texts
const distributionIn = ({ trafficDistribution }: Readonly<Record<string, unknown>>): Texts =>
  typeof trafficDistribution === "string" ? { trafficDistribution } : {}

/** The owner's ports, with ours written into them or added. `now` has what the server gave to ours. */
function merged(owners: readonly Port[], wanted: readonly WantedPort[], now: readonly Port[]): readonly Port[] {
  const changed = owners.map(port => {
    const ours = wanted.find(each => keyOf(each) === keyOf(port))
    if (!ours) return port
    const { targetPort, appProtocol } = ours
    return { ...port, ...(targetPort !== undefined && { targetPort }), ...(appProtocol && { appProtocol }) }
  })
  const added = wanted
    .filter(each => !owners.some(port => keyOf(port) === keyOf(each)))
    .map(({ appProtocol, ...each }): Port => {
      const nodePort = now.find(port => keyOf(port) === keyOf(each))?.nodePort
      const targetPort = each.targetPort ?? each.port
      return { ...each, targetPort, ...(appProtocol && { appProtocol }), ...(nodePort !== undefined && { nodePort }) }
    })
  return uniquelyNamed([...changed, ...added], wanted)
}

/** Of several ports each needs a name of its own; the one of a single port is its owner's. */
function uniquelyNamed(ports: readonly Port[], wanted: readonly WantedPort[]): readonly Port[] {
  if (ports.length < 2) return ports
  const taken = new Set<string>()
  return ports.map(port => {
    const wish = port.name || wanted.find(each => keyOf(each) === keyOf(port))?.name || `port-${port.port}`
    const name = taken.has(wish) ? `${wish.slice(0, 50)}-${port.port}` : wish
    taken.add(name)
    return name === port.name ? port : { ...port, name }
  })
}

/** A Service as its owner has it: without our parts. */
function restoredService(existing: RouteObject): RouteObject {
  const saved: { readonly [Part in keyof Saved]?: unknown } = savedIn(existing)
  const spec = fieldsOf(existing.spec)
  const { trafficDistribution: _, selector: _selector, ports: _ports, ...rest } = spec
  const selector = undone(textsOf(spec.selector), saved.selector)
  const ports = Object.values(undone(byKey(portsIn(spec)), saved.ports))
  const base = {
    ...existing,
    spec: {
      ...rest,
      ...undone(distributionIn(spec), saved.distribution),
      ...(spec.selector !== undefined && { selector }),
      ...(spec.ports !== undefined && { ports }),
    },
  }
  return withMetadata(base, {
    labels: undone(labelsOf(existing), saved.labels),
    annotations: undone(annotationsOf(existing), saved.annotations),
  })
}

/**
 * A Service as it was before the Canary, or undefined where it is to be deleted, since it was made for the Canary. Where
 * the selector divides the requests, its router takes that back first. It serves the other two Services as well.
 */
export const restoredApex = (existing: RouteObject): RouteObject | undefined =>
  isMade(existing) ? undefined : restoredService(existing)

/**
 * A Service that stays when its Canary goes. It selects every revision again: a hash would select nothing after the
 * next update of the workload.
 */
export function releasedService(existing: RouteObject, hashLabel: HashLabel): RouteObject {
  const spec = fieldsOf(existing.spec)
  const { [hashLabel]: _, ...selector } = textsOf(spec.selector)
  const free = withoutOwner({ ...existing, spec: { ...spec, selector } })
  return withMetadata(free, { labels: labelsOf(free), annotations: annotationsOf(free) })
}

/** Why an existing Service cannot be used. */
export type ServiceProblem = { readonly reason: "NameTaken" | "InvalidSpec"; readonly message: string }

export function serviceProblemsOf(canary: Canary, existing: Partial<Services>): readonly ServiceProblem[] {
  return Object.values(existing).flatMap((each): ServiceProblem[] => {
    const { name, ownerReferences = [] } = each.metadata
    const owner = (ownerReferences as { controller?: boolean; kind: string; name: string; uid: string }[]).find(
      ({ controller }) => controller,
    )
    if (owner && owner.uid !== canary.metadata.uid)
      return [
        {
          reason: "NameTaken",
          message: `Service ${name} belongs to ${owner.kind} ${owner.name}: write another service.name, or delete that ${owner.kind}`,
        },
      ]
    const { type, selector } = fieldsOf(each.spec)
    if (type === "ExternalName" || Object.keys(fieldsOf(selector)).length === 0)
      return [
        {
          reason: "InvalidSpec",
          message: `Service ${name} selects no pods: write another service.name, or give it a selector`,
        },
      ]
    return []
  })
}
