import { repairedUntil } from "#core/pods/one-at-a-time.ts"
import { earliest, type Instant } from "#lib/instant.ts"
import { isDisturbed } from "./cover.ts"
import type { ContainerBefore, PodMark } from "./marks.ts"
import type { PodFacts } from "./pod.ts"
import { podsOf, type Settings } from "./settings.ts"
import {
  type Evidence,
  isLost,
  isUp,
  type Standing,
  standingOf,
  startedFrom,
  staysDrained,
  type Target,
  unrestarted,
} from "./standing.ts"

/** One write to one pod. */
export type PodWrite =
  | { readonly do: "drain" | "undrain"; readonly pod: PodFacts; readonly asksBudget?: true }
  /** Its workload's own controller counts it as one of this revision from then on. */
  | { readonly do: "label"; readonly pod: PodFacts; readonly revision: string; readonly asksBudget?: never }
  | PodPatch
  | PodRestart

/** Asks the node's agent to restart containers: they read a changed label or annotation into their environment. */
export type PodRestart = {
  readonly do: "restart"
  readonly pod: PodFacts
  readonly containers: readonly string[]
  readonly operation: string
  readonly asksBudget?: never
}

/** New images, by container, with the labels and annotations of the template and the record of it. */
export type PodPatch = {
  readonly do: "patch"
  readonly pod: PodFacts
  readonly images: Readonly<Record<string, string>>
  readonly mark: PodMark
  /** A budget may protect it: the last question before it is touched. */
  readonly asksBudget?: true
}

export type PodsSeen = {
  readonly pods: readonly PodFacts[]
  readonly target: Target
  readonly settings: Settings
  readonly replicas: number
  readonly maxUnavailable: number
  /** The budget that covers these pods: how many more it lets go, beside those that are disturbed already. */
  readonly disruptions: { readonly budget: string; readonly allowed: number } | undefined
  /** Why an image is not proven to be on a node; undefined where it is. */
  missingOn(node: string, image: string): string | undefined
  /** Why nothing on a node restarts containers; undefined where an agent does. */
  noAgentOn(node: string): string | undefined
  /** The agent has been asked to restart containers of this pod. */
  isAsked(uid: string, operation: string): boolean
  readonly evidence: Evidence
  /** A pod has failed in this operation. No other is touched before each that was changed is proven. */
  readonly hasFailed?: boolean
  /** The server refuses to change pods, and is not asked now: what is drained serves meanwhile. */
  readonly isResting?: boolean
  /** Pods have ordinals and go from the highest. Strictly: one that lacks its image holds up those below. */
  readonly ordinals?: { readonly isStrict: boolean } | undefined
}

export type PodsNext = {
  readonly writes: readonly PodWrite[]
  /** How each pod stands. */
  readonly judged: readonly Judged[]
  readonly updated: number
  readonly failures: readonly { readonly pod: string; readonly reason: string; readonly message: string }[]
  /** A pod has failed, now or before, and is not proven since. */
  readonly isStopped: boolean
  /** Nodes that lack an image, and why. */
  readonly missing: ReadonlyMap<string, string>
  /** Nodes that are not ready, where a pod waits for its node or for one that is down there. */
  readonly lost: ReadonlySet<string>
  /** Pods that only the budget keeps waiting. */
  readonly waiting: number
  /** Pods that the partition keeps. */
  readonly kept: number
  readonly underWay: number
  /** Of them, those that these writes begin with. */
  readonly begun: number
  /** Every pod has what the template says. */
  readonly isDone: boolean
  readonly lookAgainAt?: Instant | undefined
}

export type Judged = { readonly pod: PodFacts; readonly standing: Standing }

