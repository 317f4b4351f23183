import { setTimeout as sleep } from "node:timers/promises"
import { policies } from "#cli/manifests/policies.ts"
import { type Cluster, createGateway, everyPart, type Json } from "#cluster-sim/index.ts"
import { until } from "#tools/kube/api.ts"
import { type Asked, askedBetween, askedIn, canaryOf, deploymentOf, type Web, websOf } from "./canaries.ts"
import { type Bundled, type Memory, startController } from "./controller-process.ts"
import { type Figure, show } from "./figures.ts"
import { namespaces } from "./in-place-on-cluster-sim.ts"
import { grant } from "./in-place-updates.ts"
import { breathe } from "./on-cluster-sim.ts"
import type { Progress } from "./progress.ts"
import { serveCluster } from "./served-cluster.ts"
import { prepare } from "./tenants.ts"

const MiB = 2 ** 20

export type Rest = {
  readonly canaries: number
  readonly pods: number
  readonly memory: Memory
  /** While nothing happened. */
  readonly asked: Asked
  readonly quietMs: number
  /** Of an event that changes nothing for a Canary. */
  readonly cpuMicroseconds: number
  readonly events: number
  readonly askedByEvents: Asked
}

type Size = { readonly canaries: number; readonly podsEach: number; readonly quietMs: number; readonly touches: number }

/**
 * Canaries that have adopted their Deployments and wait, in a cluster in this process; the manager is in one of its own.
 * First nothing happens. Then Deployments are touched, all of them in turns: what an event costs must not depend on how
 * many there are. Each has an autoscaler.
 */
export async function atRest(
  aim: Bundled,
  { canaries, podsEach, quietMs, touches }: Size,
  progress: Progress,
): Promise<Rest> {
  const pods = canaries * podsEach
  const parts = everyPart({ nodes: Math.max(5, Math.ceil(pods / 60)), heartbeat: "lazy", gateway: createGateway() })
  const { cluster, client, kubeconfig, close } = await serveCluster({ parts, keptChanges: 1000 })
  cluster.start()
  try {
    await prepare(client)
    for (const namespace of namespaces) await grant(client, namespace)
    const webs = websOf(canaries)
    const create = creating(cluster)
    for (const manifest of [...(policies() as Json[]), ...gateway]) create(manifest)
    progress.begin(`creating ${pods} pods in process`, canaries)
    for (const [index, web] of webs.entries()) {
      create(deploymentOf(web, podsEach))
      create(autoscalerOf(web, podsEach))
      if (index % 20 === 0) await breathe(() => progress.at(index))
    }
    const ready = count(cluster, "apps/v1", "Deployment", ({ status }) => status?.availableReplicas === podsEach)
    await all("pods to be ready", canaries, ready, progress)
    for (const web of webs) create(canaryOf(web, spec))
    progress.begin("adopting", canaries)
    const manager = await startController(aim, { kubeconfig, leaderElect: false })
    try {
      const isSettled = ({ status }: Json) =>
        status?.phase === "Initialized" &&
        status.conditions.some((each: Json) => each.type === "Ready" && each.status === "True")
      await all("Canaries to be adopted", canaries, count(cluster, group, "Canary", isSettled), progress)
      progress.begin(`${quietMs / 1000} s of quiet`)
      // What the adoption itself has set going is over by then.
      await sleep(5000)
      const before = askedIn(await manager.scrape())
      await sleep(quietMs)
      const asked = askedBetween(before, askedIn(await manager.scrape()))
      const memory = manager.memory()
      const touch = touching(cluster)
      progress.begin(`touching ${touches} Deployments`, touches)
      // Compiled by then, at either size.
      await touch(webs, touches, "first", progress)
      const start = {
        cpu: manager.cpuSeconds(),
        revision: cluster.store.revision,
        asked: askedIn(await manager.scrape()),
      }
      await touch(webs, touches, "second", progress)
      const events = cluster.store.revision - start.revision
      return {
        ...{ canaries, pods, memory, asked, quietMs, events },
        cpuMicroseconds: ((manager.cpuSeconds() - start.cpu) * 1e6) / events,
        askedByEvents: askedBetween(start.asked, askedIn(await manager.scrape())),
      }
    } finally {
      await manager.stop()
    }
  } finally {
    cluster.stop()
    await close()
    progress.end()
  }
}

