import { namesOf } from "#api/names.ts"
import type { ImagePullJob } from "#api/v1alpha1/imagepulljob/index.ts"
import type { ServiceImage } from "#api/v1alpha1/serviceimage/index.ts"
import { forEachLimited } from "#lib/batch.ts"
import { earliest, type Instant, parseInstant } from "#lib/instant.ts"
import type { Projected, WatchedCache } from "#runtime/cache/cache.ts"
import type { Client } from "#runtime/client/client.ts"
import { outcomeOf } from "#runtime/client/outcome.ts"
import { conditionOf } from "#runtime/conditions.ts"
import type { Permission, Wiring } from "#runtime/controller.ts"
import { apiVersionOf, controlledBy, type KubeObject, keyOf, resourceOf } from "#runtime/resource.ts"
import { whyUnlisted } from "../unlisted.ts"
import type { Job, JobWrite, PreCacheSight, RefusedJob } from "./pre-cache.ts"

export const imagePullJobs = resourceOf(namesOf("ImagePullJob"))
const serviceImages = resourceOf(namesOf("ServiceImage"))

export const jobPermissions: readonly Permission[] = [
  { resource: imagePullJobs, verbs: ["list", "watch", "create", "patch", "delete"] },
]

/** Jobs of ServiceImages; of others only that they exist. */
type Kept = Projected & { readonly owner?: { readonly uid: string; readonly name: string }; readonly job?: Job }

type Wanted = Pick<Wiring, "watch" | "enqueue" | "enqueueAfter">

const gatherMs = 500

/** Whether a ServiceImage has jobs, or is going to. */
export const hasPreCache = ({ spec, status }: Pick<ServiceImage, "spec" | "status">) =>
  spec.preCache === "BeforeTier" || (status?.pullJobs ?? 0) > 0

/**
 * The ImagePullJobs of ServiceImages. Nothing is watched before one asks for pre-caching: an installation without it
 * pays nothing. Where the kind is not installed, the tiers that need it say so.
 */
export class PreCacheJobs {
  readonly #wiring: Wanted
  readonly #users = new Set<string>()
  #cache: WatchedCache<Kept> | undefined

  constructor(wiring: Wanted) {
    this.#wiring = wiring
  }

  /** Undefined for a ServiceImage without pre-caching. */
  of(serviceImage: ServiceImage): Pick<PreCacheSight, "unknown" | "jobs"> | undefined {
    const { name, uid = "" } = serviceImage.metadata
    if (!hasPreCache(serviceImage)) {
      this.forget(name)
      return undefined
    }
    this.#users.add(name)
    const cache = this.#cache ?? this.#open()
    const unknown = cache.isCurrent ? undefined : whyUnknown(cache)
    const jobs = [...cache.keysBy("owner", uid)].flatMap(key => {
      const job = cache.get(key)?.job
      return job ? [[key, job] as const] : []
    })
    return { unknown, jobs: new Map(jobs) }
  }

