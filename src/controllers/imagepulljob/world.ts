import type { ImagePullJob } from "#api/v1alpha1/imagepulljob/index.ts"
import { podFieldSelector } from "#core/pods/pod-facts.ts"
import { type NodeFacts, type NodeImageFacts, readNode, readNodeImage } from "#core/pulls/node-facts.ts"
import { type PodPlace, readPodPlace } from "#core/pulls/pod-places.ts"
import { isSame } from "#lib/same.ts"
import type { WatchedCache } from "#runtime/cache/cache.ts"
import type { Wiring } from "#runtime/controller.ts"
import type { Held } from "#runtime/kind-controller.ts"
import { watchGrants } from "../grants.ts"
import { openBoard, type Pulls } from "../pulls.ts"
import { JobCredentials } from "./credentials.ts"
import { createImagePullJobMetrics, type ImagePullJobMetrics } from "./metrics.ts"
import { pullJobOf } from "./observe.ts"
import { nodeImages, nodes, pods } from "./resources.ts"

/** No namespace has this name. */
const everywhere = ""

/** Jobs with pull secrets by their namespace, and all of them. */
export const jobIndexes = {
  pullSecrets: ({ object: { metadata, spec } }: Held<ImagePullJob>) =>
    spec.pullSecrets.length > 0 ? [metadata.namespace ?? "", everywhere] : [],
}

/** What all ImagePullJobs of a process share. */
export type World = Pick<Wiring, "client" | "clock"> & {
  pulls: Pulls
  credentials: JobCredentials
  metrics: ImagePullJobMetrics
  job(key: string): ImagePullJob | undefined
  /** Resolves when the caches show everything that the last leader wrote. */
  current(): Promise<unknown>
}

export function openWorld(
  wiring: Wiring,
  objects: WatchedCache<Held<ImagePullJob>>,
  { pulls, pullsPerRegistry }: { pulls: Pulls; pullsPerRegistry: number },
): World {
  const { client, clock } = wiring
  const board = openBoard(pulls, wiring, pullsPerRegistry)
  const credentials = new JobCredentials(client)
  const caches = {
    nodes: wiring.watch<NodeFacts>(nodes, { project: readNode }),
    nodeImages: wiring.watch<NodeImageFacts>(nodeImages, { project: readNodeImage }),
    pods: wiring.watch<PodPlace>(pods, { project: readPodPlace, fieldSelector: podFieldSelector }),
  }
  const all = [objects, ...Object.values(caches)]
  pulls.isListed = () => all.every(cache => cache.isCurrent)
  pulls.detailsOf = key => {
    const job = objects.get(key)?.object
    return job && { spec: job.spec, name: job.metadata.name, credentials: credentials.get(key) }
  }
  caches.nodes.subscribe(({ key, before, after }) => {
    if (!before || !after || !isSameNode(before, after)) board.setNode(key, after, clock.now())
  })
  caches.nodeImages.subscribe(({ key, after }) => board.setNodeImage(key, after, clock.now()))
  caches.pods.subscribe(({ key, before, after }) => board.setPod(key, before, after, clock.now()))
  objects.subscribe(({ key, after }) => {
    const job = after && pullJobOf(after.object)
    if (job) board.setJob(job, clock.now())
    else board.dropJob(key, clock.now())
  })
  watchGrants(wiring, namespace => {
    for (const key of objects.keysBy("pullSecrets", namespace ?? everywhere)) {
      credentials.forgetBad(key)
      wiring.enqueue(key)
    }
  })
  return {
    client,
    clock,
    pulls,
    credentials,
    metrics: createImagePullJobMetrics(wiring.metrics),
    job: key => objects.get(key)?.object,
    current: () => Promise.all(all.map(cache => cache.current())),
  }
}

/** A node writes its status every few minutes; most of it concerns no job. */
const isSameNode = (a: NodeFacts, b: NodeFacts) =>
  a.uid === b.uid && a.isReady === b.isReady && a.isWindows === b.isWindows && isSame(a.labels, b.labels)