const group = "autoimagemanager.io/v1alpha1"

const spec = {
  provider: "gatewayapi:v1",
  service: {
    ...{ port: 80, targetPort: 8080, hosts: ["web.example.com"] },
    gatewayRefs: [{ name: "gateway", namespace: "default" }],
  },
  analysis: { interval: "1m", threshold: 2, stepWeights: [20, 50] },
}

const gatewayApi = "gateway.networking.k8s.io/v1"
const gateway: Json[] = [
  {
    ...{ apiVersion: gatewayApi, kind: "GatewayClass", metadata: { name: "contour" } },
    spec: { controllerName: "projectcontour.io/gateway-controller" },
  },
  {
    ...{ apiVersion: gatewayApi, kind: "Gateway", metadata: { name: "gateway", namespace: "default" } },
    spec: {
      gatewayClassName: "contour",
      listeners: [{ name: "http", port: 80, protocol: "HTTP", allowedRoutes: { namespaces: { from: "All" } } }],
    },
  },
]

const autoscalerOf = ({ name, namespace }: Web, pods: number): Json => ({
  apiVersion: "autoscaling/v2",
  kind: "HorizontalPodAutoscaler",
  metadata: { name, namespace },
  spec: {
    scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name },
    ...{ minReplicas: pods, maxReplicas: 2 * pods },
    metrics: [{ type: "Resource", resource: { name: "cpu", target: { type: "Utilization", averageUtilization: 80 } } }],
  },
})

function creating({ storage }: Cluster) {
  return (manifest: Json): void => {
    const kind = storage.kind(manifest.apiVersion, manifest.kind)
    if (!kind) throw new Error(`the cluster does not serve ${manifest.kind}`)
    storage.create(kind, manifest, { fieldManager: "bench" })
  }
}

const count =
  ({ storage }: Cluster, apiVersion: string, kind: string, is: (object: Json) => boolean) =>
  () =>
    storage.list(storage.kind(apiVersion, kind)!, {}).items.filter(is).length

const all = (what: string, wanted: number, found: () => number, progress: Progress) =>
  until(
    what,
    async () => {
      progress.at(found())
      return found() === wanted
    },
    { withinMs: 1_800_000, everyMs: 1000 },
  )

/** At a pace that the manager keeps up with: each look is of one event. */
function touching({ storage }: Cluster) {
  const kind = storage.kind("apps/v1", "Deployment")!
  return async (webs: readonly Web[], times: number, value: string, progress: Progress): Promise<void> => {
    for (let index = 0; index < times; index++) {
      // A prime, so that neighbours are of different namespaces.
      const web = webs[(index * 7) % webs.length]!
      const body = { metadata: { annotations: { "example.com/touched": `${value}-${index}` } } }
      storage.patch(kind, web, { type: "merge", body }, { fieldManager: "bench" })
      if (index % 5 === 0) await sleep(10)
      progress.at(index)
    }
    await sleep(2000)
  }
}

export function restFigures(few: Rest, many: Rest): Figure[] {
  const bounds: [Rest, number][] = [
    [few, 130],
    [many, 160],
  ]
  return [
    ...bounds.flatMap(([rest, most]): Figure[] => [
      {
        name: `memory at ${rest.canaries} Canaries`,
        measured: rest.memory.resident / MiB,
        ...{ most, unit: "MiB" },
        note: `${rest.pods} pods; ${show(rest.memory.peak / MiB, "MiB")} at its peak`,
      },
      {
        name: `requests of ${rest.canaries} settled Canaries`,
        measured: rest.asked.writes + rest.asked.reads,
        most: 0,
        note: `in ${rest.quietMs / 1000} s, without watches that are opened again`,
      },
    ]),
    {
      name: "CPU of an event, many ÷ few",
      measured: many.cpuMicroseconds / few.cpuMicroseconds,
      most: 1.3,
      note: [few, many].map(rest => `${rest.cpuMicroseconds.toFixed(0)} µs of ${rest.canaries}`).join(", "),
    },
    {
      name: "requests by events that change nothing",
      measured: [few, many].reduce((total, { askedByEvents: { writes, reads } }) => total + writes + reads, 0),
      most: 0,
      note: `${few.events + many.events} events`,
    },
  ]
}
