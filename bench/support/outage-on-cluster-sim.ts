import { setTimeout as sleep } from "node:timers/promises"
import type { Cluster, Json } from "#cluster-sim/index.ts"
import type { Request, Transport } from "#runtime/client/transport.ts"
import { until } from "#tools/kube/api.ts"
import { type AimProcess, type Bundled, startController } from "./controller-process.ts"
import { breathe } from "./on-cluster-sim.ts"
import {
  cannotPull,
  deployment,
  failing,
  type Mirror,
  openMirror,
  podOf,
  replicaSet,
  running,
  serveSources,
  source,
} from "./outages.ts"
import type { Progress } from "./progress.ts"
import { serveCluster } from "./served-cluster.ts"

export type OutageOptions = {
  namespaces: number
  workloads: number
  /** Of each workload. */
  failing: number
  healthy: number
  warmUps: number
  outages: number
  /** Over which the pods begin to fail. */
  spreadMs: number
}

/** Of one outage, but for what is the most of all of them. */
export type OutageCost = {
  failing: number
  pods: number
  workloads: number
  /** Of one failing pod, collector and all. */
  cpuMicroseconds: number
  patches: number
  statusWrites: number
  events: number
  gets: number
  lists: number
  writesAtOnce: number
  questionsAtOnce: number
  questions: number
  tookMs: number
}

/** The latency of a nearby server: without it, requests would not overlap. */
const answerMs = 5

/**
 * A registry that no longer answers, in a cluster in this process, over HTTP. Its pods are
 * only reported: nothing pulls, and the benchmark reports what kubelets would.
 */
export async function outageOnClusterSim(
  aim: Bundled,
  options: OutageOptions,
  progress: Progress,
): Promise<OutageCost> {
  let counted!: Counted
  const { cluster, client, kubeconfig, close } = await serveCluster({ keptChanges: 1000 }, transport => {
    counted = countRequests(transport)
    return counted.transport
  })
  const mirror = await openMirror({ answerMs })
  let controller: AimProcess | undefined
  const fleet = createFleet(cluster, mirror, options)
  try {
    await serveSources(client)
    await fleet.create(progress)
    progress.begin("starting the controller")
    const more = ["--allow-registry", mirror.allowed, "--kinds", "alternateimagesource"]
    controller = await startController(aim, { kubeconfig, leaderElect: false, more })
    const { warmUps, outages } = options
    for (let turn = 0; turn < warmUps; turn++) await fleet.outage(`warm-${turn}`, counted, progress)
    const total = { cpuSeconds: 0, tookMs: 0 }
    const counts = new Map<string, number>()
    for (let turn = 0; turn < outages; turn++) {
      await fleet.deploy(`v${turn}`, counted, progress)
      const before = await controller.scrape()
      counted.reset()
      const startedAt = performance.now()
      await fleet.fail(`v${turn}`, progress)
      total.tookMs += performance.now() - startedAt
      await counted.quiet()
      total.cpuSeconds += (await controller.scrape()).cpuSeconds - before.cpuSeconds
      for (const [what, count] of counted.counts) counts.set(what, (counts.get(what) ?? 0) + count)
    }
    const each = (what: string) => (counts.get(what) ?? 0) / outages
    const failingPods = options.workloads * options.failing
    return {
      failing: failingPods,
      pods: failingPods + options.workloads * options.healthy,
      workloads: options.workloads,
      cpuMicroseconds: (total.cpuSeconds * 1e6) / (failingPods * outages),
      patches: each("PATCH pods"),
      statusWrites: each("PUT status"),
      events: each("POST events") + each("PATCH events"),
      gets: each("GET"),
      lists: each("LIST"),
      writesAtOnce: counted.atOnceMost(),
      questionsAtOnce: mirror.atOnceMost(),
      questions: mirror.questions() / (warmUps + outages),
      tookMs: total.tookMs / outages,
    }
  } finally {
    await controller?.stop()
    fleet.stop()
    await close()
    await mirror.close()
    progress.end()
  }
}

type Counted = ReturnType<typeof countRequests>

/** Counts requests to a server, and gives writes a realistic latency. */
function countRequests(next: Transport) {
  const counts = new Map<string, number>()
  let [open, most, lastAt] = [0, 0, performance.now()]
  const transport: Transport = {
    ...next,
    async send(request) {
      const what = nameOf(request)
      if (what === undefined) return next.send(request)
      counts.set(what, (counts.get(what) ?? 0) + 1)
      lastAt = performance.now()
      if (what.startsWith("GET") || what.startsWith("LIST")) return next.send(request)
      const isPod = what === "PATCH pods"
      if (isPod) most = Math.max(most, ++open)
      try {
        await sleep(answerMs)
        return await next.send(request)
      } finally {
        if (isPod) open--
        lastAt = performance.now()
      }
    },
  }
  return {
    transport,
    counts,
    reset() {
      counts.clear()
    },
    atOnceMost: () => most,
    /** Until nothing was asked for longer than a status is held back. */
    quiet: (ms = 2500) =>
      until("the controller to come to rest", async () => performance.now() - lastAt > ms, {
        withinMs: 120_000,
        everyMs: 100,
      }),
  }
}