/** What to write next. The same facts always give the same writes, in the same order. */
export function nextWrites(seen: PodsSeen): PodsNext {
  const { pods, target, settings, evidence } = seen
  const judged = pods.map((pod): Judged => ({ pod, standing: standingOf(pod, target, evidence) }))
  const of = (is: Standing["is"]) => judged.filter(({ standing }) => standing.is === is)
  const failed = of("Failed")
  const failures = [...failed, ...of("Reverted")].map(({ pod, standing }) => ({
    pod: pod.name,
    reason: "reason" in standing ? standing.reason : "",
    message: "message" in standing ? standing.message : "it went back to the image before",
  }))
  // A pod that counts as one of the new revision keeps its image: its label would be a lie.
  const revertible = settings.onFailure === "Stop" ? [] : failed.filter(({ pod }) => !pod.mark?.proven)
  const reverts = revertible.map(({ pod }) => revertOf(pod, failureIn(failures, pod), evidence.now))
  // What has failed does not look so at every moment: in a crash loop it runs between two waits.
  const isStopped = failures.length > 0 || (seen.hasFailed === true && of("Restarting").length > 0)
  const isResting = isStopped || seen.isResting === true
  const undrained = judged
    .filter(each => isToServe(each, isResting, evidence.now))
    .map(({ pod }): PodWrite => ({ do: "undrain", pod }))
  const picked = isResting ? nothingPicked : pick(seen, of("Stale"), of("Restarting"))
  const served = new Set(picked.writes.filter(write => write.do === "undrain").map(({ pod }) => pod))
  const begun = picked.writes.filter(({ do: what, pod }) => what !== "undrain" && !pod.gate?.isDrained)
  const stale = of("Stale").length
  const soonest = judged.flatMap(({ pod, standing }) => {
    if (standing.is !== "Restarting") return []
    const isEarly = unrestarted(pod).length > 0 && evidence.now < restartsAt(pod)
    return [...(isEarly ? [restartsAt(pod)] : []), ...(standing.until ? [standing.until] : [])]
  })
  const drainedUntil = pods.flatMap(pod => (pod.gate?.isDrained ? (staysDrained(pod, evidence.now) ?? []) : []))
  return {
    writes: [
      ...reverts,
      ...undrained,
      ...of("Restarting").flatMap(({ pod }) => restartOf(pod, seen)),
      ...picked.writes,
    ],
    judged,
    updated: of("Updated").length,
    failures,
    isStopped,
    missing: picked.missing,
    lost: lostNodes(judged, picked.waiting, evidence),
    waiting: picked.waiting,
    kept: Math.min(stale, podsOf(settings.partition, seen.replicas)),
    underWay: judged.filter(each => isUnderWay(each, target) && !served.has(each.pod)).length + begun.length,
    begun: begun.length,
    isDone: of("Updated").length === pods.length && pods.every(({ gate }) => !gate?.isDrained),
    lookAgainAt: earliest(picked.lookAgainAt, ...soonest, ...drainedUntil),
  }
}

/** Disturbed by this operation and not back yet. A reason that came and went with each batch would be a write for each. */
const isUnderWay = ({ pod, standing }: Judged, { operation }: Target) =>
  (standing.is === "Restarting" && !standing.isLost) ||
  (standing.is === "Stale" && pod.gate?.isDrained) ||
  // Its gate has just opened. One without a gate was ready when it was proven: what it is since is another matter.
  (standing.is === "Updated" && pod.gate && !pod.isReady && pod.mark?.operation === operation)

/** A pod that is proven needs its node no more; one that is down there may keep others waiting all the same. */
function lostNodes(judged: readonly Judged[], waiting: number, evidence: Evidence): ReadonlySet<string> {
  const isWaited = ({ pod, standing }: Judged) => standing.is !== "Updated" || (waiting > 0 && !pod.isReady)
  return new Set(judged.flatMap(each => (isLost(each.pod, evidence) && isWaited(each) ? [each.pod.node] : [])))
}

const failureIn = (failures: PodsNext["failures"], { name }: PodFacts) =>
  failures.find(({ pod }) => pod === name)?.reason ?? ""

