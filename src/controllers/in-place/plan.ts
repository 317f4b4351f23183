import { unavailableOf } from "#core/in-place/budget.ts"
import type { Room } from "#core/in-place/cover.ts"
import { isReadable, lostHold, type WorkloadNote } from "#core/in-place/marks.ts"
import { heldMark, inPlaceHolder, strategyAnnotation } from "#core/in-place/names.ts"
import { type Judged, nextWrites, type PodsNext, type PodWrite } from "#core/in-place/next.ts"
import { failedBefore, isAtRest, isOfHold, noteOf, operationOf, stampOf } from "#core/in-place/operation.ts"
import type { PodFacts } from "#core/in-place/pod.ts"
import { provenOf } from "#core/in-place/proven.ts"
import { parseSettings, type Settings } from "#core/in-place/settings.ts"
import { type Evidence, standingOf, type Target } from "#core/in-place/standing.ts"
import {
  annotationsOf,
  type Change,
  changeFrom,
  imagesOf,
  labelsOf,
  type PodTemplate,
  type Touched,
  withoutHash,
} from "#core/in-place/template.ts"
import { earliest, type Instant } from "#lib/instant.ts"
import { counted, nameSome } from "#lib/text.ts"
import type { DeploymentAction } from "./deployment/native.ts"
import type { Job, Workload } from "./facts.ts"
import {
  atRest,
  cleanedUp,
  completed,
  isToRestart,
  leftToNative,
  lent,
  noteFor,
  released,
  restartMs,
  resumed,
  roomMs,
  serving,
} from "./give-back.ts"
import type { Closing, Native } from "./kind.ts"
import { isWithin, union } from "./note.ts"
import { jobActions } from "./pull-jobs.ts"

/** What an agent says of an image on its node. */
export type ImageOnNode =
  | { readonly is: "Present"; readonly digest: string }
  | { readonly is: "Missing"; readonly why: string }
  | { readonly is: "NoAgent" }

/** Everything a decision about one held workload is made from. */
export type Snapshot = {
  readonly workload: Workload
  /** Nothing is concluded from incomplete lists. */
  readonly isListed: boolean
  /** What its own controller makes of it, as the adapter of the kind reads it. */
  readonly native: Native
  readonly pods: readonly PodFacts[]
  readonly jobs: readonly Job[]
  readonly disruptions: Room | undefined
  imageOn(node: string, image: string): ImageOnNode
  upSince(uid: string): Instant | undefined
  /** The agent has been asked to restart containers of this pod. */
  isAsked(uid: string, operation: string): boolean
  drainedSince(uid: string): Instant | undefined
  /** The last change of this pod has been proven before. */
  isProven(pod: PodFacts): boolean
  nodeOf: NonNullable<Evidence["nodeOf"]>
  /** Why the last writes to pods were refused; null: they were not; undefined: this process has tried none. */
  readonly refusal?: Refusal | null | undefined
  /** Since when the update has waited without a step of its own. */
  readonly waitsSince?: Instant | undefined
  readonly now: Instant
}

/** The server, or a budget, has refused a write to a pod. */
export type Refusal = {
  readonly operation: string
  readonly reason: "Forbidden" | "Refused" | "BudgetSpent"
  readonly message: string
  /** Until then nothing is tried. */
  readonly retryAt?: Instant
}

export type Reason =
  | Refusal["reason"]
  | "Updating"
  | "Pulling"
  | "ImageUnavailable"
  | "Partitioned"
  | "NodeNotReady"
  | "PodNotReady"
  | "UpdateFailed"
  | "Fencing"
  | "Completed"
  | "RolledBack"
  | "NotInPlace"
  | "NoBudget"
  | "OptedOut"
  | "InvalidAnnotation"
  | "FellBackToRollingUpdate"

export type Action =
  | { readonly do: "note"; readonly note: WorkloadNote }
  | Ending
  /** The standing hold is in force again, after a rolling update. */
  | { readonly do: "stand"; readonly original: string }
  | { readonly do: "rollback"; readonly template: PodTemplate; readonly note: WorkloadNote }
  | { readonly do: "unmark" }
  | {
      readonly do: "createJob"
      readonly name: string
      readonly image: string
      readonly pullPolicy: "Always" | "IfNotPresent"
      readonly pullSecrets: readonly string[]
    }
  | { readonly do: "deleteJob"; readonly job: Job }
  | { readonly do: "pod"; readonly write: PodWrite; readonly template: PodTemplate; readonly touched: Touched }
  | DeploymentAction

