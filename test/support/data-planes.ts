import { readFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll } from "vitest"
import { parseAllDocuments } from "yaml"
import type { AddOn } from "#tools/kube/add-ons.ts"
import { prepareExampleServer } from "#tools/kube/binaries.ts"
import { repository } from "#tools/kube/folders.ts"
import { askEnvoy, type Gateway, gateway, gatewayPorts } from "#tools/kube/gateway.ts"
import { pushServer } from "#tools/kube/images.ts"
import { network } from "#tools/kube/orders.ts"
import { askPrometheus, type Prometheus } from "#tools/kube/prometheus.ts"
import { traefikGateway, traefikPorts } from "#tools/kube/traefik.ts"
import { floor, type Json, onRealNode, until } from "./floor.ts"

/** The application of examples/traffic on the real floor, with what carries requests to it and counts them. */

/** Builds take minutes the first time, beside tests of other files. */
const buildsMs = 1_800_000

/** Starts add-ons for all tests of a file, and ends them after the last. */
export function useAddOns(...names: AddOn[]): void {
  beforeAll(async () => {
    await Promise.all(names.map(name => floor().add(name)))
  }, buildsMs)
  afterAll(async () => {
    for (const name of names) await floor().remove(name)
  })
}

/** Speaks with the Prometheus of the cluster. */
export async function clusterPrometheus(): Promise<Prometheus> {
  const url = await floor().add("prometheus")
  return askPrometheus(url!)
}

/** Pushes the example server, such as `shop:v2`, and gives its reference; the environment makes it a bad version. */
export async function pushShop(name: string, env: Record<string, string> = {}): Promise<string> {
  const program = await prepareExampleServer(line => process.stderr.write(`server: ${line}\n`))
  return (await pushServer(floor().registry, name, { program, env })).reference
}

/** The Deployment of examples/traffic with this image. */
export function shopDeployment(name: string, image: string, options: { replicas?: number; labels?: Json } = {}): Json {
  const { replicas = 2, labels = {} } = options
  const file = readFileSync(join(repository, "examples/traffic/app.yaml"), "utf8")
  const object: Json = parseAllDocuments(file)[0]!.toJS()
  object.metadata.name = name
  Object.assign(object.spec, {
    replicas,
    selector: { matchLabels: { ...object.spec.selector.matchLabels, ...labels } },
  })
  Object.assign(object.spec.template.metadata.labels, labels)
  Object.assign(object.spec.template.spec, onRealNode)
  object.spec.template.spec.containers[0].image = image
  return object
}

export type WorkloadKind = "Deployment" | "StatefulSet" | "DaemonSet"

/** The same as another kind of workload. */
export function shopWorkload(kind: WorkloadKind, ...args: Parameters<typeof shopDeployment>): Json {
  const { spec, ...object } = shopDeployment(...args)
  if (kind === "Deployment") return { ...object, spec }
  const { replicas, ...rest } = spec
  return { ...object, kind, spec: kind === "StatefulSet" ? { ...rest, replicas, serviceName: "peers" } : rest }
}

export const shopService = (name: string, selector: Record<string, string>): Json => ({
  metadata: { name },
  spec: { selector: { app: "shop", ...selector }, ports: [{ name: "http", port: 80, targetPort: "http" }] },
})

/** Where clients inside find the gateway. */
export const gatewayAddress = `${network.address}:${gatewayPorts.envoy}`
/** The same of Traefik. */
export const traefikAddress = `${network.address}:${traefikPorts.web}`
export const hostOf = (namespace: string) => `${namespace}.example.com`

/** What clients come through, beside a Service alone. */
export type Way = "HTTPRoute" | "HTTPProxy" | "HTTPRoute of Traefik" | "TraefikService"

/** The objects by which requests for the host of a namespace reach Service `shop` in this way, and where clients send them. */
export async function openWay(way: Way, namespace: string): Promise<string> {
  const { api } = floor()
  const create = (group: string, plural: string, kind: string, spec: Json) =>
    api.create(`/apis/${group}/namespaces/${namespace}/${plural}`, {
      ...{ apiVersion: group, kind, metadata: { name: "shop" } },
      spec,
    })
  const httpRoute = (parent: Gateway) =>
    create("gateway.networking.k8s.io/v1", "httproutes", "HTTPRoute", {
      parentRefs: [parent],
      hostnames: [hostOf(namespace)],
      rules: [weighted({ shop: 1 })],
    })
  const shop = { name: "shop", port: 80 }
  switch (way) {
    case "HTTPRoute":
      await httpRoute(gateway)
      return gatewayAddress
    case "HTTPProxy":
      await create("projectcontour.io/v1", "httpproxies", "HTTPProxy", {
        virtualhost: { fqdn: hostOf(namespace) },
        routes: [{ services: [shop] }],
      })
      return gatewayAddress
    case "HTTPRoute of Traefik":
      await httpRoute(traefikGateway)
      return traefikAddress
    case "TraefikService":
      await create("traefik.io/v1alpha1", "traefikservices", "TraefikService", { weighted: { services: [shop] } })
      await routeToTraefikService(namespace, "shop")
      return traefikAddress
  }
}

