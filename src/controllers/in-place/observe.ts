import type { Room } from "#core/in-place/cover.ts"
import { inPlaceAnnotation } from "#core/in-place/names.ts"
import { operationOf } from "#core/in-place/operation.ts"
import type { EndingPod, PodFacts } from "#core/in-place/pod.ts"
import { labelsOf } from "#core/in-place/template.ts"
import { drainedSinceOf, type UpSince, upSinceOf } from "#core/in-place/up-since.ts"
import type { Instant } from "#lib/instant.ts"
import { compareVersions } from "#lib/resource-version.ts"
import type { Look } from "#runtime/kind-controller.ts"
import type { Job } from "./facts.ts"
import { asked, type ImageOnNode, type Plan, type Refusal, type Snapshot } from "./plan.ts"
import type { HeldWorkload, Neighbourhood, World } from "./world.ts"

/**
 * Losing it prolongs minReadySeconds and the grace period, asks an agent once more, and judges the pods of a Deployment
 * by what they are then.
 */
export type Memory = {
  upSince: UpSince
  drainedSince: ReadonlyMap<string, Instant>
  /** By the uid of a pod: the mark of the change that was proven. */
  proven: ReadonlyMap<string, string>
  /** By the uid of a pod: the operation for which its node's agent was asked to restart containers. */
  readonly asked: Map<string, string>
  /** Pods by key, with the version that our last write gave them. */
  readonly written: Map<string, string>
  /** Pods by uid, with the version that a write in doubt would change. */
  readonly doubts: Map<string, { readonly key: string; readonly version: string }>
  /** Why the last writes to pods were refused; null: they were not; undefined: this process has tried none. */
  refusal: (Refusal & { readonly what: string }) | null | undefined
  /** What the last writes were for. */
  target: string | undefined
  /** Since when the update has waited without a step of its own. */
  waitsSince: Instant | undefined
}

export const newMemory = (): Memory => ({
  upSince: new Map(),
  drainedSince: new Map(),
  proven: new Map(),
  asked: new Map(),
  written: new Map(),
  doubts: new Map(),
  refusal: undefined,
  target: undefined,
  waitsSince: undefined,
})

/** Everything the plan is made from, at this moment. */
export function observe(
  world: Pick<World, "adapter" | "around" | "imageOn" | "nodeOf" | "budgets">,
  look: Look<HeldWorkload, Memory>,
): Snapshot {
  const { key, object, memory, now } = look
  const { adapter } = world
  const workload = adapter.read(object)
  const { near, isCurrent } = world.around(key)
  const revisions = factsBy(near.revisions, workload.uid)
  const owners = adapter.podOwners(workload, revisions)
  settleDoubts(near, memory)
  const pods = owners.flatMap(uid => factsBy(near.pods, uid)).map(pod => withDoubt(pod, memory))
  const ending = owners.flatMap(uid => endingBy(near.pods, uid))
  const jobs = factsBy(near.jobs, workload.uid)
  memory.upSince = upSinceOf(pods, memory.upSince, now)
  if (memory.asked.size > 0) forgetGone(memory.asked, pods)
  memory.drainedSince = drainedSinceOf(pods, memory.drainedSince, now)
  return {
    workload,
    isListed: isCurrent && showsOwnWrites(near, memory),
    native: adapter.native(workload, revisions, pods, ending),
    pods,
    jobs,
    disruptions: tightest(
      world.budgets.roomFor(workload.namespace, labelsOf(workload.template) as Record<string, string>),
    ),
    refusal: memory.refusal,
    waitsSince: memory.waitsSince,
    imageOn: perNode((node, image) => {
      const job = jobs.find(each => each.image === image)
      const found = world.imageOn(node, image, job?.uid)
      return found.is === "Missing" && found.why === asked ? jobSays(job, node) : found
    }),
    upSince: uid => memory.upSince.get(uid)?.since,
    isAsked: (uid, operation) => memory.asked.get(uid) === operation,
    drainedSince: uid => memory.drainedSince.get(uid),
    isProven: pod => memory.proven.has(pod.uid) && memory.proven.get(pod.uid) === markIn(pod),
    nodeOf: world.nodeOf,
    now,
  }
}

const markIn = ({ annotations }: PodFacts) => annotations[inPlaceAnnotation]

/** What a plan has found proven is not judged again: a mark is another one with every change of the pod. */
export function rememberProven(memory: Memory, { workload }: Snapshot, { judged }: Plan): void {
  if (!judged) return
  const operation = operationOf(workload)
  memory.proven = new Map(
    judged.flatMap(({ pod, standing }) => {
      const isProven = standing.is === "Updated" && pod.mark?.operation === operation && pod.node !== ""
      return isProven ? [[pod.uid, markIn(pod) ?? ""] as const] : []
    }),
  )
}

function forgetGone(asked: Memory["asked"], pods: readonly PodFacts[]): void {
  const there = new Set(pods.map(({ uid }) => uid))
  for (const uid of asked.keys()) if (!there.has(uid)) asked.delete(uid)
}

/** A pod that was disturbed and does not show it yet would be counted as one that serves. Its event wakes us. */
function showsOwnWrites({ pods }: Pick<Neighbourhood, "pods">, { written }: Memory): boolean {
  for (const [key, version] of written) {
    const shown = pods.get(key)?.resourceVersion
    if (shown !== undefined && compareVersions(shown, version) < 0) return false
    written.delete(key)
  }
  return true
}

/** Another version, or none, ends the doubt: a write on condition of the one before can no longer be applied. */
function settleDoubts({ pods }: Pick<Neighbourhood, "pods">, { doubts }: Memory): void {
  for (const [uid, { key, version }] of doubts) {
    const shown = pods.get(key)
    if (shown?.facts?.uid !== uid || shown.resourceVersion !== version) doubts.delete(uid)
  }
}

const withDoubt = (pod: PodFacts, { doubts }: Memory): PodFacts =>
  doubts.has(pod.uid) ? { ...pod, isInDoubt: true } : pod

const endingBy = ({ keysBy, get }: Neighbourhood["pods"], owner: string): EndingPod[] =>
  [...keysBy("owner", owner)].sort().flatMap(key => get(key)?.ending ?? [])

/** A node that does not answer says nothing itself: its job does, after a while. */
function jobSays(job: Job | undefined, node: string): ImageOnNode {
  const why = job?.failed.get(node)
  return why === "AgentMissing" ? { is: "NoAgent" } : { is: "Missing", why: why ?? asked }
}

/** Pods are many, and their nodes and images few. */
function perNode(imageOn: Snapshot["imageOn"]): Snapshot["imageOn"] {
  const known = new Map<string, ReturnType<Snapshot["imageOn"]>>()
  return (node, image) => {
    const place = `${node} ${image}`
    const found = known.get(place) ?? imageOn(node, image)
    known.set(place, found)
    return found
  }
}

function factsBy<T>(
  cache: {
    keysBy(name: string, value: string): ReadonlySet<string>
    get(key: string): { facts?: T | undefined } | undefined
  },
  owner: string,
): T[] {
  return [...cache.keysBy("owner", owner)].sort().flatMap(key => cache.get(key)?.facts ?? [])
}

/** Of the budgets that cover the pods, the one that allows least. */
const tightest = (rooms: readonly Room[]): Room | undefined =>
  rooms.reduce<Room | undefined>((least, room) => (least && least.allowed <= room.allowed ? least : room), undefined)
