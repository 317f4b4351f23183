import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import {
  answersOf,
  type Clients,
  type Cluster,
  createPrometheus,
  createTraffic,
  type Json,
  type SimulatedGateway,
} from "#cluster-sim/index.ts"
import type { Clock } from "#runtime/clock.ts"

/** Clients outside the cluster, that ask a host through its gateway. */
export type TrafficWords = { readonly host: string; readonly perSecond: number }

export type LocalTraffic = {
  /** By host. */
  readonly clients: ReadonlyMap<string, Clients>
  /** A Prometheus that scrapes the gateway and the pods. */
  readonly metricsServer: string
  stop(): Promise<void>
}

type Around = {
  cluster: Cluster
  clock: Clock
  gateway: SimulatedGateway
  seed: number
  registries: Parameters<typeof answersOf>[0]
}

/** Sends requests at a constant rate, and serves what a Prometheus has counted of them, on loopback. */
export async function startTraffic(wanted: readonly TrafficWords[], around: Around): Promise<LocalTraffic> {
  const { registries, ...rest } = around
  const traffic = createTraffic({ ...rest, answersOf: image => answersOf(registries, image) })
  const prometheus = createPrometheus({ traffic, now: around.clock.now })
  const server = createServer((request, response) => {
    const { status, body } = prometheus.answer(request.url ?? "/")
    response.writeHead(status, { "content-type": "application/json" })
    response.end(typeof body === "string" ? body : JSON.stringify(body))
  })
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject)
    server.listen(0, "127.0.0.1", resolve)
  })
  const { port } = server.address() as AddressInfo
  const through = ({ host }: TrafficWords) => ({ gateway: "default/gateway", host })
  return {
    clients: new Map(
      wanted.map(each => [
        each.host,
        traffic.send({ name: each.host, perSecond: each.perSecond, through: through(each) }),
      ]),
    ),
    metricsServer: `http://127.0.0.1:${port}`,
    async stop() {
      traffic.stop()
      server.closeAllConnections()
      await new Promise<void>(resolve => server.close(() => resolve()))
    },
  }
}

const gatewayApi = "gateway.networking.k8s.io/v1"

/** The gateway that the clients use, open to the routes of every namespace. */
export const gatewayManifests: readonly Json[] = [
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
