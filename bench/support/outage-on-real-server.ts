import { pods } from "#controllers/alternateimagesource/resources.ts"
import { namespaces } from "#controllers/serviceimage/resources.ts"
import { type Client, connect, createClient } from "#runtime/client/index.ts"
import { systemClock } from "#runtime/clock.ts"
import { systemRandom } from "#runtime/random.ts"
import type { Resource } from "#runtime/resource.ts"
import { type Json, until } from "#tools/kube/api.ts"
import { startCluster } from "#tools/kube/cluster.ts"
import { type AimProcess, type Bundled, type Scrape, startController } from "./controller-process.ts"
import { type Figure, percentile, show } from "./figures.ts"
import { cannotPull, deployment, failing, openMirror, running, serveSources, source } from "./outages.ts"
import type { Progress } from "./progress.ts"

const deployments: Resource = {
  group: "apps",
  version: "v1",
  plural: "deployments",
  kind: "Deployment",
  namespaced: true,
}
const sources: Resource = {
  group: "autoimagemanager.io",
  version: "v1alpha1",
  plural: "alternateimagesources",
  kind: "AlternateImageSource",
  namespaced: true,
}
const namespace = "bench"

/**
 * Workloads of a real API server that fail one after the other, each an incident of its own whose image is asked for at
 * a registry: the time from a kubelet's status to the repair as a watcher sees it.
 */
export async function repairsOnRealServer(
  aim: Bundled,
  { samples }: { samples: number },
  progress: Progress,
): Promise<Figure[]> {
  progress.begin("starting a cluster")
  const cluster = await startCluster({ kwokNodes: 0, kubelet: false })
  const { transport } = await connect({ kubeconfig: cluster.kubeconfig })
  const client = createClient({ transport, clock: systemClock, random: systemRandom })
  const mirror = await openMirror({ answerMs: 0 })
  const ending = new AbortController()
  let controller: AimProcess | undefined
  try {
    await serveSources(client)
    await client.create(namespaces, { metadata: { name: namespace } })
    await client.create(sources, source(namespace, mirror))
    const seen = await watchPods(client, ending.signal)
    progress.begin(`creating ${samples} workloads`, samples)
    for (let at = 0; at < samples; at++) {
      await client.create(deployments, deployment(`app-${at}`, namespace, `${failing}:v${at}`))
      progress.at(at)
    }
    await seen.until(images => images.size === samples)

    progress.begin("starting the controller")
    const more = ["--allow-registry", mirror.allowed, "--kinds", "alternateimagesource"]
    controller = await startController(aim, { kubeconfig: cluster.kubeconfig, more })
    await settled(client, { targets: samples, switched: 0 })
    const before = await controller.scrape()
    const tookMs: number[] = []
    progress.begin("repairs, one after the other", samples)
    for (const [name, image] of [...seen.images]) {
      const startedAt = performance.now()
      await says(client, name, cannotPull(image))
      await seen.until(images => images.get(name) !== image)
      tookMs.push(performance.now() - startedAt)
      await says(client, name, running(seen.images.get(name)!))
      await settled(client, { targets: samples, switched: tookMs.length })
      progress.at(tookMs.length)
    }
    const after = await controller.scrape()
    const bareMs = await roundTrips(client, seen, progress)
    const count = (which: (scrape: Scrape) => number) => which(after) - which(before)
    const patches = count(writesTo("pods"))
    const statusWrites = count(writesTo("alternateimagesources.autoimagemanager.io/status"))
    return [
      {
        name: "kubelet's word to repair p50",
        measured: percentile(tookMs, 0.5),
        most: 100,
        unit: "ms",
        note: `p99 ${show(percentile(tookMs, 0.99), "ms")} of ${samples}; a bare write and its event take ${show(percentile(bareMs, 0.5), "ms")}`,
      },
      {
        name: "writes of an incident ÷ 2",
        measured: (patches + statusWrites) / (2 * samples),
        most: 1.05,
        note: `${patches} patches and ${statusWrites} of the status for ${samples} incidents, one after the other`,
      },
    ]
  } finally {
    ending.abort()
    await controller?.stop()
    client.close()
    await mirror.close()
    progress.begin("stopping the cluster")
    await cluster.stop()
    progress.end()
  }
}

const writesTo = (resource: string) => (scrape: Scrape) =>
  scrape.sum("rest_client_requests_total", { verb: "patch", resource }) +
  scrape.sum("rest_client_requests_total", { verb: "update", resource })

const says = (client: Client, name: string, status: Json) =>
  client.patch(pods, { name, namespace }, { type: "merge", body: { status } }, { subresource: "status" })

const settled = (client: Client, wanted: { targets: number; switched: number }) =>
  until(
    "the status to tell it",
    async () => {
      const { status }: Json = await client.get(sources, { name: "bench", namespace })
      return status?.targets === wanted.targets && status.switched === wanted.switched && status.incidents === 0
    },
    { everyMs: 50 },
  )

/** One write of ours, until the same watcher sees it. */
async function roundTrips(client: Client, seen: Seen, progress: Progress): Promise<number[]> {
  progress.begin("bare round trips", seen.images.size)
  const tookMs: number[] = []
  for (const [name, image] of [...seen.images]) {
    const startedAt = performance.now()
    const body = { spec: { containers: [{ name: "app", image: `${image}-again` }] } }
    await client.patch(pods, { name, namespace }, { type: "strategic", body })
    await seen.until(images => images.get(name) !== image)
    tookMs.push(performance.now() - startedAt)
  }
  return tookMs
}

type Seen = {
  /** By pod. */
  images: ReadonlyMap<string, string>
  until(isIt: (images: ReadonlyMap<string, string>) => boolean): Promise<void>
}

/** The image of every pod, as the server sends it to any watch. */
async function watchPods(client: Client, signal: AbortSignal): Promise<Seen> {
  const images = new Map<string, string>()
  let wake = Promise.withResolvers<void>()
  const { metadata } = await client.list(pods, { namespace })
  const follow = async () => {
    const from = { namespace, resourceVersion: metadata.resourceVersion }
    for await (const { type, object } of client.watch(pods, from, signal)) {
      if (type !== "ADDED" && type !== "MODIFIED") continue
      const { metadata, spec }: Json = object
      images.set(metadata.name, spec.containers[0].image)
      wake.resolve()
      wake = Promise.withResolvers()
    }
    if (!signal.aborted) throw new Error("the watch of the benchmark ended")
  }
  const broken = follow()
  broken.catch(() => {}) // reported to those that wait
  return {
    images,
    async until(isIt) {
      while (!isIt(images)) await Promise.race([wake.promise, broken])
    },
  }
}