/**
 * How an update ends. `release`: the workload is its own controller's again. `settle`: a standing hold stays for the next
 * one. `lend`: a standing hold ends for the time of a rolling update. `looksAgain`: only if that is still so in caches of
 * the present.
 */
export type Ending = {
  readonly do: "release" | "settle" | "lend"
  readonly note: WorkloadNote
  readonly looksAgain?: true
}

export type Plan = {
  /** In order; stopping after any of them is safe. */
  readonly actions: readonly Action[]
  readonly lookAgainAt?: Instant | undefined
  /** Nodes whose agents are waited for. */
  readonly nodes?: readonly string[]
  /** Budgets that are waited for. */
  readonly budgets?: readonly string[]
  /** No step of its own is left until something else happens. */
  readonly isWaiting?: boolean
  /** How each pod stands, where that was asked. */
  readonly judged?: readonly Judged[]
  /** No update is under way: the hold stands between two of them, or its own controller does a rolling update. */
  readonly rest?: "Standing" | "Lent"
}

const nothing: Plan = { actions: [] }

/**
 * Decides the next writes for one held workload (decisions 66 and 69).
 *
 *   held → note → pull → per pod: drain, patch, prove, serve → what the kind needs → fence → release → clean up
 *
 * A standing hold is settled instead of released, and rests until the next change (decision 89).
 *
 * Nothing of it is remembered: which step is next follows from the objects, so any process can take over after any write.
 */
export function plan(seen: Snapshot): Plan {
  const { workload, isListed, native } = seen
  const { hold } = workload
  if (!isListed) return nothing
  const isReleased = workload.annotations[heldMark] === undefined && !workload.isInForce
  const lost = hold || isReleased ? undefined : lostHold(workload.annotations[heldMark], workload.note)
  if (lost)
    return released({ ...seen, workload: { ...workload, hold: lost } }, "OptedOut", `annotation ${heldMark} is lost`)
  // Released, by us or by hand: the label goes last, since it is what makes the workload seen here.
  if (workload.annotations[heldMark] === undefined) return cleanedUp(seen)
  if (hold?.by !== inPlaceHolder) return nothing
  const parsed = parseSettings(workload.annotations)
  if (hold.isLent) return lent(seen, parsed.ok && parsed.settings.strategy === "Recreate")
  if (!workload.isInForce) return resumed(seen)
  if (workload.annotations[strategyAnnotation] === undefined)
    return released(seen, "OptedOut", "the annotation is gone")
  if (!parsed.ok) return stopped(seen, "InvalidAnnotation", parsed.problem)
  if (parsed.settings.strategy === "Recreate") return released(seen, "OptedOut", "update-strategy is Recreate")
  if (isAtRest(workload) && native.isFollowed && native.obstacle === undefined) return atRest(seen)
  return withSettings(seen, parsed.settings)
}

function withSettings(seen: Snapshot, settings: Settings): Plan {
  const { workload, native } = seen
  const giveUp = (reason: Reason, message: string) =>
    settings.strategy === "InPlaceOnly"
      ? stopped(seen, reason, `${message}; aim release ${native.title} lets the ${native.kind} controller do it`)
      : leftToNative(seen, reason, message)
  if (native.obstacle !== undefined) return giveUp("FellBackToRollingUpdate", native.obstacle)
  if (native.isEmpty) return leftToNative(seen, "Completed", "there are no pods to update")
  const change = changeFrom(native.templates, workload.template)
  if (change.is === "NotInPlace") return giveUp("NotInPlace", `${change.path}: ${change.why}`)
  const touched = union(noteOf(workload)?.touched, change)
  if (!isReadable({ ...noteFor(seen, "Updating", ""), touched }))
    return giveUp("NotInPlace", "metadata: more labels and annotations change than can be recorded")
  const maxUnavailable = unavailableOf(workload.maxUnavailable, settings, workload.replicas)
  const disturbs = change.is === "InPlace" && change.containers.length + (change.restarts ?? []).length > 0
  // Without replicas, what is left of its pods goes by itself.
  if (disturbs && maxUnavailable === 0 && workload.replicas > 0)
    return giveUp(
      "NoBudget",
      `maxUnavailable allows no pod of ${workload.replicas} to restart: write in-place-max-unavailable, such as "1"`,
    )
  return update(seen, { settings, change, maxUnavailable })
}