/** The gate of a pod that was drained is True again once it is done, or once no pod is touched any more. */
function isToServe({ pod, standing }: Judged, isResting: boolean, now: Instant): boolean {
  if (!pod.gate?.isDrained) return false
  if (standing.is === "Updated") return true
  return (standing.is === "Reverted" || (standing.is === "Stale" && isResting)) && canServe(pod, now)
}

const canServe = (pod: PodFacts, now: Instant) => isUp(pod) && staysDrained(pod, now) === undefined

type Picked = Pick<PodsNext, "missing" | "waiting" | "lookAgainAt"> & { readonly writes: readonly PodWrite[] }
const nothingPicked: Picked = { writes: [], missing: new Map(), waiting: 0 }

/**
 * The pods that may be disturbed now. A pod that serves nothing is free; the others share what the smallest budget
 * leaves, and a pod that is being restarted counts as unavailable whatever it reports.
 */
function pick(seen: PodsSeen, stale: readonly Judged[], restarting: readonly Judged[]): Picked {
  const { pods, replicas, settings, maxUnavailable, disruptions, missingOn, noAgentOn, evidence, ordinals } = seen
  const disturbed = stale.filter(({ pod }) => isDisturbed(pod, evidence.now))
  const underWay = new Set([...restarting, ...disturbed].map(({ pod }) => pod))
  const down = pods.filter(pod => !pod.isReady || underWay.has(pod)).length
  let room = Math.max(0, maxUnavailable - down - Math.max(0, replicas - pods.length))
  if (disruptions) room = Math.min(room, disruptions.allowed)
  let left = stale.length - podsOf(settings.partition, replicas)
  const writes: PodWrite[] = []
  const missing = new Map<string, string>()
  let waiting = 0
  let lookAgainAt: Instant | undefined
  for (const { pod, standing } of [...stale].sort(before(settings.order, ordinals !== undefined))) {
    if (left <= 0 && !pod.gate?.isDrained) break
    if (isLost(pod, evidence)) continue
    const repaired = repairedUntil(pod.failover, pod.containers, evidence.now)
    if (repaired !== undefined) {
      lookAgainAt = earliest(lookAgainAt, repaired)
      continue
    }
    const patch = patchOf(pod, standing, seen)
    const isRestarted = patch.mark.restarts !== undefined
    const lacking = Object.values(patch.images).flatMap(image => missingOn(pod.node, image) ?? [])
    const without = isRestarted ? noAgentOn(pod.node) : undefined
    if (without !== undefined) lacking.push(without)
    if (lacking.length > 0 && pod.node !== "") {
      missing.set(pod.node, lacking[0]!)
      // The image has changed since it was drained.
      if (pod.gate?.isDrained && canServe(pod, evidence.now)) writes.push({ do: "undrain", pod })
      if (ordinals?.isStrict && pod.isReady) break
      continue
    }
    left--
    if (pod.gate?.isDrained) {
      // Until the kubelet reports the pod as not Ready, it gets traffic, and a patch meets the conflict of that report.
      const wait = Math.max(settings.graceSeconds, pod.isReady ? reportSeconds : 0)
      const at = (evidence.drainedSince(pod.uid) ?? evidence.now) + wait * 1000
      if (evidence.now >= at) writes.push(patch)
      else lookAgainAt = earliest(lookAgainAt, at)
    } else if (pod.isInDoubt && pod.isReady) writes.push(pod.gate ? { do: "drain", pod } : patch)
    else if ((Object.keys(patch.images).length === 0 && !isRestarted) || !pod.isReady || underWay.has(pod))
      writes.push(patch)
    else if (room > 0) {
      room--
      writes.push(pod.gate ? { do: "drain", pod, asksBudget: true } : { ...patch, asksBudget: true })
    } else waiting++
  }
  return { writes, missing, waiting, lookAgainAt }
}

/** A kubelet reports within a moment. One that does not may be gone, and the deadline of the pod begins with its patch. */
const reportSeconds = 10

