import { unavailableOf } from "#core/in-place/budget.ts"
import { isReadable, lostHold, type WorkloadNote } from "#core/in-place/marks.ts"
import { heldMark, inPlaceHolder, strategyAnnotation } from "#core/in-place/names.ts"
import { type Judged, nextWrites, type PodsNext, type PodWrite } from "#core/in-place/next.ts"
import { isOfHold, noteOf, operationOf, short } from "#core/in-place/operation.ts"
import type { PodFacts } from "#core/in-place/pod.ts"
import { provenOf } from "#core/in-place/proven.ts"
import { parseSettings, type Settings } from "#core/in-place/settings.ts"
import { awaitsRestart, type Evidence, standingOf, type Target } from "#core/in-place/standing.ts"
import {
  annotationsOf,
  type Change,
  changeFrom,
  imagesOf,
  labelsOf,
  type PodTemplate,
  type Touched,
  untouched,
  withoutHash,
} from "#core/in-place/template.ts"
import { earliest, type Instant } from "#lib/instant.ts"
import { counted, nameSome } from "#lib/text.ts"
import type { DeploymentAction } from "./deployment/native.ts"
import type { Job, Workload } from "./facts.ts"
import type { Native } from "./kind.ts"
import { isWithin, makeNote, union } from "./note.ts"
import { jobActions } from "./pull-jobs.ts"
import { takingBack } from "./take-back.ts"

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
  readonly disruptions: { readonly budget: string; readonly allowed: number } | undefined
  imageOn(node: string, image: string): ImageOnNode
  upSince(uid: string): Instant | undefined
  /** The agent has been asked to restart containers of this pod. */
  isAsked(uid: string, operation: string): boolean
  drainedSince(uid: string): Instant | undefined
  /** The last change of this pod has been proven before. */
  isProven(pod: PodFacts): boolean
  nodeOf: NonNullable<Evidence["nodeOf"]>
  readonly now: Instant
}

export type Reason =
  | "Updating"
  | "Pulling"
  | "ImageUnavailable"
  | "BudgetSpent"
  | "Partitioned"
  | "NodeNotReady"
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
  /** Gives the workload back to its own controller. `looksAgain`: only if that is still so in caches of the present. */
  | { readonly do: "release"; readonly note: WorkloadNote; readonly looksAgain?: true }
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

export type Plan = {
  /** In order; stopping after any of them is safe. */
  readonly actions: readonly Action[]
  readonly lookAgainAt?: Instant | undefined
  /** Nodes whose agents are waited for. */
  readonly nodes?: readonly string[]
  /** How each pod stands, where that was asked. */
  readonly judged?: readonly Judged[]
}

const nothing: Plan = { actions: [] }

/**
 * Decides the next writes for one held workload (decisions 66 and 69).
 *
 *   held → note → pull → per pod: drain, patch, prove, serve → what the kind needs → fence → release → clean up
 *
 * Nothing of it is remembered: which step is next follows from the objects, so any process can take over after any write.
 */
export function plan(seen: Snapshot): Plan {
  const { workload, isListed } = seen
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
  if (!workload.isInForce) return resumed(seen)
  if (workload.annotations[strategyAnnotation] === undefined)
    return released(seen, "OptedOut", "the annotation is gone")
  if (!parsed.ok) return stopped(seen, "InvalidAnnotation", parsed.problem)
  if (parsed.settings.strategy === "Recreate") return released(seen, "OptedOut", "update-strategy is Recreate")
  return withSettings(seen, parsed.settings)
}

function withSettings(seen: Snapshot, settings: Settings): Plan {
  const { workload, native } = seen
  const giveUp = (reason: Reason, message: string, looksAgain = false) =>
    settings.strategy === "InPlaceOnly"
      ? stopped(seen, reason, `${message}; aim release ${native.title} lets the ${native.kind} controller do it`)
      : released(seen, reason, message, looksAgain)
  if (native.obstacle !== undefined) return giveUp("FellBackToRollingUpdate", native.obstacle, true)
  if (native.isEmpty) return released(seen, "Completed", "there are no pods to update")
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
  if (before?.failed === operation)
    return stopped(seen, "UpdateFailed", `${operation} failed and was rolled back; it is not tried again`)
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
  const next = nextWrites({
    pods: seen.pods,
    target,
    // The template of before is back: no pod keeps what is taken back.
    settings: change.is === "None" || native.isBack ? { ...settings, partition: { count: 0 } } : settings,
    replicas: workload.replicas,
    maxUnavailable,
    disruptions: seen.disruptions,
    missingOn: (node, image) => whyMissing(seen.imageOn(node, image), settings),
    noAgentOn: node => (seen.imageOn(node, "").is === "NoAgent" ? "no agent has answered" : undefined),
    isAsked: seen.isAsked,
    evidence,
    ordinals: native.ordinals,
  })
  const [failure] = next.failures
  if (failure && settings.onFailure === "Rollback" && change.is === "InPlace" && native.before) {
    const message = `rolls back: ${failure.pod} ${failure.reason}, ${failure.message}`
    const note = { ...noteFor(seen, "UpdateFailed", message), failed: operation }
    const template = withoutHash(native.before)
    const back = operationOf({ ...workload, template })
    return { actions: [{ do: "rollback", template, note: { ...note, back } }], judged: next.judged }
  }
  const { labels, lookAgainAt } = labelled(seen, target, evidence)
  if (next.isDone && labels.length === 0) return { lookAgainAt, ...finish(seen), judged: next.judged }
  const { actions, ...rest } = inProgress(seen, next, jobActions(seen, touched))
  return { ...rest, actions: [...actions, ...labels], lookAgainAt: earliest(next.lookAgainAt, lookAgainAt) }
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

function inProgress(seen: Snapshot, next: PodsNext, jobs: readonly Action[]): Plan {
  const { workload } = seen
  const { reason, message } = verdictOf(seen, next)
  const writes = next.writes.map(
    (write): Action => ({ do: "pod", write, template: workload.template, touched: noteOf(workload)!.touched }),
  )
  const said = told(seen, reason, message)
  return {
    actions: [...said.actions, ...jobs, ...writes],
    lookAgainAt: next.lookAgainAt,
    nodes: [...next.missing.keys(), ...next.lost],
    judged: next.judged,
  }
}

function verdictOf(seen: Snapshot, next: PodsNext): { reason: Reason; message: string } {
  const { pods, disruptions, jobs } = seen
  const progress = `${next.updated} of ${counted(pods.length, "pod")} updated`
  const [failure] = next.failures
  if (failure)
    return { reason: "UpdateFailed", message: `${progress}; ${failure.pod}: ${failure.reason}, ${failure.message}` }
  if (next.underWay > 0) return { reason: "Updating", message: progress }
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
    const by = disruptions && disruptions.allowed === 0 ? `PodDisruptionBudget ${disruptions.budget}` : "maxUnavailable"
    return { reason: "BudgetSpent", message: `${progress}; ${counted(next.waiting, "pod")} wait for ${by}` }
  }
  if (next.kept > 0) return { reason: "Partitioned", message: `${progress}; in-place-partition keeps ${next.kept}` }
  return { reason: "Updating", message: progress }
}