  forget(name: string): void {
    if (!this.#users.delete(name) || this.#users.size > 0) return
    this.#cache?.close()
    this.#cache = undefined
  }

  #open(): WatchedCache<Kept> {
    const { watch, enqueue, enqueueAfter } = this.#wiring
    const indexes = { owner: ({ owner }: Kept) => (owner ? [owner.uid] : []) }
    const cache = watch<Kept>(imagePullJobs, { project: readJob, indexes })
    this.#cache = cache
    cache.subscribe(({ before, after, initial }) => {
      const owner = (after ?? before)?.owner
      // Many jobs report at the same time, and one look serves all.
      if (owner && initial) enqueue(owner.name, { background: true })
      else if (owner) enqueueAfter(owner.name, gatherMs)
    })
    cache.current().then(
      () => {
        for (const name of this.#users) enqueue(name)
      },
      () => {},
    )
    return cache
  }
}

function whyUnknown(cache: Pick<WatchedCache<Kept>, "failure">): PreCacheSight["unknown"] {
  const words = whyUnlisted(imagePullJobs, cache)
  return { words: words ?? "pull jobs are being read", isLasting: words !== undefined }
}

function readJob(object: KubeObject): Kept {
  const { metadata } = object
  const { spec, status } = object as unknown as ImagePullJob
  const { resourceVersion = "", namespace = "", name, uid = "", generation } = metadata
  const owner = metadata.ownerReferences?.find(each => each.controller && each.kind === serviceImages.kind)
  if (!owner) return { resourceVersion }
  // Its end wakes the ServiceImage, which may need another.
  if (metadata.deletionTimestamp) return { resourceVersion, owner: { uid: owner.uid, name: owner.name } }
  const ready = status?.observedGeneration === generation ? conditionOf(status?.conditions, "Ready") : undefined
  const { image, pullSecrets, parallelism, selector, pullPolicy, completionPolicy } = spec
  return {
    resourceVersion,
    owner: { uid: owner.uid, name: owner.name },
    job: {
      namespace,
      name,
      uid,
      resourceVersion,
      createdAt: parseInstant(metadata.creationTimestamp) ?? 0,
      spec: {
        image,
        selector: { names: selector?.names ?? [] },
        pullSecrets,
        parallelism,
        pullPolicy: { backoffLimit: pullPolicy.backoffLimit },
        completionPolicy: { type: completionPolicy.type },
      },
      said: ready && {
        isReady: ready.status === "True",
        reason: ready.reason,
        message: ready.message,
        succeeded: status!.succeeded,
        failed: status!.failedNodes.map(({ name, reason }) => ({ name, reason })),
      },
    },
  }
}

const writesAtOnce = 8
const soonMs = 1000
/** What was refused may be allowed later: a quota that is raised, a webhook that is down. */
const refusedMs = 15_000

/** Creates, changes and deletes jobs, and notes what was refused. Returns when to look again. */
export async function applyJobs(
  client: Client,
  { metadata }: ServiceImage,
  writes: readonly JobWrite[],
  { refused, now }: { refused: Map<string, RefusedJob>; now: Instant },
): Promise<Instant | undefined> {
  const open = new Map(writes.map(write => [keyOf(write.do === "create" ? write : write.job), write]))
  for (const key of refused.keys()) if (!open.has(key)) refused.delete(key)
  const isDue = ([key]: [string, JobWrite]) => (refused.get(key)?.retryAt ?? 0) <= now
  let unknownAt: Instant | undefined
  await forEachLimited([...open].filter(isDue), writesAtOnce, async ([key, write]) => {
    const outcome = await outcomeOf<unknown>(send(client, metadata, write))
    if (outcome.is === "Refused") refused.set(key, { said: outcome.error.said, retryAt: now + refusedMs })
    else refused.delete(key)
    if (outcome.is === "Unknown") unknownAt = now + soonMs
  })
  return earliest(unknownAt, ...[...refused.values()].map(({ retryAt }) => retryAt))
}

function send(client: Client, owner: ServiceImage["metadata"], write: JobWrite): Promise<unknown> {
  if (write.do === "delete")
    return client.delete(imagePullJobs, write.job, { uid: write.job.uid, propagationPolicy: "Background" })
  if (write.do === "change") {
    const { job, spec } = write
    const body = { metadata: { resourceVersion: job.resourceVersion }, spec: { ...spec, podSelector: null } }
    return client.patch(imagePullJobs, job, { type: "merge", body })
  }
  return client.create(imagePullJobs, {
    apiVersion: apiVersionOf(imagePullJobs),
    kind: imagePullJobs.kind,
    metadata: {
      name: write.name,
      namespace: write.namespace,
      // It goes with its ServiceImage.
      ownerReferences: [controlledBy(serviceImages, owner)],
    },
    spec: write.spec,
  } as never)
}