/** Drained ones and those in doubt first, then those that serve nothing, then by the label of the settings, then by name or ordinal. */
const before =
  (label: string | undefined, isDescending: boolean) =>
  ({ pod: a }: Judged, { pod: b }: Judged): number =>
    rank(a) - rank(b) ||
    (label === undefined ? 0 : compare(a.labels[label], b.labels[label])) ||
    (isDescending ? compare(b.name, a.name) : compare(a.name, b.name))

const rank = ({ gate, isReady, isInDoubt }: PodFacts) => (gate?.isDrained || isInDoubt ? 0 : isReady ? 2 : 1)
const { compare: inOrderOf } = new Intl.Collator("en", { numeric: true })
const compare = (a = "", b = "") => inOrderOf(a, b)

function patchOf(pod: PodFacts, standing: Standing, { target, settings, evidence }: PodsSeen): PodPatch {
  const containers = inOrder(standing.is === "Stale" ? standing.containers : [], settings.containerOrder)
  const images = Object.fromEntries(containers.map(name => [name, target.images.get(name)!]))
  const restarts = standing.is === "Stale" ? standing.restarts : []
  return { do: "patch", pod, images, mark: markOf(pod, target.operation, { images, restarts }, evidence.now) }
}

/**
 * Not before the kubelet has seen the change, since a container reads what the kubelet knows when it starts. A kubelet
 * reports nothing of labels and annotations; it learns of them within milliseconds, and within this time on a busy node.
 */
const kubeletMs = 3000
const restartsAt = ({ mark }: PodFacts): Instant => (mark?.at ?? 0) + kubeletMs

function restartOf(pod: PodFacts, { target: { operation }, isAsked, evidence }: PodsSeen): PodRestart[] {
  const containers = unrestarted(pod)
  if (containers.length === 0 || isAsked(pod.uid, operation) || evidence.now < restartsAt(pod)) return []
  return [{ do: "restart", pod, containers, operation }]
}

/** Containers that have a place in the order go one at a time; the others together, before them. */
function inOrder(containers: readonly string[], order: readonly string[]): readonly string[] {
  const free = containers.filter(name => !order.includes(name))
  if (free.length > 0) return free
  return order.filter(name => containers.includes(name)).slice(0, 1)
}

/** Images of the same operation that were changed before stay in the record: a revert takes all of them back. */
function markOf(
  pod: PodFacts,
  operation: string,
  { images, restarts }: { images: Readonly<Record<string, string>>; restarts: readonly string[] },
  at: Instant,
): PodMark {
  const earlier = pod.mark?.operation === operation ? pod.mark : undefined
  const names = Object.keys(images)
  const each = <T>(keys: readonly string[], value: (name: string) => T) =>
    Object.fromEntries(keys.map(name => [name, value(name)]))
  // What was asked for before and has an image of its own now is restarted by the kubelet.
  const asked = [...(earlier?.restarts ?? []), ...restarts].filter(name => !names.includes(name))
  return {
    operation,
    from: { ...each(names, name => pod.containers.get(name)!.image), ...earlier?.from },
    to: { ...earlier?.to, ...images },
    was: { ...earlier?.was, ...each([...names, ...restarts], name => wasOf(pod, name)) },
    ...(asked.length > 0 && { restarts: asked }),
    at,
  }
}

function wasOf(pod: PodFacts, name: string): ContainerBefore {
  const { id = "", restarts = 0, waiting = "" } = pod.containers.get(name) ?? {}
  const image = startedFrom(pod, name)
  return { id, restarts, ...(waiting !== "" && { waiting }), ...(image !== undefined && { image }) }
}

/** Back to the images before. Free of every budget: the pod serves nothing as it is. */
function revertOf(pod: PodFacts, reason: string, at: Instant): PodPatch {
  const { operation, from, to } = pod.mark!
  const images = Object.fromEntries(Object.keys(to).map(name => [name, from[name] ?? to[name]!]))
  const was = Object.fromEntries(Object.keys(images).map(name => [name, wasOf(pod, name)]))
  return { do: "patch", pod, images, mark: { operation, from: to, to: images, was, at, failed: reason } }
}
