import { spawn } from "node:child_process"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { type Client, connect, createClient } from "#runtime/client/index.ts"
import { systemClock } from "#runtime/clock.ts"
import { systemRandom } from "#runtime/random.ts"
import { until } from "#tools/kube/api.ts"
import { type Cluster, startCluster } from "#tools/kube/cluster.ts"
import { repository } from "#tools/kube/folders.ts"
import { Dicoms } from "../../examples/dicom/dicom.ts"
import type { Orders } from "./bare-loop.ts"
import { type Bundled, type ControllerProcess, startController } from "./controller-process.ts"
import { type Figure, percentile, show } from "./figures.ts"
import type { Progress } from "./progress.ts"
import {
  completed,
  createPods,
  createServiceImage,
  createTenants,
  imageOf,
  list,
  operate,
  order,
  prepare,
} from "./tenants.ts"

export type RealOptions = { objects: number; pods: boolean; rounds: number; samples: number; quietMs: number }

const batch = 200
const MiB = 2 ** 20

/**
 * A fleet on a real API server: what a rollout writes, how long it takes beside a loop that does nothing else, how soon
 * it begins, and what the controller holds in memory.
 */
export async function onRealServer(aim: Bundled, options: RealOptions, progress: Progress): Promise<Figure[]> {
  progress.begin("starting a cluster")
  const cluster = await startCluster({ kwokNodes: 0, kubelet: false })
  const { transport } = await connect({ kubeconfig: cluster.kubeconfig })
  const client = createClient({ transport, clock: systemClock, random: systemRandom })
  const ending = new AbortController()
  try {
    await prepare(client)
    await createTenants(client, options.objects, progress)
    const pods = options.pods ? await createPods(client, progress) : 0
    await createServiceImage(client, { defaultImage: imageOf("v0"), paused: true })
    const seen = await watchImages(client, ending.signal)
    return await measure({ aim, cluster, client, seen, pods, options, progress })
  } finally {
    ending.abort()
    client.close()
    progress.begin("stopping the cluster")
    await cluster.stop()
    progress.end()
  }
}

type Parts = {
  aim: Bundled
  cluster: Cluster
  client: Client
  seen: Seen
  pods: number
  options: RealOptions
  progress: Progress
}

async function measure({ aim, cluster, client, seen, pods, options, progress }: Parts): Promise<Figure[]> {
  const { objects, rounds, samples, quietMs } = options
  const least = objects + Math.ceil(objects / batch) + 2
  const ratios = { writes: [] as number[], times: [] as number[], lists: 0, gets: 0, lagMs: 0 }
  let notes = { writes: "", times: "" }
  let controller: ControllerProcess | undefined
  try {
    for (let round = 1; round <= rounds; round++) {
      await controller?.stop()
      const bareMs = await bareLoop(cluster, client, seen, `bare-${round}`, progress)

      progress.begin("starting the controller")
      controller = await startController(aim, cluster)
      await synced(controller, objects)
      const before = await controller.scrape()

      const image = imageOf(`v${round}`)
      progress.begin(`round ${round}: stamping`, objects)
      const startedAt = performance.now()
      await order(client, { defaultImage: image, paused: false })
      await seen.all(image, objects, progress.at)
      const stampingMs = performance.now() - startedAt
      await operate(client, progress)
      await completed(client)
      const after = await controller.scrape()
      await order(client, { paused: true })

      const writes = after.writes - before.writes
      ratios.writes.push(writes / least)
      ratios.times.push(stampingMs / bareMs)
      ratios.lists += after.lists - before.lists
      ratios.gets += after.gets - before.gets
      ratios.lagMs = Math.max(ratios.lagMs, after.eventLoopP99Ms)
      notes = {
        writes: `${writes} writes for ${objects} objects`,
        times: `${show(stampingMs / 1000, "s")} beside ${show(bareMs / 1000, "s")}; ${show(((after.cpuSeconds - before.cpuSeconds) * 1e6) / objects, "µs")} of CPU an object`,
      }
    }
    if (!controller) throw new Error("at least one round is needed")
    progress.begin(`${quietMs / 1000} s of quiet`)
    await sleep(quietMs)
    const memory = controller.memory()
    const first = await firstStamps({ client, seen, samples, progress })
    const bare = await roundTrips({ client, seen, samples, progress })
    const watched = `${objects} objects, ${pods} pods`
    return [
      { name: "writes ÷ (N + ⌈N/W⌉ + 2)", measured: Math.max(...ratios.writes), most: 1.05, note: notes.writes },
      { name: "LIST during a rollout", measured: ratios.lists, most: 0 },
      { name: "GET during a rollout", measured: ratios.gets, most: 0 },
      { name: "stamping ÷ bare loop", measured: percentile(ratios.times, 0.5), most: 1.25, note: notes.times },
      { name: "event-loop delay p99", measured: ratios.lagMs, most: 50, unit: "ms", note: "on the real server" },
      {
        name: "spec to first stamp p50",
        measured: percentile(first, 0.5),
        most: 50,
        unit: "ms",
        note: `a bare write and its event take ${show(percentile(bare, 0.5), "ms")}`,
      },
      {
        name: "spec to first stamp p99",
        measured: percentile(first, 0.99),
        most: 1000,
        unit: "ms",
        note: `${samples} samples`,
      },
      { name: "memory after quiet", measured: memory.resident / MiB, most: 200, unit: "MiB", note: watched },
      { name: "memory at its peak", measured: memory.peak / MiB, most: 320, unit: "MiB", note: watched },
    ]
  } finally {
    await controller?.stop()
  }
}

