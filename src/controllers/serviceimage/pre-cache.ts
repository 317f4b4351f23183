import { createHash } from "node:crypto"
import type { ImagePullJobSpec } from "#api/v1alpha1/imagepulljob/index.ts"
import type { ServiceImage } from "#api/v1alpha1/serviceimage/index.ts"
import { assign, type Nodes } from "#core/pods/places.ts"
import { formatDuration } from "#lib/duration.ts"
import { type Instant, parseInstant } from "#lib/instant.ts"
import { remember } from "#lib/remember.ts"
import { isSame } from "#lib/same.ts"
import { counted } from "#lib/text.ts"
import { keyOf } from "#runtime/resource.ts"
import { type Halt, type JudgedTier, tierTitle } from "./judge.ts"
import type { Snapshot } from "./plan.ts"

/** The part of an ImagePullJob that pre-caching writes. */
export type JobSpec = Pick<ImagePullJobSpec, "image" | "pullSecrets" | "parallelism"> & {
  readonly selector: { readonly names: readonly string[] }
  readonly pullPolicy: Pick<ImagePullJobSpec["pullPolicy"], "backoffLimit">
  readonly completionPolicy: Pick<ImagePullJobSpec["completionPolicy"], "type">
}

/** An ImagePullJob that belongs to a ServiceImage. */
export type Job = {
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly resourceVersion: string
  readonly createdAt: Instant
  readonly spec: JobSpec
  /** What it says of this very spec; undefined before it has looked. */
  readonly said: JobSaid | undefined
}

export type JobSaid = {
  readonly isReady: boolean
  readonly reason: string
  readonly message: string
  readonly succeeded: number
  /** Some of the nodes that failed. */
  readonly failed: readonly { readonly name: string; readonly reason: string }[]
}

/** What is known for pre-caching. Undefined where a ServiceImage neither wants it nor has jobs left of it. */
export type PreCacheSight = {
  /** Why nothing can be concluded, and whether that stays so until a person acts. */
  readonly unknown: { readonly words: string; readonly isLasting: boolean } | undefined
  /** Where the pods of a tier run. */
  nodesOf(tier: string): Nodes
  /** Those of this ServiceImage, by key. */
  readonly jobs: ReadonlyMap<string, Job>
  /** Jobs that the server refused to create or change, by key. */
  readonly refused: ReadonlyMap<string, RefusedJob>
}

export type RefusedJob = { readonly said: string; readonly retryAt: Instant }

export type JobWrite =
  | { readonly do: "create"; readonly namespace: string; readonly name: string; readonly spec: JobSpec }
  | { readonly do: "change"; readonly job: Job; readonly spec: JobSpec }
  | { readonly do: "delete"; readonly job: Job }

/** A node tries again at growing intervals up to half a minute: with this limit for longer than most time-outs. */
const backoffLimit = 100
/** As many names as one job holds. */
const namesMost = 5000

type Operated = Pick<Snapshot, "serviceImage" | "operation" | "preCache">

/** The jobs that bring the image of a tier to its nodes, by key. */
function wantedJobs({ serviceImage, operation, preCache }: Operated, tier: JudgedTier) {
  const { jobs, nodesOf } = preCache!
  const prefix = prefixOf(serviceImage, operation.id, tier.name)
  const nameOf = (id: string, part: number) => `${prefix}-${hash([id, part])}`
  const namesOf = (id: string) =>
    jobs.get(keyOf({ namespace: namespaceIn(id), name: nameOf(id, 0) }))?.spec.selector.names
  const givenTo = remember(1000, (id: string) => new Set(namesOf(id)))
  const isGiven = (id: string, node: string) => givenTo(id).has(node)
  const wanted = new Map<string, Omit<Extract<JobWrite, { do: "create" }>, "do">>()
  for (const [id, { namespace, secrets, nodes }] of assign(nodesOf(tier.name), isGiven))
    for (let part = 0; part * namesMost < nodes.length; part++) {
      const name = nameOf(id, part)
      const names = nodes.slice(part * namesMost, (part + 1) * namesMost)
      wanted.set(keyOf({ namespace, name }), { namespace, name, spec: specFor(tier.image, names, secrets) })
    }
  return wanted
}

