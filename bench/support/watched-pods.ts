import type { AlternateImageSource } from "#api/v1alpha1/alternateimagesource/index.ts"
import { createCluster, type Json } from "#cluster-sim/index.ts"
import { alternateImageSources } from "#controllers/alternateimagesource/resources.ts"
import { Sources, type Surroundings, sourceIndexes } from "#controllers/alternateimagesource/sources.ts"
import { createCache } from "#runtime/cache/index.ts"
import { createClient } from "#runtime/client/index.ts"
import { systemClock } from "#runtime/clock.ts"
import { type Held, hold } from "#runtime/kind-controller.ts"
import { createOpenCaches } from "#runtime/open-caches.ts"
import { seededRandom } from "#runtime/random.ts"
import type { Figure } from "./figures.ts"
import { breathe } from "./on-cluster-sim.ts"
import { deployment, failing, openMirror, podOf, replicaSet, running, serveSources, source } from "./outages.ts"
import type { Progress } from "./progress.ts"

const podsEach = 50

/** What the index of a controller keeps of pods that run, their workloads and the caches in it. */
export async function heapOfHealthyPods(count: number, collect: () => void, progress: Progress): Promise<Figure> {
  const cluster = createCluster({ clock: systemClock, seed: 1, keptChanges: 10 })
  const client = createClient({ transport: cluster.transport, clock: systemClock, random: seededRandom(1) })
  const mirror = await openMirror({ answerMs: 0 })
  try {
    await serveSources(client)
    await populate(count)
    progress.begin("indexing them", 2)
    await indexed() // so that what the cluster itself keeps for readers is there already
    progress.at(1)
    const { bytes, pods } = await indexed()
    if (pods !== count) throw new Error(`${pods} of ${count} pods are known`)
    const note = `of ${count} pods, ${podsEach} a Deployment; the index, its caches and the workloads`
    return { name: "heap of a healthy pod", measured: bytes / count, most: 1000, unit: "bytes", note }
  } finally {
    client.close()
    await mirror.close()
    progress.end()
  }

  async function populate(count: number) {
    const { storage } = cluster
    const kind = (apiVersion: string, name: string) => storage.kind(apiVersion, name)!
    const create = (object: Json): Json =>
      storage.create(kind(object.apiVersion, object.kind), object, { fieldManager: "bench" })
    create({ apiVersion: "v1", kind: "Namespace", metadata: { name: "team" } })
    create(source("team", mirror))
    progress.begin(`creating ${count} pods`, count)
    let owner: Json = {}
    for (let index = 0; index < count; index++) {
      const image = `${failing}:v${Math.floor(index / podsEach)}`
      if (index % podsEach === 0) owner = create(replicaSet(create(deployment(`app-${index}`, "team", image))))
      const { metadata } = create(podOf(owner, String(index), image))
      const body = { status: running(image) }
      const by = { fieldManager: "bench", subresource: "status" } as const
      storage.patch(kind("v1", "Pod"), metadata, { type: "merge", body }, by)
      if (index % 500 === 0) await breathe(() => progress.at(index))
    }
  }

  async function indexed() {
    const before = heapUsed(collect)
    const caches = createOpenCaches({
      openCache: (resource, options) =>
        createCache({ client, clock: systemClock, random: seededRandom(1) }, resource, options),
    })
    const syncing: Promise<void>[] = []
    const sizes = new Map<string, () => number>()
    const watch: Surroundings["watch"] = (resource, options) => {
      const cache = caches.open(resource, options)
      syncing.push(cache.synced())
      sizes.set(resource.plural, () => cache.size)
      return cache
    }
    const objects = watch<Held<AlternateImageSource>>(alternateImageSources, { project: hold, indexes: sourceIndexes })
    const sources = new Sources({ watch, clock: systemClock, enqueue() {}, enqueueAfter() {} }, objects)
    sources.open()
    await Promise.all(syncing)
    const bytes = heapUsed(collect) - before
    const pods = sizes.get("pods")!()
    if (sources.failingIn("team") > 0) throw new Error("healthy pods are taken for failing ones")
    caches.closeAll()
    return { bytes, pods }
  }
}

function heapUsed(collect: () => void): number {
  collect()
  collect()
  return process.memoryUsage().heapUsed
}