type Course = {
  settings: Settings
  change: Exclude<Change, { is: "NotInPlace" }>
  maxUnavailable: number
}

function update(seen: Snapshot, course: Course): Plan {
  const { workload, native } = seen
  const { settings, change, maxUnavailable } = course
  const operation = operationOf(workload)
  const before = noteOf(workload)
  const touched = union(before?.touched, change)
  const failed = failedBefore(workload)
  if (failed !== undefined)
    return stopped(
      seen,
      "UpdateFailed",
      `${failed} failed and was rolled back; aim resume ${native.title} tries it again`,
    )
  // Recorded before the first pod changes: it says what an abort has to take back.
  if (!before || before.operation !== operation || !isWithin(touched, before.touched))
    return { actions: [{ do: "note", note: { ...noteFor(seen, "Updating", startWords(seen, touched)), touched } }] }
  const target: Target = {
    operation,
    images: imagesOf(workload.template),
    labels: labelsOf(workload.template),
    annotations: annotationsOf(workload.template),
    touched,
    minReadyMs: workload.minReadySeconds * 1000,
    deadlineMs: workload.deadlineSeconds * 1000,
  }
  const evidence: Evidence = {
    digestOn(node, image) {
      const found = seen.imageOn(node, image)
      return found.is === "Present" && found.digest !== "" ? found.digest : undefined
    },
    upSince: seen.upSince,
    drainedSince: seen.drainedSince,
    isProven: seen.isProven,
    nodeOf: seen.nodeOf,
    now: seen.now,
  }
  // What its own controller makes pods from has this template, before the first change or after the last one.
  const isFollowed = change.is === "None"
  const isBack = before.back === operation
  const asksBack = settings.onFailure === "Rollback"
  const wayBack = asksBack && !isBack ? (isFollowed ? native.flippedFrom?.() : native.before) : undefined
  const isStuck = asksBack && !wayBack
  const next = nextWrites({
    pods: seen.pods,
    target,
    settings: {
      ...settings,
      // The template of before is back: no pod keeps what is taken back.
      ...((isFollowed || isBack || native.isBack) && { partition: { count: 0 } }),
      // A pod does not go where its workload cannot.
      ...(isStuck && { onFailure: "Stop" }),
    },
    replicas: workload.replicas,
    maxUnavailable,
    disruptions: seen.disruptions,
    missingOn: (node, image) => whyMissing(seen.imageOn(node, image), settings),
    noAgentOn: node => (seen.imageOn(node, "").is === "NoAgent" ? "no agent has answered" : undefined),
    isAsked: seen.isAsked,
    evidence,
    ordinals: native.ordinals,
    hasFailed: before.reason === "UpdateFailed",
    isResting: seen.now < (refusalOf(seen)?.retryAt ?? 0),
  })
  const [failure] = next.failures
  if (failure && wayBack) {
    const message = `rolls back: ${failure.pod} ${failure.reason}, ${failure.message}`
    const template = withoutHash(wayBack)
    const back = operationOf({ ...workload, template })
    const stamp = stampOf(workload.annotations)
    const remembered = { failed: operation, back, ...(stamp !== undefined && { stamp }) }
    const note = { ...noteFor(seen, "UpdateFailed", message), ...remembered }
    return { actions: [{ do: "rollback", template, note }], judged: next.judged }
  }
  const { labels, lookAgainAt } = labelled(seen, target, evidence)
  const isOver = ({ pod, standing }: Judged) =>
    standing.is === "Failed" ? isStuck || pod.mark?.proven : standing.is === "Updated" && !pod.gate?.isDrained
  const isDone = (next.isDone || (isFollowed && next.judged.every(isOver))) && labels.length === 0
  const rest = isDone ? finish(seen) : inProgress(seen, next, jobActions(seen, touched), labels)
  return { ...rest, judged: next.judged, lookAgainAt: earliest(rest.lookAgainAt, lookAgainAt) }
}

