import { renameSync, writeFileSync } from "node:fs"
import type { Server } from "node:net"
import { join } from "node:path"
import { type Api, type Json, type Patience, until } from "./api.ts"
import { prepareContour, prepareKubeProxy, prepareTraefik } from "./binaries.ts"
import { findProgram } from "./command.ts"
import { type Component, insideKubeconfig, type Place, realNode } from "./components.ts"
import { prepareEnvoy } from "./envoy.ts"
import {
  contour,
  createGateway,
  envoy,
  gateway,
  gatewayIsProgrammed,
  gatewayIsUp,
  gatewayPorts,
  installGatewayKinds,
  ofContour,
} from "./gateway.ts"
import { network } from "./orders.ts"
import { preparePackages } from "./packages.ts"
import { askPrometheus, prometheusArguments } from "./prometheus.ts"
import { freePort, type Sandbox } from "./sandbox.ts"
import { ofTraefik, traefik, traefikGateway, traefikPorts } from "./traefik.ts"

type Say = (line: string) => void

/** What a running cluster can be given besides, and which programs that is. */
const programsOf = {
  /** Services are reached by their addresses. */
  proxy: ["kube-proxy"],
  /** Gateway API with a Gateway, by Contour and Envoy. */
  gateway: ["contour", "envoy"],
  /** Gateway API with a Gateway of its own, and Traefik's kinds. */
  traefik: ["traefik"],
  /** Scrapes Envoy, Traefik and the pods that ask for it by annotation. */
  prometheus: ["prometheus"],
} as const
export type AddOn = keyof typeof programsOf
export const addOns = Object.keys(programsOf) as AddOn[]

/** Builds, fetches or installs what an add-on needs; at once when it is there. */
export const prepareAddOn = {
  proxy: (say: Say, signal?: AbortSignal) => prepareKubeProxy(say, signal),
  async gateway(say: Say, signal?: AbortSignal) {
    await preparePackages({ envoy: true, say })
    const envoy = await prepareEnvoy(say, signal)
    const { program: contour, crds } = await prepareContour(say, signal)
    return { contour, crds, envoy }
  },
  traefik: (say: Say, signal?: AbortSignal) => prepareTraefik(say, signal),
  async prometheus(say: Say) {
    await preparePackages({ prometheus: true, say })
    return findProgram("prometheus") ?? "prometheus"
  },
}

type Parts = {
  place: Place
  sandbox: Sandbox
  api: Api
  launch: (...components: Component[]) => Promise<void>
  /** Ends a program if it runs. */
  end: (name: string) => Promise<void>
  keep: (listener: Server) => void
  patience: Patience
  say: Say
  signal: AbortSignal | undefined
}

export type AddOns = {
  /** Gives the URL outside when it can be used, and undefined of kube-proxy. */
  add(name: AddOn): Promise<string | undefined>
  /** Ends its programs. Objects and kinds stay. */
  remove(name: AddOn): Promise<void>
}

export function makeAddOns(parts: Parts): AddOns {
  const { place, api, launch, patience, say, signal } = parts
  const added = new Map<AddOn, Promise<string | undefined>>()
  const urls = new Map<AddOn, string>()

  /** The same port of the machine every time, that leads to the one inside. */
  async function relay(name: AddOn, port: number): Promise<string> {
    const known = urls.get(name)
    if (known) return known
    const outside = await freePort()
    parts.keep(outside.listener)
    await parts.sandbox.relay(outside.listener, { host: "127.0.0.1", port })
    const url = `http://127.0.0.1:${outside.port}`
    urls.set(name, url)
    return url
  }

  const start: Record<AddOn, () => Promise<string | undefined>> = {
    async proxy() {
      await launch(kubeProxy(place, await prepareAddOn.proxy(say, signal)))
      await until("kube-proxy answers", () => proxyIsUp(api), patience)
      return undefined
    },
    async gateway() {
      const programs = await prepareAddOn.gateway(say, signal)
      await installGatewayKinds(api, programs.crds, patience)
      await createGateway(api, gateway, ofContour)
      await launch(contour(place, programs), await envoy(place, programs))
      await gatewayIsUp(api, place.folder, patience)
      return relay("gateway", gatewayPorts.envoy)
    },
    async traefik() {
      const { program, crds } = await prepareAddOn.traefik(say, signal)
      await installGatewayKinds(api, crds, patience)
      await createGateway(api, traefikGateway, ofTraefik)
      await launch(traefik(place, program))
      await gatewayIsProgrammed(api, traefikGateway, patience)
      return relay("traefik", traefikPorts.web)
    },
    async prometheus() {
      await launch(prometheus(place, await prepareAddOn.prometheus(say)))
      const isOver = () => patience.signal?.aborted || !added.has("prometheus")
      void writeTargets(api, place.folder, isOver)
      const url = await relay("prometheus", prometheusPort)
      await until("Prometheus is ready", askPrometheus(url).isReady, patience)
      return url
    },
  }

  return {
    add(name) {
      const known = added.get(name)
      if (known) return known
      const starting = start[name]()
      added.set(name, starting)
      starting.catch(() => added.delete(name))
      return starting
    },
    async remove(name) {
      const starting = added.get(name)
      if (!starting) return
      added.delete(name)
      await starting.catch(() => {})
      for (const program of programsOf[name]) await parts.end(program)
    },
  }
}

