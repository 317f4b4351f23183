import { standsFor } from "#core/pods/one-at-a-time.ts"
import { formatDuration } from "#lib/duration.ts"
import { earliest, type Instant } from "#lib/instant.ts"
import type { ContainerBefore, PodMark } from "./marks.ts"
import type { ContainerFacts, PodFacts } from "./pod.ts"
import type { Touched } from "./template.ts"

/** What pods are to become. */
export type Target = {
  readonly operation: string
  /** Of the workload's template. */
  readonly images: ReadonlyMap<string, string>
  readonly labels: Readonly<Record<string, unknown>>
  readonly annotations: Readonly<Record<string, unknown>>
  /** The part of it that this hold changes. */
  readonly touched: Touched
  readonly minReadyMs: number
  /** A changed pod that is not ready after this long has failed. */
  readonly deadlineMs: number
}

export type FailureReason = "CrashLoop" | "ImagePullFailed" | "ContainerFailed" | "ImageDiffers" | "Timeout"

export type Standing =
  /** `containers` have another image; where labels or annotations differ, `restarts` read one of them. */
  | { readonly is: "Stale"; readonly containers: readonly string[]; readonly restarts: readonly string[] }
  /** Changed, and not proven yet. `until`: when time alone changes this. `isLost`: its node reports nothing. */
  | { readonly is: "Restarting"; readonly until?: Instant; readonly isLost?: true }
  | { readonly is: "Failed"; readonly reason: FailureReason; readonly message: string }
  /** It failed in this operation and went back. */
  | { readonly is: "Reverted"; readonly reason: string }
  | { readonly is: "Updated" }

/** What is known beside the pod itself. */
export type Evidence = {
  /** The digest that the node's agent found for an image, once it is there. */
  digestOn(node: string, image: string): string | undefined
  /** Since when the pod has been seen up without a break. */
  upSince(uid: string): Instant | undefined
  /** Since when the pod has been seen drained. */
  drainedSince(uid: string): Instant | undefined
  /** The last change of this pod has been proven before. */
  isProven?(pod: PodFacts): boolean
  /** Undefined where nothing is known of the node. */
  nodeOf?(name: string): NodeState | undefined
  readonly now: Instant
}

export type NodeState = { readonly isReady: boolean; readonly since: Instant }

/** The kubelet of a node that is not ready reports nothing: what its pods show is of before. */
export const isLost = ({ node }: PodFacts, { nodeOf }: Evidence) => nodeOf?.(node)?.isReady === false

/**
 * Is the change of this pod done? A new container ID, the bits that were pulled, and ready for long enough. That the
 * kubelet has observed the new generation proves nothing: it reports that before it restarts the container.
 */
export function standingOf(pod: PodFacts, target: Target, evidence: Evidence): Standing {
  const { mark } = pod
  const isOwn = mark?.operation === target.operation
  if (isOwn && mark.failed !== undefined) return { is: "Reverted", reason: mark.failed }
  // Without a mark it was created from this template; without a node there is no old container to replace. What was
  // changed is proven before the next of its containers is changed.
  const proof: Standing = isOwn && pod.node !== "" ? proofOf(pod, mark, target, evidence) : { is: "Updated" }
  if (proof.is !== "Updated") return proof
  const containers = staleContainers(pod, target, evidence)
  const isOther = hasStaleMetadata(pod, target)
  if (containers.length === 0 && !isOther) return proof
  const readers = isOther ? (target.touched.restarts ?? []) : []
  return { is: "Stale", containers, restarts: readers.filter(name => isRestartable(pod, name, containers)) }
}

/** One that was never started reads what is there when it is. */
const isRestartable = ({ containers }: PodFacts, name: string, changed: readonly string[]) =>
  !changed.includes(name) && (containers.get(name)?.id ?? "") !== ""

/** Containers that the node's agent has still to restart. */
export const unrestarted = ({ mark, containers }: PodFacts): readonly string[] =>
  mark?.restarts?.filter(name => containers.has(name) && containers.get(name)!.id === mark.was[name]?.id) ?? []

