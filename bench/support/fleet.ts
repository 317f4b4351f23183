import { type Client, connect, createClient } from "#runtime/client/index.ts"
import { systemClock } from "#runtime/clock.ts"
import { systemRandom } from "#runtime/random.ts"
import { type Cluster, startCluster } from "#tools/kube/cluster.ts"
import { Dicoms } from "../../examples/dicom/dicom.ts"
import type { AimProcess } from "./controller-process.ts"
import type { Progress } from "./progress.ts"
import { createPods, createServiceImage, createTenants, imageOf, prepare } from "./tenants.ts"

export type Fleet = {
  cluster: Cluster
  client: Client
  objects: number
  pods: number
  /** Aborted when the measurement is over. */
  signal: AbortSignal
}

/** A fleet with a paused ServiceImage on a real API server, for as long as `measure` takes. */
export async function withFleet<T>(
  { objects, hasPods }: { objects: number; hasPods: boolean },
  progress: Progress,
  measure: (fleet: Fleet) => Promise<T>,
): Promise<T> {
  progress.begin("starting a cluster")
  const cluster = await startCluster({ kwokNodes: 0, kubelet: false })
  const { transport } = await connect({ kubeconfig: cluster.kubeconfig })
  const client = createClient({ transport, clock: systemClock, random: systemRandom })
  const ending = new AbortController()
  try {
    await prepare(client)
    await createTenants(client, objects, progress)
    const pods = hasPods ? await createPods(client, progress) : 0
    await createServiceImage(client, { defaultImage: imageOf("v0"), paused: true })
    return await measure({ cluster, client, objects, pods, signal: ending.signal })
  } finally {
    ending.abort()
    client.close()
    progress.begin("stopping the cluster")
    await cluster.stop()
    progress.end()
  }
}

/** Whether the caches of ServiceImage's controller hold the whole fleet. Other controllers have stores of their own. */
export function holdsAll(
  scrape: Awaited<ReturnType<AimProcess["scrape"]>>,
  { objects, pods }: Pick<Fleet, "objects" | "pods">,
): boolean {
  const known = (resource: string) => scrape.sum("aim_cache_objects", { controller: "serviceimage", resource })
  return known("dicoms.services.example.com") === objects && known("pods") === pods
}

/** Calls `onImage` for every change of an object, as the server sends it to any watch. */
export async function watchImages(
  { client, signal }: Pick<Fleet, "client" | "signal">,
  onImage: (uid: string, image: string) => void,
): Promise<{ /** Resolves after the next change. */ next(): Promise<void> }> {
  let wake = Promise.withResolvers<void>()
  const { metadata } = await client.list(Dicoms, { limit: 1 })
  const follow = async () => {
    for await (const { type, object } of client.watch(Dicoms, { resourceVersion: metadata.resourceVersion }, signal)) {
      if (type !== "MODIFIED") continue
      const { spec, metadata } = object as unknown as { spec: { image: string }; metadata: { uid: string } }
      onImage(metadata.uid, spec.image)
      wake.resolve()
      wake = Promise.withResolvers()
    }
    if (!signal.aborted) throw new Error("the watch of the benchmark ended")
  }
  const broken = follow()
  broken.catch(() => {}) // each wait reports it
  return { next: () => Promise.race([wake.promise, broken]) }
}