/** The agent was asked and has not answered yet. */
export const asked = "asked"

/** Every pod is done. The workload is let go once its own controller knows all of it. */
function finish(seen: Snapshot): Plan {
  const { workload, native } = seen
  const closing = native.close()
  if (closing.is === "Waiting") return { actions: closing.actions }
  if (closing.is === "Asking") {
    const note = { ...noteFor(seen, "Fencing", "all pods are done"), fence: closing.fence }
    return { actions: [...closing.actions, { do: "note", note }] }
  }
  const { failed = "", back, to } = noteOf(workload)!
  const images = nameSome(Object.values(to).slice(0, 3), Object.keys(to).length)
  const pods = counted(seen.pods.length, "pod")
  const isOfThis = ({ mark }: PodFacts) => mark?.operation === operationOf(workload)
  const done = seen.pods.some(isOfThis) ? `${pods} updated in place` : "no pod had to be changed"
  return back === operationOf(workload)
    ? released(seen, "RolledBack", `${pods} went back after operation ${failed} had failed`, true)
    : released(seen, "Completed", `${done}${images && `: ${images}`}`, true)
}

/** `kubectl rollout resume`, or another write that took the hold away: the owner's own release. */
function resumed(seen: Snapshot): Plan {
  return seen.native.isFollowed
    ? released(seen, "Completed", "resumed by its owner")
    : released(seen, "FellBackToRollingUpdate", "it was resumed in between")
}

/** First what was changed and stays, then the label. */
function cleanedUp(seen: Snapshot): Plan {
  const { template } = seen.workload
  const back = takingBack(seen, `back-${short(withoutHash(template))}`)
  const rest = [...serving(seen), ...ended(seen.jobs)]
  // Without the label a pod that still has to restart would stay drained.
  if (!back && seen.pods.some(pod => isToRestart(seen, pod)))
    return { actions: rest, lookAgainAt: seen.now + restartMs }
  if (!back) return { actions: [...rest, { do: "unmark" }] }
  const { next, note } = back
  const writes = next.writes.map((write): Action => ({ do: "pod", write, template, touched: note.touched }))
  return { actions: [...ended(seen.jobs), ...writes], lookAgainAt: next.lookAgainAt }
}

const ended = (jobs: readonly Job[]) => jobs.map((job): Action => ({ do: "deleteJob", job }))

/** No pod stays drained; one that is about to restart serves again afterwards. */
function serving(seen: Snapshot): Action[] {
  const { template } = seen.workload
  const drained = seen.pods.filter(pod => pod.gate?.isDrained && !isToRestart(seen, pod))
  return drained.map(pod => ({ do: "pod", write: { do: "undrain", pod }, template, touched: untouched }))
}

const isToRestart = ({ now }: Snapshot, pod: PodFacts) => pod.gate?.isDrained === true && awaitsRestart(pod, now)
/** Its report wakes us earlier. */
const restartMs = 5000

/** Gives everything back: pods serve, and the workload is its own controller's again. */
function released(seen: Snapshot, reason: Reason, message: string, looksAgain = false): Plan {
  return {
    actions: [
      ...serving(seen),
      { do: "release", note: noteFor(seen, reason, message), ...(looksAgain && { looksAgain: true }) },
    ],
  }
}

/** Only a person can continue: until then no pod stays drained. */
const stopped = (seen: Snapshot, reason: Reason, message: string): Plan => ({
  actions: [...told(seen, reason, message).actions, ...serving(seen)],
})

/** Waits, and says why. The same reason is written once: counts alone are no write. */
function told(seen: Snapshot, reason: Reason, message: string): Plan {
  const before = noteOf(seen.workload)
  const isSaid = before?.reason === reason && before.operation === operationOf(seen.workload)
  return { actions: isSaid ? [] : [{ do: "note", note: noteFor(seen, reason, message) }] }
}

const noteFor = ({ workload, native }: Snapshot, reason: Reason, message: string) =>
  makeNote(workload, native.before, reason, message)

function startWords({ pods }: Snapshot, { containers, restarts = [] }: Touched): string {
  const names = [...new Set([...containers, ...restarts])]
  return names.length > 0
    ? `${counted(pods.length, "pod")}, container ${names.join(", ")}`
    : counted(pods.length, "pod")
}