function nameOf({ method, path }: Request): string | undefined {
  const [place = "", query = ""] = path.split("?")
  if (query.includes("watch=")) return undefined
  const isList = /\/(pods|deployments|replicasets|alternateimagesources)$/.test(place)
  if (method === "GET") return isList ? "LIST" : "GET"
  const what = place.endsWith("/status") ? "status" : /\/(pods|events)(\/|$)/.exec(place)?.[1]
  return `${method} ${what ?? "others"}`
}

/** Workloads whose failing pods are new with every outage, beside others that run. */
function createFleet(cluster: Cluster, mirror: Mirror, options: OutageOptions) {
  const { storage } = cluster
  const kind = (apiVersion: string, name: string) => storage.kind(apiVersion, name)!
  const [pods, namespaces] = [kind("v1", "Pod"), kind("v1", "Namespace")]
  const [deployments, replicaSets] = [kind("apps/v1", "Deployment"), kind("apps/v1", "ReplicaSet")]
  const sources = () => kind("autoimagemanager.io/v1alpha1", "AlternateImageSource")
  const by = { fieldManager: "bench" }
  const says = (pod: Json, status: Json) =>
    storage.patch(pods, pod.metadata, { type: "merge", body: { status } }, { ...by, subresource: "status" })

  const owners: Json[] = []
  let unhealthy: Json[] = []
  /** Pods that were sent to the mirror and have not begun to run: a kubelet's next work. */
  const sent = new Map<string, Json>()
  let repaired = 0
  const unsubscribe = storage.subscribe(pods, ({ type, object }: Json) => {
    const isSent = type !== "DELETED" && object.spec.containers[0].image.startsWith(mirror.repository)
    if (isSent && object.status?.phase === "Pending") sent.set(object.metadata.uid, object)
  })
  const runSent = async () => {
    for (const [uid, pod] of sent) {
      sent.delete(uid)
      says(pod, running(pod.spec.containers[0].image))
      repaired++
      await breathe(() => {})
    }
  }
  const allAre = (isIt: (status: Json) => boolean) =>
    storage.list(sources(), {}).items.every(({ status }: Json) => status && isIt(status))

  const deploy = async (tag: string, counted: Counted, progress: Progress) => {
    progress.begin(`deploying ${tag}`, owners.length)
    for (const { metadata } of unhealthy) storage.delete(pods, metadata)
    unhealthy = []
    for (const [index, owner] of owners.entries()) {
      const image = `${failing}:${tag}-${index}`
      const name = { name: owner.metadata.labels.app, namespace: owner.metadata.namespace }
      const template = { spec: { containers: [{ name: "app", image }] } }
      storage.patch(deployments, name, { type: "strategic", body: { spec: { template } } }, by)
      for (let at = 0; at < options.failing; at++)
        unhealthy.push(storage.create(pods, podOf(owner, `${tag}-${at}`, image), by))
      await breathe(() => progress.at(index))
    }
    await until("all to be watched", async () => allAre(({ incidents, switched }) => incidents + switched === 0), {
      withinMs: 120_000,
    })
    await counted.quiet()
  }

  const fail = async (tag: string, progress: Progress) => {
    progress.begin(`${unhealthy.length} pods of ${tag} fail`, unhealthy.length)
    repaired = 0
    const startedAt = performance.now()
    for (const [index, pod] of unhealthy.entries()) {
      const waitMs = (options.spreadMs * index) / unhealthy.length - (performance.now() - startedAt)
      if (waitMs > 1) await sleep(waitMs)
      says(pod, cannotPull(pod.spec.containers[0].image))
      await breathe(() => progress.at(repaired))
      await runSent()
    }
    const deadline = performance.now() + 300_000
    while (repaired < unhealthy.length) {
      if (performance.now() > deadline) throw new Error(`only ${repaired} of ${unhealthy.length} pods were repaired`)
      await runSent()
      progress.at(repaired)
      await sleep(5)
    }
    await until("all to be told", async () =>
      allAre(({ incidents, switched, targets }) => incidents === 0 && switched === targets),
    )
  }

  return {
    async create(progress: Progress) {
      const { workloads, healthy } = options
      progress.begin(`creating ${workloads * healthy} healthy pods`, workloads)
      for (let index = 0; index < options.namespaces; index++) {
        storage.create(namespaces, { apiVersion: "v1", kind: "Namespace", metadata: { name: `team-${index}` } }, by)
        storage.create(sources(), source(`team-${index}`, mirror), by)
      }
      for (let index = 0; index < workloads; index++) {
        const namespace = `team-${index % options.namespaces}`
        const image = `${failing}:v-${index}`
        const owner = storage.create(deployments, deployment(`app-${index}`, namespace, image), by)
        owners.push(storage.create(replicaSets, replicaSet(owner), by))
        for (let at = 0; at < healthy; at++) {
          says(storage.create(pods, podOf(owners.at(-1)!, `healthy-${at}`, image), by), running(image))
        }
        await breathe(() => progress.at(index))
      }
    },
    deploy,
    fail,
    async outage(tag: string, counted: Counted, progress: Progress) {
      await deploy(tag, counted, progress)
      await fail(tag, progress)
      await counted.quiet()
    },
    stop: unsubscribe,
  }
}