/** A pod is labelled only after it is proven: its own controller counts it as updated from then on. */
function labelled({ workload, native, pods }: Snapshot, target: Target, evidence: Evidence) {
  if (!native.label) return { labels: [] }
  // A late label of an earlier target may be on its way to such a pod, until the pod has another version.
  const isLeft = (pod: PodFacts) =>
    isOfHold(workload, pod.mark?.operation) &&
    pod.mark?.operation !== target.operation &&
    standingOf(pod, target, evidence).is === "Stale"
  if (pods.some(isLeft)) return { labels: [] }
  const { proven, lookAgainAt } = provenOf(pods, target, evidence)
  const { template } = workload
  const labels = native.label(proven).map((write): Action => ({ do: "pod", write, template, touched: target.touched }))
  return { labels, lookAgainAt }
}

const whyMissing = (found: ImageOnNode, { isUnverified }: Settings): string | undefined => {
  if (found.is === "Present") return undefined
  if (found.is === "NoAgent") return isUnverified ? undefined : "no agent has answered; in-place-unverified allows it"
  return found.why
}

function inProgress(seen: Snapshot, next: PodsNext, jobs: readonly Action[], labels: readonly Action[]): Plan {
  const { workload, disruptions } = seen
  const { lookAgainAt, isWaiting, ...verdict } = whenItLasts(seen, verdictOf(seen, next))
  const writes = next.writes.map(
    (write): Action => ({ do: "pod", write, template: workload.template, touched: noteOf(workload)!.touched }),
  )
  const isShort = next.waiting > 0 && disruptions?.allowed === 0
  return {
    actions: [...told(seen, verdict.reason, verdict.message).actions, ...jobs, ...writes, ...labels],
    // A pod of another workload that has not restarted counts as down for a while, and no event ends that while.
    lookAgainAt: earliest(next.lookAgainAt, lookAgainAt, isShort ? seen.now + roomMs : undefined),
    nodes: [...next.missing.keys(), ...next.lost],
    budgets: isShort ? [disruptions.budget] : [],
    isWaiting,
  }
}

type Verdict = {
  readonly reason: Reason
  readonly message: string /** Shown if it lasts so long. */
  readonly afterMs?: number
}

/**
 * A budget that lags behind, or a pod that starts, is no reason to write that the update waits and soon that it does
 * not. What is written already stays.
 */
function whenItLasts(
  { workload, waitsSince, now }: Snapshot,
  { reason, message, afterMs }: Verdict,
): Verdict & { readonly lookAgainAt?: Instant; readonly isWaiting: boolean } {
  const at = (waitsSince ?? now) + (afterMs ?? 0)
  if (afterMs === undefined || now >= at || noteOf(workload)?.reason === reason)
    return { reason, message, isWaiting: afterMs !== undefined }
  return { reason: "Updating", message, isWaiting: true, lookAgainAt: at }
}

/**
 * The controller of budgets writes what it counts a moment after a pod has changed. Between one pod and the next, others
 * under the same budget have their turns.
 */
const lullMs = ({ updated }: PodsNext) => (updated === 0 ? 2000 : 30_000)
/** A pod that was made from the template starts. */
const startMs = 10_000

function verdictOf(seen: Snapshot, next: PodsNext): Verdict {
  const { pods, disruptions, jobs } = seen
  const progress = `${next.updated} of ${counted(pods.length, "pod")} updated`
  const [failure] = next.failures
  if (failure)
    return { reason: "UpdateFailed", message: `${progress}; ${failure.pod}: ${failure.reason}, ${failure.message}` }
  if (next.isStopped) return { reason: "UpdateFailed", message: progress }
  const refusal = refusalOf(seen)
  if (refusal && refusal.reason !== "BudgetSpent")
    return { reason: refusal.reason, message: `${progress}; ${refusal.message}` }
  if (next.underWay > next.begun) return { reason: "Updating", message: progress }
  if (refusal && next.begun > 0)
    return { reason: refusal.reason, message: `${progress}; ${refusal.message}`, afterMs: lullMs(next) }
  if (next.begun > 0) return { reason: "Updating", message: progress }
  const trouble = jobs.find(job => job.trouble !== "")?.trouble
  if (next.missing.size > 0) {
    const nodes = nameSome(
      [...next.missing].slice(0, 3).map(([node, why]) => `${node} (${why})`),
      next.missing.size,
    )
    const hasFailed = trouble !== undefined || [...next.missing.values()].some(why => why !== asked)
    return {
      reason: hasFailed ? "ImageUnavailable" : "Pulling",
      message: `${progress}; not on ${counted(next.missing.size, "node")}: ${trouble ?? nodes}`,
    }
  }
  if (next.lost.size > 0) {
    const nodes = nameSome([...next.lost].slice(0, 3), next.lost.size)
    return { reason: "NodeNotReady", message: `${progress}; pods wait for ${nodes}, not ready` }
  }
  if (next.waiting > 0) {
    const isBudget = disruptions && disruptions.allowed === 0
    const down = isBudget ? undefined : pods.find(({ isReady }) => !isReady)
    const by = isBudget ? `PodDisruptionBudget ${disruptions.budget}` : "maxUnavailable"
    const message = `${progress}; ${counted(next.waiting, "pod")} wait for ${by}${down ? `: pod ${down.name} is not ready` : ""}`
    return { reason: "BudgetSpent", message, afterMs: lullMs(next) }
  }
  if (next.kept > 0) return { reason: "Partitioned", message: `${progress}; in-place-partition keeps ${next.kept}` }
  return { reason: "Updating", message: progress }
}