const specFor = (image: string, names: readonly string[], secrets: readonly string[]): JobSpec => ({
  image,
  selector: { names },
  pullSecrets: [...secrets],
  // The budget of the registry says how many nodes pull at once.
  parallelism: "100%",
  pullPolicy: { backoffLimit },
  // A job that ends has given up. This one goes on until the tier no longer needs it.
  completionPolicy: { type: "Never" },
})

/** Of all jobs of one tier in one operation. Another operation has other jobs: what was there before is no proof now. */
const prefixOf = ({ metadata: { name, uid = "" } }: ServiceImage, operation: string, tier: string) =>
  `${name.slice(0, 220).replace(/[^a-z0-9]+$/, "")}-${hash([uid, operation, tier])}`

const hash = (parts: readonly unknown[]) => createHash("sha256").update(JSON.stringify(parts)).digest("hex").slice(0, 8)
const namespaceIn = (id: string) => id.split(" ", 1)[0]!

type Progress = {
  readonly nodes: number
  readonly ready: number
  /** Every job says so. */
  readonly isDone: boolean
  /** What keeps the image from the others. */
  readonly causes: string
}

type Expected = { readonly namespace: string; readonly spec: JobSpec }

/** On how many nodes the image is, by what the jobs say. */
function progressOf({ jobs, refused }: PreCacheSight, expected: Iterable<readonly [string, Expected]>): Progress {
  let [nodes, ready, isDone] = [0, 0, true]
  const causes: { words: string; nodes: number }[] = []
  for (const [key, { namespace, spec }] of expected) {
    const { names } = spec.selector
    const job = jobs.get(key)
    const said = job && isSame(job.spec, spec) ? job.said : undefined
    const has = Math.min(said?.succeeded ?? 0, names.length)
    nodes += names.length
    ready += has
    if (has === names.length && said?.isReady) continue
    isDone = false
    const refusal = refused.get(key)
    if (refusal) causes.push({ words: `in ${namespace}: ${refusal.said}`, nodes: names.length - has })
    else if (said) causes.push(...causesOf(said, names))
  }
  const shown = causes.slice(0, 2)
  const left = nodes - ready - shown.reduce((sum, cause) => sum + cause.nodes, 0)
  const words = shown.map(cause => cause.words).join(", ")
  return { nodes, ready, isDone, causes: words && left > 0 ? `${words} and ${left} more` : words }
}

/** A job names only nodes that failed. Where none has the image yet, all that miss it are known by name. */
function causesOf({ reason, message, succeeded, failed }: JobSaid, names: readonly string[]) {
  if (ofSecrets.has(reason)) return [{ words: message, nodes: names.length - succeeded }]
  const named = failed.length > 0 || succeeded > 0 ? failed : names.slice(0, 1).map(name => ({ name, reason }))
  return named.map(each => ({ words: `${each.name} (${each.reason})`, nodes: 1 }))
}

const ofSecrets = new Set(["SecretMissing", "SecretInvalid", "Forbidden"])

type Seen = Operated & Pick<Snapshot, "now">