const synced = (controller: ControllerProcess, objects: number) =>
  until(
    "the controller to know all objects",
    async () => {
      const scrape = await controller.scrape()
      return scrape.sum("aim_cache_objects", { resource: "dicoms.services.example.com" }) === objects
    },
    { withinMs: 120_000 },
  )

async function bareLoop(
  cluster: Cluster,
  client: Client,
  seen: Seen,
  tag: string,
  progress: Progress,
): Promise<number> {
  const objects = (await list(client, Dicoms)).map(({ metadata: { name, namespace, resourceVersion } }) => ({
    path: `/apis/services.example.com/v1alpha1/namespaces/${namespace}/dicoms/${name}`,
    resourceVersion,
  }))
  progress.begin("a bare loop", objects.length)
  const image = imageOf(tag)
  const orders: Orders = { access: cluster.access, image, objects }
  const child = spawn(process.execPath, [join(repository, "bench/support/bare-loop.ts")], {
    stdio: ["pipe", "inherit", "inherit"],
  })
  const ended = new Promise<number | null>(resolve => child.once("close", resolve))
  child.stdin.end(JSON.stringify(orders))
  await seen.all(image, 1, progress.at) // its own start is no part of the loop
  const startedAt = performance.now()
  await Promise.race([seen.all(image, objects.length, progress.at), ended])
  const tookMs = performance.now() - startedAt
  if ((await ended) !== 0) throw new Error("the bare loop failed")
  return tookMs
}

/** A change of the spec, until a watcher sees the first object that has the new image. One is stamped for each. */
async function firstStamps({
  client,
  seen,
  samples,
  progress,
}: Pick<Parts, "client" | "seen" | "progress"> & { samples: number }) {
  progress.begin("from a spec to its first stamp", samples)
  const tookMs: number[] = []
  await order(client, { paused: false, tier: { maxConcurrent: 1 } })
  for (let sample = 0; sample < samples; sample++) {
    const image = imageOf(`first-${sample}`)
    const startedAt = performance.now()
    await order(client, { defaultImage: image, tier: { maxConcurrent: 1 } })
    await seen.all(image, 1)
    tookMs.push(performance.now() - startedAt)
    progress.at(sample)
  }
  await order(client, { paused: true })
  return tookMs
}

/** One write of ours, until the same watcher sees it. */
async function roundTrips({
  client,
  seen,
  samples,
  progress,
}: Pick<Parts, "client" | "seen" | "progress"> & { samples: number }) {
  progress.begin("bare round trips", samples)
  const tookMs: number[] = []
  for (let sample = 0; sample < samples; sample++) {
    const image = imageOf(`trip-${sample}`)
    const startedAt = performance.now()
    const target = { name: `tenant-${sample}`, namespace: `team-${sample % 20}` }
    await client.patch(Dicoms, target, { type: "merge", body: { spec: { image } } })
    await seen.all(image, 1)
    tookMs.push(performance.now() - startedAt)
    progress.at(sample)
  }
  return tookMs
}

type Seen = {
  /** Resolves when so many different objects have had this image. */
  all(image: string, count: number, onCount?: (count: number) => void): Promise<void>
}

/** Everything that becomes of the images, as the server tells it to anybody who watches. */
async function watchImages(client: Client, signal: AbortSignal): Promise<Seen> {
  const counts = new Map<string, Set<string>>()
  let wake = Promise.withResolvers<void>()
  const { metadata } = await client.list(Dicoms, { limit: 1 })
  const follow = async () => {
    for await (const { type, object } of client.watch(Dicoms, { resourceVersion: metadata.resourceVersion }, signal)) {
      if (type !== "MODIFIED") continue
      const { spec, metadata } = object as unknown as { spec: { image: string }; metadata: { uid: string } }
      const uids = counts.get(spec.image) ?? new Set()
      counts.set(spec.image, uids.add(metadata.uid))
      wake.resolve()
      wake = Promise.withResolvers()
    }
    if (!signal.aborted) throw new Error("the watch of the benchmark ended")
  }
  const broken = follow()
  broken.catch(() => {}) // whoever waits hears of it
  return {
    async all(image, count, onCount) {
      for (;;) {
        const size = counts.get(image)?.size ?? 0
        onCount?.(size)
        if (size >= count) return
        await Promise.race([wake.promise, broken])
      }
    },
  }
}