function staleContainers(
  { node, containers, mark, failover }: PodFacts,
  target: Target,
  { digestOn }: Evidence,
): string[] {
  return target.touched.containers.filter(name => {
    const container = containers.get(name)
    const image = target.images.get(name)
    if (!container || image === undefined || container.image === image) return false
    // Pulled from an equivalent repository: it is on the image that it stands for.
    if (standsFor(failover, { name, image: container.image }) === image) return false
    // Changed by us, and by another since: a webhook.
    if (mark?.operation === target.operation && mark.to[name] === image) return false
    // What it runs is what it ran before our last change, and not for long.
    if (isUnchanged(container, mark, name) && mark!.to[name] === container.image) return true
    // The same bits under another name: a restart would change nothing.
    return !(container.isRunning && container.digest !== "" && container.digest === digestOn(node, image))
  })
}

/** Written once in an operation: another writer of the same key is not fought. */
const hasStaleMetadata = ({ labels, annotations, mark }: PodFacts, target: Target) =>
  mark?.operation !== target.operation &&
  (target.touched.labels.some(key => labels[key] !== target.labels[key]) ||
    target.touched.annotations.some(key => annotations[key] !== target.annotations[key]))

/**
 * Is what this mark records proven? A change that was proven and is older than its deadline stays so: a node that is
 * lost, a restart for want of memory or a failing probe are not the update's any more. Before, a pod that is down again
 * is waited for, and a crash loop is the image's: without minReadySeconds a moment of health proves little.
 */
export function proofOf(pod: PodFacts, mark: PodMark, target: Target, evidence: Evidence): Standing {
  const found = firstProofOf(pod, mark, target, evidence)
  if (found.is === "Updated" || !(mark.proven || evidence.isProven?.(pod))) return found
  const finalAt = mark.at + target.deadlineMs
  if (evidence.now >= finalAt) return { is: "Updated" }
  if (found.is === "Failed" && found.reason === "CrashLoop") return found
  return found.is === "Restarting"
    ? { ...found, until: earliest(found.until, finalAt)! }
    : { is: "Restarting", until: finalAt }
}

function firstProofOf(pod: PodFacts, mark: PodMark, target: Target, evidence: Evidence): Standing {
  const names = Object.keys(mark.to).filter(name => mark.to[name] !== mark.from[name])
  const changed = [...names, ...(mark.restarts ?? [])].flatMap(name => {
    const container = pod.containers.get(name)
    return container ? [{ name, container, was: mark.was[name] }] : []
  })
  if (changed.length === 0) return { is: "Updated" }
  const { now, digestOn, upSince } = evidence
  const node = evidence.nodeOf?.(pod.node)
  // A pod that was ready in between has its time again, and so has one whose node is back.
  const begun = Math.max(mark.at, pod.readyChangedAt ?? 0, node?.isReady ? node.since : 0)
  const deadline = begun + target.deadlineMs
  let isRestarted = true
  let upMs = target.minReadyMs
  let other: string | undefined
  let until: Instant | undefined
  for (const { name, container, was } of changed) {
    const expected = container.image === mark.to[name] ? digestOn(pod.node, container.image) : undefined
    const isOther = isOtherImage(container, expected)
    const failure = failureOf(container, was, isOther)
    // It may be the report of a moment before the change.
    const isLeft = failure !== undefined && was?.waiting !== undefined && container.waiting !== ""
    if (failure && !(isLeft && now < mark.at + leftMs))
      return { is: "Failed", ...failure, message: `container ${name}: ${failure.message}` }
    if (failure) until = earliest(until, mark.at + leftMs)
    if (isOther && container.id !== was?.id)
      other = `container ${name} runs ${container.digest}, and ${expected} was pulled and verified`
    // An image that was changed back before the kubelet saw it restarts nothing.
    const isSame = expected === undefined ? was?.image === container.image : container.digest === expected
    const isKept = container.id === was?.id && container.digest !== "" && isSame
    if (isKept && now < mark.at + leftMs) until = earliest(until, mark.at + leftMs)
    const isThere = container.id !== was?.id || (isKept && now >= mark.at + leftMs)
    if (container.id === "" || !isThere || !container.isRunning || isOther) isRestarted = false
    if (againOf(container, was) > 0) upMs = Math.max(upMs, steadyMs)
  }
  const since = isRestarted && isUp(pod) ? upSince(pod.uid) : undefined
  if (since !== undefined && now >= since + upMs) return { is: "Updated" }
  if (since !== undefined) return { is: "Restarting", until: since + upMs }
  if (node?.isReady === false) return { is: "Restarting", isLost: true }
  if (now < deadline) return { is: "Restarting", until: earliest(until, deadline)! }
  if (other) return { is: "Failed", reason: "ImageDiffers", message: other }
  const [left] = unrestarted(pod)
  const what = left === undefined ? "not ready" : `the node's agent has not restarted container ${left}`
  const message = `${what} ${formatDuration(target.deadlineMs)} after the change`
  return { is: "Failed", reason: "Timeout", message }
}

