import { spawn } from "node:child_process"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import type { Client } from "#runtime/client/index.ts"
import { until } from "#tools/kube/api.ts"
import type { Cluster } from "#tools/kube/cluster.ts"
import { repository } from "#tools/kube/folders.ts"
import { Dicoms } from "../../examples/dicom/dicom.ts"
import type { Orders } from "./bare-loop.ts"
import { type AimProcess, type Bundled, startController } from "./controller-process.ts"
import { clearCore, expectCoreToClear } from "./cores.ts"
import { type Figure, percentile, show } from "./figures.ts"
import { type Fleet, holdsAll, watchImages, withFleet } from "./fleet.ts"
import type { Progress } from "./progress.ts"
import { completed, imageOf, list, operate, order } from "./tenants.ts"

export type RealOptions = { objects: number; pods: boolean; rounds: number; samples: number; quietMs: number }

const batch = 200
const MiB = 2 ** 20

/**
 * A fleet on a real API server: what a rollout writes, how long it takes beside a loop that does nothing else, how soon
 * it begins, and what the controller holds in memory.
 */
export async function onRealServer(aim: Bundled, options: RealOptions, progress: Progress): Promise<Figure[]> {
  expectCoreToClear()
  return withFleet({ objects: options.objects, hasPods: options.pods }, progress, async fleet =>
    measure({ ...fleet, aim, seen: await countImages(fleet), options, progress }),
  )
}

type Parts = Fleet & {
  aim: Bundled
  seen: Seen
  options: RealOptions
  progress: Progress
}

type Round = { stampingMs: number; cpuSeconds: number; writes: number; lists: number; gets: number; delayMs: number }

async function measure(parts: Parts): Promise<Figure[]> {
  const { cluster, client, seen, options, progress } = parts
  const rounds: Round[] = []
  const bareMs: number[] = []
  const figures: Figure[] = []
  let controller: AimProcess | undefined
  try {
    for (let round = 1; round <= options.rounds; round++) {
      bareMs.push(await bareLoop(cluster, client, seen, `bare-${round}`, progress))
      controller = await readyController(parts)
      rounds.push(await rollOut(controller, parts, `v${round}`))
      if (round === options.rounds) figures.push(...(await quietFigures(controller, parts)))
      await controller.stop()
    }
    bareMs.push(await bareLoop(cluster, client, seen, "bare-last", progress))
    clearCore()
    controller = await readyController(parts, { hasOwnCore: true })
    const apart = await rollOut(controller, parts, "apart")
    return [...roundFigures(rounds, bareMs, options.objects), delayFigure(apart, rounds), ...figures]
  } finally {
    await controller?.stop()
  }
}

/** All lists are complete: the start of the controller is not measured. */
async function readyController({ aim, progress, ...fleet }: Parts, how: { hasOwnCore?: boolean } = {}) {
  progress.begin("starting the controller")
  const controller = await startController(aim, { kubeconfig: fleet.cluster.kubeconfig, ...how })
  await until(
    "the controller to know all objects and their pods",
    async () => holdsAll(await controller.scrape(), fleet),
    { withinMs: 120_000 },
  )
  return controller
}

async function rollOut(
  controller: AimProcess,
  { client, seen, options: { objects }, progress }: Parts,
  tag: string,
): Promise<Round> {
  const before = await controller.scrape()
  const image = imageOf(tag)
  progress.begin(`stamping ${tag}`, objects)
  const startedAt = performance.now()
  await order(client, { defaultImage: image, paused: false })
  await seen.all(image, objects, progress.at)
  const stampingMs = performance.now() - startedAt
  await operate(client, progress)
  await completed(client)
  const after = await controller.scrape()
  await order(client, { paused: true })
  return {
    stampingMs,
    cpuSeconds: after.cpuSeconds - before.cpuSeconds,
    writes: after.writes - before.writes,
    lists: after.lists - before.lists,
    gets: after.gets - before.gets,
    delayMs: after.eventLoopP99Ms,
  }
}

function roundFigures(rounds: readonly Round[], bareMs: readonly number[], objects: number): Figure[] {
  const least = objects + Math.ceil(objects / batch) + 2
  const most = (of: (round: Round) => number) => Math.max(...rounds.map(of))
  // The speed of a shared machine varies: each round is compared with the loops
  // before and after it.
  const besideMs = rounds.map((_, index) => (bareMs[index]! + bareMs[index + 1]!) / 2)
  const ratios = rounds.map(({ stampingMs }, index) => stampingMs / besideMs[index]!)
  const each = rounds.map(({ stampingMs }, index) => `${seconds(stampingMs)} beside ${seconds(besideMs[index]!)}`)
  const cpu = show((most(round => round.cpuSeconds) * 1e6) / objects, "µs")
  return [
    {
      name: "writes ÷ (N + ⌈N/W⌉ + 2)",
      measured: most(round => round.writes) / least,
      most: 1.05,
      note: `${most(round => round.writes)} writes for ${objects} objects`,
    },
    { name: "LIST during a rollout", measured: most(round => round.lists), most: 0 },
    { name: "GET during a rollout", measured: most(round => round.gets), most: 0 },
    {
      name: "stamping ÷ bare loop",
      measured: percentile(ratios, 0.5),
      most: 1.25,
      note: `${each.join(", ")}; ${cpu} of CPU an object`,
    },
  ]
}

function delayFigure(apart: Round, shared: readonly Round[]): Figure {
  const beside = show(Math.max(...shared.map(({ delayMs }) => delayMs)), "ms")
  return {
    name: "event-loop delay p99",
    measured: apart.delayMs,
    most: 50,
    unit: "ms",
    note: `on a core of its own; ${beside} where it shares them with the server`,
  }
}

const seconds = (ms: number) => show(ms / 1000, "s")

/** What is left when everything is done, and how soon it begins again. */
async function quietFigures(controller: AimProcess, parts: Parts): Promise<Figure[]> {
  const { pods, options, progress } = parts
  const { objects, samples, quietMs } = options
  progress.begin(`${quietMs / 1000} s of quiet`)
  await sleep(quietMs)
  const memory = controller.memory()
  const first = await firstStamps({ ...parts, samples })
  const bare = await roundTrips({ ...parts, samples })
  const watched = `${objects} objects, ${pods} pods`
  return [
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
}

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
  await Promise.race([seen.all(image, 1, progress.at), ended]) // its own start is not part of the loop
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

async function countImages(fleet: Fleet): Promise<Seen> {
  const counts = new Map<string, Set<string>>()
  const { next } = await watchImages(fleet, (uid, image) => {
    const uids = counts.get(image) ?? new Set()
    counts.set(image, uids.add(uid))
  })
  return {
    async all(image, count, onCount) {
      for (;;) {
        const size = counts.get(image)?.size ?? 0
        onCount?.(size)
        if (size >= count) return
        await next()
      }
    },
  }
}
