import { setTimeout as sleep } from "node:timers/promises"
import type { Cluster, Json } from "#cluster-sim/index.ts"
import { until } from "#tools/kube/api.ts"
import { type Bundled, type Memory, startController } from "./controller-process.ts"
import type { Figure } from "./figures.ts"
import type { Progress } from "./progress.ts"
import { serveCluster } from "./served-cluster.ts"
import { completed, createServiceImage, imageOf, order, prepare, tenant, upToDateStatus } from "./tenants.ts"

const batch = 200
const MiB = 2 ** 20

export type Cost = {
  objects: number
  /** Of one object in one rollout, collector and all. */
  cpuMicroseconds: number
  delayMs: number
  memory: Memory
  /** Of one rollout. */
  writes: number
  lists: number
  gets: number
}

export type SimOptions = { objects: number; warmUps: number; rollouts: number; quietMs: number }

/** Rollouts over a fleet in a cluster in this process, over HTTP as with any other cluster. */
export async function onClusterSim(aim: Bundled, options: SimOptions, progress: Progress): Promise<Cost> {
  const { objects, warmUps, rollouts, quietMs } = options
  const { cluster, client, kubeconfig, close } = await serveCluster()
  try {
    await prepare(client)
    progress.begin(`creating ${objects} tenants in process`, objects)
    const dicoms = dicomKind(cluster)
    for (let index = 0; index < objects; index++) {
      cluster.storage.create(dicoms, tenant(index), { fieldManager: "bench" })
      if (index % 1000 === 0) await breathe(() => progress.at(index))
    }
    const operator = startOperator(cluster)
    await createServiceImage(client, { defaultImage: imageOf("v0") })
    progress.begin("starting the controller")
    const controller = await startController(aim, { kubeconfig, leaderElect: false }) // an election would wait for a Lease
    try {
      await until(
        "the controller to know all objects",
        async () =>
          (await controller.scrape()).sum("aim_cache_objects", { resource: "dicoms.services.example.com" }) === objects,
        { withinMs: 300_000 },
      )
      const rollOut = async (tag: string) => {
        progress.begin(`a rollout over ${objects}`, objects)
        operator.onReport(progress.at)
        await order(client, { defaultImage: imageOf(tag) })
        await completed(client)
      }
      for (let turn = 0; turn < warmUps; turn++) await rollOut(`warm-${turn}`)
      const before = await controller.scrape()
      for (let turn = 0; turn < rollouts; turn++) await rollOut(`v${turn + 1}`)
      const after = await controller.scrape()
      if (quietMs > 0) progress.begin(`${quietMs / 1000} s of quiet`)
      await sleep(quietMs)
      return {
        objects,
        cpuMicroseconds: ((after.cpuSeconds - before.cpuSeconds) * 1e6) / (objects * rollouts),
        delayMs: after.eventLoopP99Ms,
        memory: controller.memory(),
        writes: (after.writes - before.writes) / rollouts,
        lists: after.lists - before.lists,
        gets: after.gets - before.gets,
      }
    } finally {
      operator.stop()
      await controller.stop()
    }
  } finally {
    await close()
    progress.end()
  }
}

/** What a rollout costs per object, at the one size and at the other. */
export function scaling(few: Cost, many: Cost): Figure[] {
  const each = ({ objects, cpuMicroseconds }: Cost) => `${cpuMicroseconds.toFixed(0)} µs at ${objects}`
  return [
    {
      name: "CPU per object, many ÷ few",
      measured: many.cpuMicroseconds / few.cpuMicroseconds,
      most: 1.5,
      note: `${each(few)}, ${each(many)}`,
    },
    {
      name: "event-loop delay p99",
      measured: many.delayMs,
      most: 50,
      unit: "ms",
      note: `${many.objects} objects`,
    },
    {
      name: "memory at its peak",
      measured: many.memory.peak / MiB,
      most: 400,
      unit: "MiB",
      note: `${many.objects} objects`,
    },
  ]
}

/** What a rollout asks of the server. */
export function counts({ objects, writes, lists, gets }: Cost): Figure[] {
  const note = `${writes.toFixed(0)} writes for ${objects} objects`
  return [
    {
      name: "writes ÷ (N + ⌈N/W⌉ + 2)",
      measured: writes / (objects + Math.ceil(objects / batch) + 2),
      most: 1.05,
      note,
    },
    { name: "LIST during a rollout", measured: lists, most: 0 },
    { name: "GET during a rollout", measured: gets, most: 0 },
  ]
}

/** Makes every tenant up to date as soon as it is stamped. In pieces, so that requests are answered in between. */
function startOperator(cluster: Cluster) {
  const dicoms = dicomKind(cluster)
  const waiting = new Map<string, { name: string; namespace?: string }>()
  let reported = 0
  let tell = (_: number) => {}
  let isOver = false
  const unsubscribe = cluster.storage.subscribe(dicoms, ({ object }: Json) => {
    if (upToDateStatus(object)) waiting.set(object.metadata.uid, object.metadata)
  })
  const work = async () => {
    while (!isOver) {
      for (const [uid, where] of waiting) {
        waiting.delete(uid)
        const status = upToDateStatus(cluster.storage.get(dicoms, where))
        if (!status) continue
        const options = { subresource: "status", fieldManager: "bench-operator" } as const
        cluster.storage.patch(dicoms, where, { type: "merge", body: { status } }, options)
        tell(++reported)
        await breathe(() => {})
      }
      await sleep(5)
    }
  }
  const working = work()
  return {
    onReport(listener: (reported: number) => void) {
      reported = 0
      tell = listener
    },
    async stop() {
      isOver = true
      unsubscribe()
      await working
    },
  }
}

function dicomKind(cluster: Cluster) {
  const kind = cluster.storage.kind("services.example.com/v1alpha1", "Dicom")
  if (!kind) throw new Error("the cluster does not serve Dicoms")
  return kind
}

export const breathe = (work: () => void) =>
  new Promise<void>(resolve => {
    work()
    setImmediate(resolve)
  })