/** Inside, for pods and for programs of the node. */
const prometheusPort = 9090
const proxyHealthPort = 10256

function kubeProxy(place: Place, program: string): Component {
  return {
    name: "kube-proxy",
    command: [
      program,
      `--kubeconfig=${insideKubeconfig(place, "kube-proxy")}`,
      "--proxy-mode=iptables",
      `--cluster-cidr=${network.subnet}`,
      `--hostname-override=${realNode}`,
      // Pods are on one bridge. An answer to a pod would otherwise not pass here, and not get its address back.
      "--masquerade-all",
      // Endpoints count at once; usually changes within a second are collected.
      "--iptables-min-sync-period=50ms",
      `--healthz-bind-address=0.0.0.0:${proxyHealthPort}`,
      "--metrics-bind-address=127.0.0.1:10249",
      // These settings are the machine's.
      "--conntrack-max-per-core=0",
      "--conntrack-tcp-timeout-established=0s",
      "--conntrack-tcp-timeout-close-wait=0s",
    ],
    env: { PATH: `${process.env.PATH}:/usr/sbin:/sbin` },
  }
}

/** Its health port, through the API server's proxy to the node. */
async function proxyIsUp(api: Api): Promise<boolean> {
  const answer = await api.text(`/api/v1/nodes/${realNode}:${proxyHealthPort}/proxy/healthz`)
  return answer.includes("lastUpdated")
}

const targetsFile = (folder: string) => join(folder, "prometheus-pods.json")

function prometheus({ folder }: Place, program: string): Component {
  const pods = { job_name: "pods", file_sd_configs: [{ files: [targetsFile(folder)], refresh_interval: "1s" }] }
  const envoy = {
    job_name: "envoy",
    metrics_path: "/stats/prometheus",
    static_configs: [{ targets: [`127.0.0.1:${gatewayPorts.envoyMetrics}`] }],
  }
  const traefik = { job_name: "traefik", static_configs: [{ targets: [`127.0.0.1:${traefikPorts.metrics}`] }] }
  const config = { scrape_configs: [pods, envoy, traefik] }
  const listen = `0.0.0.0:${prometheusPort}`
  return { name: "prometheus", command: [program, ...prometheusArguments({ folder, config, listen })] }
}

/**
 * Writes every second which pods Prometheus is to scrape, until it is over: those of the real node with the usual
 * annotations. Debian's Prometheus is built without Kubernetes' discovery.
 */
async function writeTargets(api: Api, folder: string, isOver: () => boolean): Promise<void> {
  const file = targetsFile(folder)
  for (let last = ""; !isOver(); await new Promise(resolve => setTimeout(resolve, 1000))) {
    const pods = await api.get(`/api/v1/pods?fieldSelector=spec.nodeName=${realNode}`).catch(() => undefined)
    if (!pods || isOver()) continue
    const targets = JSON.stringify(pods.items.filter(isScraped).map(targetOf))
    if (targets === last) continue
    // Renamed, so that Prometheus never reads half a file.
    writeFileSync(`${file}.unfinished`, targets)
    renameSync(`${file}.unfinished`, file)
    last = targets
  }
}

const annotationOf = ({ metadata }: Json, name: string): string | undefined =>
  metadata.annotations?.[`prometheus.io/${name}`]
const isScraped = (pod: Json) => annotationOf(pod, "scrape") === "true" && pod.status.podIP && annotationOf(pod, "port")

/** Names and labels of the pod are labels of its series. Flagger's queries have had both names of the first two. */
function targetOf(pod: Json) {
  const { name, namespace, labels = {} } = pod.metadata
  const own = Object.entries(labels).map(([key, value]) => [key.replaceAll(/[^a-zA-Z0-9_]/g, "_"), value])
  const names = { namespace, kubernetes_namespace: namespace, pod: name, kubernetes_pod_name: name }
  const path = annotationOf(pod, "path") ?? "/metrics"
  return {
    targets: [`${pod.status.podIP}:${annotationOf(pod, "port")}`],
    labels: { ...Object.fromEntries(own), ...names, __metrics_path__: path },
  }
}