/** A tier that is next: it waits until its nodes have its image, halts, or starts. */
export function preCached(tier: JudgedTier, seen: Seen): JudgedTier {
  const { serviceImage, preCache, now } = seen
  const { paused, preCacheTimeoutSeconds, preCacheMissing } = serviceImage.spec
  if (!needsImages(tier, seen) || !preCache) return tier
  const mayProceed = preCacheMissing === "Proceed"
  if (tier.view.begun > 0) {
    const { isDone, ...progress } = progressOf(preCache, ownJobs(seen, tier))
    return mayProceed && !isDone ? { ...tier, lacks: lackOf(progress) } : tier
  }
  if (preCache.unknown && !preCache.unknown.isLasting)
    return { ...tier, preCaching: { words: preCache.unknown.words, isDue: false } }
  if (paused || tier.isAwaitingApproval || tier.halt)
    return { ...tier, preCaching: { words: "its nodes are asked for its image later", isDue: false } }
  const { isDone, ...progress } = preCache.unknown
    ? { ...nothingKnown, causes: preCache.unknown.words }
    : progressOf(preCache, wantedJobs(seen, tier))
  if (isDone) return tier
  const endsAt = startOf(seen, tier) + preCacheTimeoutSeconds * 1000
  const { nodes, ready, causes } = progress
  const words = `1 image on ${ready} of ${counted(nodes, "node")}${causes && `; ${causes}`}`
  if (now < endsAt) return { ...tier, preCaching: { words, isDue: true, endsAt } }
  if (mayProceed) return { ...tier, lacks: lackOf(progress) }
  const message = `${tierTitle(tier.name)}: ${tier.image} is not on ${lackOf(progress)}, after ${formatDuration(preCacheTimeoutSeconds * 1000)}`
  const halt: Halt = { reason: "PreCacheIncomplete", message }
  return { ...tier, preCaching: { words, isDue: true }, halt }
}

/** Its steps were passed before where it is only reopened. */
const needsImages = (tier: JudgedTier, { serviceImage: { spec } }: Operated) =>
  spec.preCache === "BeforeTier" && !tier.isComplete && !tier.isReopened && tier.view.counted.stale > 0

const nothingKnown: Progress = { nodes: 0, ready: 0, isDone: false, causes: "" }

const lackOf = ({ nodes, ready, causes }: Omit<Progress, "isDone">) =>
  nodes === 0 ? `any node: ${causes}` : `${nodes - ready} of ${counted(nodes, "node")}${causes && `: ${causes}`}`

/** The jobs of a tier that exist, by key. */
const ownJobs = ({ serviceImage, operation, preCache }: Operated, tier: JudgedTier) => {
  const prefix = `${prefixOf(serviceImage, operation.id, tier.name)}-`
  return [...preCache!.jobs].filter(([, { name }]) => name.startsWith(prefix))
}

/** The time runs from its first job. Where none can be made, it runs from the beginning of its priority. */
function startOf(seen: Seen, tier: JudgedTier): Instant {
  const created = ownJobs(seen, tier).map(([, { createdAt }]) => createdAt)
  if (created.length > 0) return Math.min(...created)
  const { unknown, refused } = seen.preCache!
  if (!unknown && refused.size === 0) return seen.now
  const { operation, currentPriority, priorityStartedAt } = seen.serviceImage.status ?? {}
  const isSamePriority = operation?.id === seen.operation.id && currentPriority === tier.priority
  return (isSamePriority ? parseInstant(priorityStartedAt) : undefined) ?? seen.now
}

/** The writes that bring the jobs to what the tiers need: some to create and change, and those of no tier to delete. */
export function jobWrites(seen: Operated, tiers: readonly JudgedTier[]): JobWrite[] {
  const { serviceImage, preCache } = seen
  if (!preCache || preCache.unknown) return []
  const needed = serviceImage.spec.preCache === "Never" ? [] : tiers.filter(tier => !tier.isComplete)
  const waiting = needed.filter(tier => tier.preCaching?.isDue)
  const wanted = new Map(waiting.flatMap(tier => [...wantedJobs(seen, tier)]))
  // The jobs of a tier that has started, or cannot start now, stay as they are.
  const kept = needed.filter(tier => !waiting.includes(tier)).flatMap(tier => ownJobs(seen, tier).map(([key]) => key))
  const writes = [...wanted].flatMap(([key, job]): JobWrite[] => {
    const known = preCache.jobs.get(key)
    if (!known) return [{ do: "create", ...job }]
    return isSame(known.spec, job.spec) ? [] : [{ do: "change", job: known, spec: job.spec }]
  })
  const left = new Set([...wanted.keys(), ...kept])
  const gone = [...preCache.jobs].filter(([key]) => !left.has(key))
  return [...writes, ...gone.map(([, job]): JobWrite => ({ do: "delete", job }))]
}
