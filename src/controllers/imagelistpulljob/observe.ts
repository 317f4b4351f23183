import type { ImageListPullJob } from "#api/v1alpha1/imagelistpulljob/index.ts"
import type { ImagePullJob } from "#api/v1alpha1/imagepulljob/index.ts"
import type { WatchedCache } from "#runtime/cache/cache.ts"
import { conditionOf } from "#runtime/conditions.ts"
import type { Held, Look } from "#runtime/kind-controller.ts"
import { type KubeObject, keyOf } from "#runtime/resource.ts"
import { type Child, childName, type Snapshot } from "./plan.ts"

export type Jobs = WatchedCache<Held<ImagePullJob>>

/** Everything the plan is made from: the jobs that belong to the list, and those under the names it needs. */
export function observe({ jobs }: { jobs: Jobs }, { object, now }: Look<ImageListPullJob, unknown>): Snapshot {
  const { namespace, name, uid = "" } = object.metadata
  const needed = object.spec.images.map(image => keyOf({ namespace, name: childName(name, image) }))
  const children = new Map<string, Child>()
  for (const key of new Set([...jobs.keysBy("owner", uid), ...needed])) {
    const job = jobs.get(key)?.object
    if (job) children.set(job.metadata.name, childOf(job))
  }
  return { list: object, children, now }
}

/** The uid of the list that a job belongs to. */
export const ownerOf = ({ metadata }: Pick<KubeObject, "metadata">) =>
  metadata.ownerReferences?.find(({ controller, kind }) => controller && kind === "ImageListPullJob")?.uid ?? ""

function childOf(job: ImagePullJob): Child {
  const { name, uid = "", resourceVersion = "", generation } = job.metadata
  const isSeen = job.status?.observedGeneration === generation
  const ready = isSeen ? conditionOf(job.status?.conditions, "Ready") : undefined
  return {
    name,
    uid,
    resourceVersion,
    owner: ownerOf(job),
    spec: job.spec,
    ready: ready && { isTrue: ready.status === "True", reason: ready.reason, message: ready.message },
    isOver: isSeen && job.status?.completionTime !== undefined,
    isStalled: isSeen && conditionOf(job.status?.conditions, "Stalled")?.status === "True",
  }
}