/** Of this operation. A process that has tried nothing yet leaves what the one before has written. */
function refusalOf({ workload, refusal }: Snapshot): Omit<Refusal, "operation"> | undefined {
  const operation = operationOf(workload)
  if (refusal) return refusal.operation === operation ? refusal : undefined
  const before = refusal === undefined ? noteOf(workload) : undefined
  const reason = (["Forbidden", "Refused"] as const).find(each => each === before?.reason)
  return reason && before!.operation === operation ? { reason, message: before!.message } : undefined
}

/** The agent was asked and has not answered yet. */
export const asked = "asked"

/** Every pod is done. The workload is let go once its own controller knows all of it. */
function finish(seen: Snapshot): Plan {
  const { workload, native } = seen
  const closing = native.close()
  if (closing.is === "Waiting") return waiting(seen, closing)
  if (closing.is === "Asking") {
    const note = { ...noteFor(seen, "Fencing", "all pods are done"), fence: closing.fence }
    return { actions: [...closing.actions, { do: "note", note }] }
  }
  const { failed = "", back, to } = noteOf(workload)!
  const images = nameSome(Object.values(to).slice(0, 3), Object.keys(to).length)
  const pods = counted(seen.pods.length, "pod")
  const isOfThis = ({ mark }: PodFacts) => mark?.operation === operationOf(workload)
  const done = seen.pods.some(isOfThis) ? `${pods} updated in place` : "no pod had to be changed"
  const { fence } = closing
  return back === operationOf(workload)
    ? completed(seen, "RolledBack", `${pods} went back after operation ${failed} had failed`, fence)
    : completed(seen, "Completed", `${done}${images && `: ${images}`}`, fence)
}

/** What it waits for is written where it lasts: a write that is refused, or a pod. */
function waiting(seen: Snapshot, { actions, pod }: Extract<Closing, { is: "Waiting" }>): Plan {
  const refusal = actions.length > 0 ? refusalOf(seen) : undefined
  if (refusal && refusal.reason !== "BudgetSpent")
    return { actions: [...told(seen, refusal.reason, refusal.message).actions, ...actions] }
  if (pod === undefined) return { actions }
  const message = `all images are updated; the ${seen.native.kind} controller waits for ${pod}`
  const verdict = whenItLasts(seen, { reason: "PodNotReady", message, afterMs: startMs })
  const said = verdict.reason === "PodNotReady" ? told(seen, "PodNotReady", message).actions : []
  return { actions: [...said, ...actions], isWaiting: true, lookAgainAt: verdict.lookAgainAt }
}

/** Only a person can continue: until then no pod stays drained. */
const stopped = (seen: Snapshot, reason: Reason, message: string): Plan => ({
  actions: [...told(seen, reason, message).actions, ...serving(seen)],
  lookAgainAt: seen.pods.some(pod => isToRestart(seen, pod)) ? seen.now + restartMs : undefined,
})

/** Waits, and says why. The same reason is written once: counts alone are no write. */
function told(seen: Snapshot, reason: Reason, message: string): Plan {
  const before = noteOf(seen.workload)
  const isSaid = before?.reason === reason && before.operation === operationOf(seen.workload)
  return { actions: isSaid ? [] : [{ do: "note", note: noteFor(seen, reason, message) }] }
}

function startWords({ pods }: Snapshot, { containers, restarts = [] }: Touched): string {
  const names = [...new Set([...containers, ...restarts])]
  return names.length > 0
    ? `${counted(pods.length, "pod")}, container ${names.join(", ")}`
    : counted(pods.length, "pod")
}