/** A pod that is drained by its readiness gate is judged by its containers: it cannot be Ready. */
export const isUp = ({ gate, isReady, containers }: PodFacts) =>
  gate?.isDrained ? [...containers.values()].every(each => each.isInit || each.isReady) : isReady

/**
 * Changed by another operation, and its container is still the one of before: it is down already, whatever it reports.
 * After a while it is not: an image that was changed back before the kubelet saw it restarts nothing.
 */
export const awaitsRestart = ({ mark, containers }: PodFacts, now: Instant): boolean =>
  mark !== undefined &&
  now < mark.at + leftMs &&
  Object.keys(mark.to).some(name => isUnchanged(containers.get(name), mark, name))

/** The node's agent was to restart containers of it, and a request that is not carried out for this long may never be. */
export const awaitsAgent = (pod: PodFacts, now: Instant): boolean =>
  unrestarted(pod).length > 0 && now < pod.mark!.at + agentMs
const agentMs = 60_000

/**
 * Until when a drained pod stays so at most: it is about to restart, or it has restarted and is not up. One that serves
 * before that would restart while it does. Undefined: it can serve.
 */
export function staysDrained(pod: PodFacts, now: Instant): Instant | undefined {
  if (awaitsRestart(pod, now)) return pod.mark!.at + leftMs
  const at = (pod.mark?.at ?? Number.NEGATIVE_INFINITY) + agentMs
  return awaitsAgent(pod, now) || (!isUp(pod) && now < at) ? at : undefined
}

/** Its image was changed, and it is still the container of before. */
const isUnchanged = (container: ContainerFacts | undefined, mark: PodMark | undefined, name: string) =>
  mark?.to[name] !== mark?.from[name] && !!container?.id && container.id === mark?.was[name]?.id

/** The image of a container that has not restarted since its image was changed. Undefined for any other. */
export const startedFrom = ({ containers, mark }: PodFacts, name: string): string | undefined =>
  isUnchanged(containers.get(name), mark, name) ? (mark?.was[name]?.image ?? mark?.from[name]) : undefined

/** How long the report of a container that waited before the change counts as the old one's. */
const leftMs = 30_000

/** Restarts after the one that the change itself causes. */
const againOf = ({ restarts }: ContainerFacts, was: ContainerBefore | undefined) => restarts - (was?.restarts ?? 0) - 1
const crashesMost = 3
/** A container that has ended since the change proves nothing by a moment of health: a crash loop has one in each round. */
const steadyMs = 30_000
const pullProblems = new Set(["ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError"])
const startProblems = new Set(["CreateContainerConfigError", "CreateContainerError", "RunContainerError"])

/** Other bits than those that were pulled: the kubelet may start the old image once more before it sees the change. */
const isOtherImage = ({ digest }: ContainerFacts, expected: string | undefined) =>
  expected !== undefined && digest !== "" && digest !== expected

function failureOf(
  container: ContainerFacts,
  was: ContainerBefore | undefined,
  isOther: boolean,
): { reason: FailureReason; message: string } | undefined {
  const { id, waiting } = container
  if (pullProblems.has(waiting)) return { reason: "ImagePullFailed", message: waiting }
  if (startProblems.has(waiting)) return { reason: "ContainerFailed", message: waiting }
  // Until the container is a new one, what is reported is about the old one.
  if (id === "" || id === was?.id || isOther) return undefined
  if (waiting === "CrashLoopBackOff") return { reason: "CrashLoop", message: waiting }
  const again = againOf(container, was)
  if (again >= crashesMost) return { reason: "CrashLoop", message: `restarted ${again} times since the change` }
  return undefined
}
