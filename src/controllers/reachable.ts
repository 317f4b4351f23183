import type { Egress, EndpointSeen, Rules, ServiceSeen } from "#egress/index.ts"
import type { Projected, WatchedCache } from "#runtime/cache/cache.ts"
import type { Permission, Wiring } from "#runtime/controller.ts"
import { core, endpointSlices, type KubeObject } from "#runtime/resource.ts"

const services = core("services", "Service")
const pods = core("pods", "Pod")

export const reachablePermissions: readonly Permission[] = [services, endpointSlices, pods].map(resource => ({
  resource,
  verbs: ["list", "watch"],
}))

/** What the cluster says of Services and their pods, for the rules of the way out. */
export type Reachable = {
  serviceAt: Rules["serviceAt"]
  /** The same way out; a request that may name a Service first waits for the caches, which it opens. */
  waiting(egress: Egress): Egress
}

type ServiceFacts = Projected & { type: string; hasSelector: boolean; ports: readonly { port: number; name: string }[] }
export type SliceFacts = Projected & {
  service: string
  ports: readonly { port: number; name: string }[]
  endpoints: readonly { address: string; pod: string | undefined }[]
}
type PodFacts = Projected & { addresses: readonly string[]; isHostNetwork: boolean }

/**
 * Caches of Services, EndpointSlices and addresses of pods. They are opened by the first request that may name a
 * Service: a cluster whose objects ask public hosts only has none of them.
 */
export function createReachable(wiring: Pick<Wiring, "watch">): Reachable {
  let caches: ReturnType<typeof open> | undefined

  function open() {
    const ofService = { service: ({ service }: SliceFacts) => (service ? [service] : []) }
    return {
      services: wiring.watch<ServiceFacts>(services, { project: readService }),
      slices: wiring.watch<SliceFacts>(endpointSlices, { project: readSlice, indexes: ofService }),
      pods: wiring.watch<PodFacts>(pods, { project: readPod }),
    }
  }

  function serviceAt({ namespace, name, port }: { namespace: string; name: string; port: number }) {
    const service = caches?.services.get(`${namespace}/${name}`)
    if (!caches || !service) return undefined
    const slices = [...caches.slices.keysBy("service", `${namespace}/${name}`)].flatMap(
      key => caches!.slices.get(key) ?? [],
    )
    return seenOf(service, slices, { namespace, port, podAt: key => caches!.pods.get(key) })
  }

  return {
    serviceAt,
    waiting: egress => ({
      async request(asked) {
        if (mayNameService(asked.url)) {
          caches ??= open()
          const all: WatchedCache<Projected>[] = Object.values(caches)
          await Promise.all(all.map(cache => cache.synced(asked.signal)))
        }
        return egress.request(asked)
      },
    }),
  }
}

/** Names of one or two parts, and those that end as names inside a cluster do. */
export function mayNameService(url: string): boolean {
  const host = URL.parse(url)?.hostname.replace(/\.$/, "") ?? ""
  return /^[^.:]+(\.[^.:]+)?$/.test(host) || /\.svc(\.|$)/.test(host)
}

type Around = { namespace: string; port: number; podAt(key: string): PodFacts | undefined }

/** A Service with the ready endpoints of one of its ports, each with the pod that it names as the pod itself says. */
function seenOf(service: ServiceFacts, slices: readonly SliceFacts[], { namespace, port, podAt }: Around): ServiceSeen {
  const { type, hasSelector } = service
  const wanted = service.ports.find(each => each.port === port)
  if (!wanted) return { type, hasSelector, endpoints: undefined }
  const endpoints = slices.flatMap(slice => {
    const to = slice.ports.find(({ name }) => name === wanted.name)
    return to ? slice.endpoints.map(each => endpointOf(each, to.port, namespace, podAt)) : []
  })
  return { type, hasSelector, endpoints }
}

function endpointOf(
  { address, pod: name }: SliceFacts["endpoints"][number],
  port: number,
  namespace: string,
  podAt: Around["podAt"],
): EndpointSeen {
  const pod = name === undefined ? undefined : podAt(`${namespace}/${name}`)
  return {
    address,
    port,
    ...(pod && { pod: { namespace, addresses: pod.addresses, isHostNetwork: pod.isHostNetwork } }),
  }
}

type Named = { name?: string; port?: number; protocol?: string }
const portsOf = (ports: readonly Named[] | undefined) =>
  (ports ?? []).flatMap(({ name = "", port, protocol = "TCP" }) => (port && protocol === "TCP" ? [{ name, port }] : []))

type ServiceObject = KubeObject & { spec?: { type?: string; selector?: Record<string, string>; ports?: Named[] } }
const readService = ({ metadata, spec }: ServiceObject): ServiceFacts => ({
  resourceVersion: metadata.resourceVersion ?? "",
  type: spec?.type ?? "ClusterIP",
  hasSelector: Object.keys(spec?.selector ?? {}).length > 0,
  ports: portsOf(spec?.ports),
})

type Endpoint = {
  addresses?: string[]
  conditions?: { ready?: boolean }
  targetRef?: { kind?: string; name?: string; namespace?: string }
}
export type SliceObject = KubeObject & { ports?: Named[]; endpoints?: Endpoint[] }
export function readSlice({ metadata, ports, endpoints = [] }: SliceObject): SliceFacts {
  const { namespace = "", labels, resourceVersion = "" } = metadata
  const name = labels?.["kubernetes.io/service-name"]
  const podOf = ({ targetRef }: Endpoint) =>
    targetRef?.kind === "Pod" && (targetRef.namespace ?? namespace) === namespace ? targetRef.name : undefined
  return {
    resourceVersion,
    service: name ? `${namespace}/${name}` : "",
    ports: portsOf(ports),
    endpoints: endpoints
      .filter(({ conditions }) => conditions?.ready !== false)
      .flatMap(endpoint => (endpoint.addresses ?? []).slice(0, 1).map(address => ({ address, pod: podOf(endpoint) }))),
  }
}

type PodObject = KubeObject & {
  spec?: { hostNetwork?: boolean }
  status?: { phase?: string; podIP?: string; podIPs?: { ip?: string }[] }
}
/** A pod that has ended has no address any more, whatever its status still says. */
function readPod({ metadata, spec, status }: PodObject): PodFacts {
  const hasEnded = status?.phase === "Succeeded" || status?.phase === "Failed"
  const addresses = [status?.podIP, ...(status?.podIPs ?? []).map(({ ip }) => ip)].filter(ip => ip !== undefined)
  return {
    resourceVersion: metadata.resourceVersion ?? "",
    addresses: hasEnded ? [] : [...new Set(addresses)],
    isHostNetwork: spec?.hostNetwork ?? false,
  }
}