/** As Flagger's users have it: an IngressRoute for the host of a namespace, to a TraefikService. */
export const routeToTraefikService = (namespace: string, name: string): Promise<Json> =>
  floor().api.create(`/apis/traefik.io/v1alpha1/namespaces/${namespace}/ingressroutes`, {
    ...{ apiVersion: "traefik.io/v1alpha1", kind: "IngressRoute", metadata: { name: "shop" } },
    spec: {
      entryPoints: ["web"],
      routes: [
        {
          kind: "Rule",
          match: `Host(\`${hostOf(namespace)}\`)`,
          services: [{ kind: "TraefikService", name, port: 80 }],
        },
      ],
    },
  })

const routePath = (namespace: string) => `/apis/gateway.networking.k8s.io/v1/namespaces/${namespace}/httproutes/shop`

/** Writes the route `shop` of a namespace and waits until Envoy has it. */
export async function routeShop(namespace: string, rules: Json[]): Promise<void> {
  const { api } = floor()
  const { metadata } = await api.apply(routePath(namespace), {
    apiVersion: "gateway.networking.k8s.io/v1",
    kind: "HTTPRoute",
    metadata: { name: "shop" },
    spec: { parentRefs: [gateway], hostnames: [hostOf(namespace)], rules },
  })
  await until("the route is accepted", async () => {
    const { status } = await api.get(routePath(namespace))
    const conditions: Json[] = status?.parents?.[0]?.conditions ?? []
    return ["Accepted", "ResolvedRefs"].every(wanted =>
      conditions.some(
        ({ type, status, observedGeneration }) =>
          type === wanted && status === "True" && observedGeneration === metadata.generation,
      ),
    )
  })
  const wanted = JSON.stringify(rules.map(weightsOfRule).sort())
  await until("Envoy has the route", async () => {
    const routes = await envoyRoutes(hostOf(namespace))
    return JSON.stringify(routes.map(weightsOfRoute).sort()) === wanted
  })
}

/** A rule that sends shares of the requests to Services. */
export const weighted = (weights: Record<string, number>): Json => ({
  backendRefs: Object.entries(weights).map(([name, weight]) => ({ name, port: 80, weight })),
})

/** The same words for a rule as it was written and as Envoy has it: `shop-canary 10, shop-primary 90, mirror shop-x`. */
function weightsOfRule({ backendRefs, filters = [], matches = [] }: Json): string {
  const mirrors = filters.flatMap(({ requestMirror }: Json) => (requestMirror ? [requestMirror.backendRef.name] : []))
  const weights = backendRefs.map(({ name, weight = 1 }: Json) => [name, backendRefs.length === 1 ? 1 : weight])
  return words(weights, mirrors, headersOf(matches))
}

function weightsOfRoute({ route, match }: Json): string {
  const several = route.weighted_clusters?.clusters?.map(({ name, weight }: Json) => [serviceOf(name), weight ?? 0])
  const mirrors = (route.request_mirror_policies ?? []).map(({ cluster }: Json) => serviceOf(cluster))
  return words(several ?? [[serviceOf(route.cluster), 1]], mirrors, match.headers?.length ?? 0)
}

const headersOf = (matches: Json[]) => matches.flatMap(({ headers = [] }) => headers).length
const words = (weights: [string, number][], mirrors: string[], headers: number) =>
  JSON.stringify({ weights: weights.filter(([, weight]) => weight > 0).sort(), mirrors, headers })

/** Contour names a cluster NAMESPACE/SERVICE/PORT/HASH. */
const serviceOf = (cluster: string) => cluster.split("/")[1] ?? cluster

/** The routes that Envoy has for a host. */
async function envoyRoutes(host: string): Promise<Json[]> {
  const dump = JSON.parse(await askEnvoy(floor().folder, "/config_dump?resource=dynamic_route_configs"))
  const hosts: Json[] = (dump.configs ?? []).flatMap(({ route_config }: Json) => route_config?.virtual_hosts ?? [])
  return hosts.filter(({ domains }) => domains.includes(host)).flatMap(({ routes }) => routes ?? [])
}

/** Waits until Envoy sends what is for a Service to exactly these addresses. */
export async function untilEnvoyReaches(namespace: string, service: string, addresses: string[]): Promise<void> {
  const wanted = addresses.toSorted().join()
  await until(`Envoy reaches ${service} at ${wanted}`, async () => {
    const { cluster_statuses: clusters = [] } = JSON.parse(await askEnvoy(floor().folder, "/clusters?format=json"))
    const found = clusters.find(({ name }: Json) => name.startsWith(`${namespace}/${service}/`))
    const hosts: Json[] = found?.host_statuses ?? []
    const isUp = ({ health_status }: Json) => health_status.eds_health_status === "HEALTHY"
    return (
      hosts
        .filter(isUp)
        .map(({ address }) => address.socket_address.address)
        .sort()
        .join() === wanted
    )
  })
}

const isReady = ({ metadata, status }: Json) =>
  !metadata.deletionTimestamp &&
  status.conditions?.some(({ type, status }: Json) => type === "Ready" && status === "True")

/** Waits for so many ready pods with these labels, and gives them. */
export const readyPods = (namespace: string, count: number, labels: Record<string, string>): Promise<Json[]> =>
  until(`${count} ready pods of ${JSON.stringify(labels)}`, async () => {
    const selector = Object.entries(labels).map(([key, value]) => `${key}=${value}`)
    const { items } = await floor().api.get(`/api/v1/namespaces/${namespace}/pods?labelSelector=${selector}`)
    const ready = items.filter(isReady)
    return ready.length === count && ready
  })

export const addressesOf = (pods: Json[]): string[] => pods.map(({ status }) => status.podIP)
