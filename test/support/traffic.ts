import {
  createGateway,
  createTraffic,
  everyPart,
  type Json,
  type PartsOptions,
  type SimulatedGateway,
  type Traffic,
  type TrafficOptions,
} from "#cluster-sim/index.ts"
import { createPrometheus, type SimulatedPrometheus } from "#cluster-sim/prometheus/index.ts"
import { scenario, type World } from "./scenario.ts"

// A world with a gateway and clients, in virtual time:
//
//   const { world, gateway, traffic, prometheus } = await trafficStory({ versions: { [v2]: { errorRate: 0.2, latencyMs: 50 } } })
//   await world.apply(application("web", { image: v1, replicas: 3 }), service("web", { app: "web" }))
//   await world.apply(httpRoute("web", [{ backendRefs: [backend("web-primary", 90), backend("web-canary", 10)] }]))
//   const clients = traffic.send({ perSecond: 50, through: throughGateway })
//   const direct = traffic.send({ perSecond: 50, through: { service: "default/web" }, connections: "fresh" })
//   await world.advance("5m")
//   const { failed, failures, errors, byRevision, byPod, share } = clients.record()
//   expect(failures).toEqual([])                  // requests that no version answered: when, why, which pod
//   expect(byRevision[hash]?.requests)            // answers by pod-template-hash; `errors` are the version's own
//   expect(traffic.record().byPod[uid]?.mirrored) // of all clients; copies reach no client
//   traffic.setVersion(v2, { errorRate: 0 })      // by image, or by the hash of a revision
//   prometheus.answer("/api/v1/query?query=…")    // status and body, of counters scraped every five seconds
//   gateway.stop(); gateway.resume(); gateway.refuse(() => "not this one")
//
// Requests are computed when a change or a question makes it necessary: they cost no timer, and waiting for a condition
// costs the same with clients and without. A pod answers while its first container runs. Without a preStop hook, a
// pod that ends still gets requests until kube-proxy or the gateway has noticed (`endpointsMs`), and refuses them.

export type TrafficStory = {
  world: World
  gateway: SimulatedGateway
  traffic: Traffic
  prometheus: SimulatedPrometheus
}

export type TrafficStoryOptions = Pick<TrafficOptions, "versions" | "endpointsMs"> &
  Omit<PartsOptions, "gateway"> & { seed?: number; gateway?: SimulatedGateway }

/** A cluster with three nodes, a gateway `default/gateway` that is programmed, and no clients yet. */
export async function trafficStory(options: TrafficStoryOptions = {}): Promise<TrafficStory> {
  const { seed = 1, gateway = createGateway(), versions, endpointsMs, nodes = 3, ...parts } = options
  const world = await scenario({ seed, parts: everyPart({ ...parts, nodes, gateway }) })
  await world.apply(...gatewayManifests)
  const { cluster, clock } = world
  const traffic = createTraffic({
    ...{ cluster, clock, gateway, seed },
    ...(versions && { versions }),
    ...(endpointsMs !== undefined && { endpointsMs }),
  })
  const prometheus = createPrometheus({ traffic, now: clock.now })
  await world.advance("1s")
  return { world, gateway, traffic, prometheus }
}

export const throughGateway = { gateway: "default/gateway", host: "web.example.com" }

const gatewayApi = "gateway.networking.k8s.io/v1"
const gatewayManifests: Json[] = [
  {
    apiVersion: gatewayApi,
    kind: "GatewayClass",
    metadata: { name: "contour" },
    spec: { controllerName: "projectcontour.io/gateway-controller" },
  },
  {
    apiVersion: gatewayApi,
    kind: "Gateway",
    metadata: { name: "gateway", namespace: "default" },
    spec: {
      gatewayClassName: "contour",
      listeners: [{ name: "http", port: 80, protocol: "HTTP", allowedRoutes: { namespaces: { from: "All" } } }],
    },
  },
]

/** A route of the gateway for web.example.com. */
export const httpRoute = (name: string, rules: Json[], namespace = "default"): Json => ({
  apiVersion: gatewayApi,
  kind: "HTTPRoute",
  metadata: { name, namespace },
  spec: { parentRefs: [{ name: "gateway", namespace: "default" }], hostnames: ["web.example.com"], rules },
})

export const backend = (name: string, weight: number, filters?: Json[]): Json => ({
  ...{ group: "", kind: "Service", name, port: 80, weight },
  ...(filters && { filters }),
})

export const service = (name: string, selector: Record<string, string>, namespace = "default"): Json => ({
  apiVersion: "v1",
  kind: "Service",
  metadata: { name, namespace },
  spec: { selector, ports: [{ name: "http", port: 80, targetPort: 8080 }] },
})

/** A Deployment whose pods stay five seconds after they are told to end, so that no request meets a pod that is gone. */
export const application = (
  name: string,
  { image, replicas = 3, preStopSeconds = 5 }: { image: string; replicas?: number; preStopSeconds?: number },
): Json => ({
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name, namespace: "default" },
  spec: {
    replicas,
    selector: { matchLabels: { app: name } },
    template: {
      metadata: { labels: { app: name } },
      spec: {
        containers: [
          {
            ...{ name: "web", image, ports: [{ containerPort: 8080 }] },
            readinessProbe: { httpGet: { port: 8080 }, periodSeconds: 1 },
            ...(preStopSeconds > 0 && { lifecycle: { preStop: { sleep: { seconds: preStopSeconds } } } }),
          },
        ],
      },
    },
  },
})
