import { canaryHolder } from "#core/canary/hold.ts"
import { inPlaceHolder } from "#core/in-place/names.ts"
import { isOfTemplate, noteOf, operationOf } from "#core/in-place/operation.ts"
import { workloadTarget } from "#core/workloads/workload-target.ts"
import { counted } from "#lib/text.ts"
import type { KubeObject } from "#runtime/resource.ts"
import { hasImages, readWorkload, type WorkloadFacts } from "./facts.ts"

export type State =
  /** No controller has observed its last generation. */
  | "NotSeenYet"
  | "InProgress"
  /** Continues by itself; the reason says what it waits for. */
  | "Waiting"
  /** Its owner has stopped it: a pause, OnDelete, a partition of the update in place. */
  | "Paused"
  /** Does not continue without a person. */
  | "Stalled"
  /** The update failed, and everything went back. */
  | "RolledBack"
  | "Complete"

/** How the last change of a workload stands. */
export type Standing = {
  state: State
  reason: string
  message: string
  /** Of the update in place, under way or last. */
  operation?: string
  /** Pods that have the change. Unknown of a held workload: the counts of its status are about other work. */
  updated?: number
  total: number
}

/** From the workload alone: `kubectl rollout status` calls a held StatefulSet complete, and does not know the hold. */
export function standingOf(object: KubeObject): Standing {
  const workload = readWorkload(object)
  const { status, replicas, note } = workload
  const verdict = workload.hold ? whileHeld(workload) : byItsController(object, workload)
  const isTheUpdate = workload.hold ? noteOf(workload) : isAbout(workload)
  return {
    ...verdict,
    ...(isTheUpdate && { operation: note!.operation }),
    ...(!workload.hold && { updated: updatedIn(status) }),
    total: replicas,
  }
}

type Verdict = Pick<Standing, "state" | "reason" | "message">

/** Only a person can continue. */
const stalled = new Set([
  "Forbidden",
  "Refused",
  "UpdateFailed",
  "NotInPlace",
  "NoBudget",
  "InvalidAnnotation",
  "FellBackToRollingUpdate",
])
const waiting = new Set(["Pulling", "ImageUnavailable", "BudgetSpent", "NodeNotReady", "PodNotReady"])

const notTakenUp: Verdict = {
  state: "Waiting",
  reason: "Held",
  message: "the change is held, and no controller of aim has taken it up yet: is one running?",
}

/** Behind a standing hold, pods that are not of the template wait for aim. */
const isWaiting = ({ rest, isHolding, status }: WorkloadFacts) =>
  rest === "Standing" && isHolding && updatedIn(status) < (status.replicas ?? status.currentNumberScheduled ?? 0)

/** A Canary has it: how far it is, only the Canary says. */
const underCanary = ({ holder, namespace }: WorkloadFacts): Verdict => ({
  state: "Waiting",
  reason: "Held",
  message: `Canary ${holder!.name ?? ""} proves the change before its pods are the workload's: aim status canary/${holder!.name ?? "NAME"} -n ${namespace}`,
})

function whileHeld(workload: WorkloadFacts): Verdict {
  if (workload.holder?.by === canaryHolder) return underCanary(workload)
  const { hold, isHolding, template } = workload
  const note = noteOf(workload)
  if (hold!.by !== inPlaceHolder)
    return { state: "Waiting", reason: "Held", message: `it is held by ${hold!.by || "an annotation without a name"}` }
  if (!isHolding)
    return {
      state: "InProgress",
      reason: "FellBackToRollingUpdate",
      message: "its hold was taken away, and its own controller replaces the pods",
    }
  if (!note) return notTakenUp
  const { reason, message, back, from, to } = note
  // With `in-place-on-failure: Rollback` the template is the one before already.
  const isGoingBack = back !== undefined && hasImages(template, from)
  const isOfTemplate = note.operation === operationOf(workload) || hasImages(template, to)
  if (!isOfTemplate && !isGoingBack)
    return { state: "InProgress", reason: "Held", message: "the change is held, and will be taken up" }
  const state =
    reason === "Partitioned"
      ? "Paused"
      : stalled.has(reason) && !isGoingBack
        ? "Stalled"
        : waiting.has(reason)
          ? "Waiting"
          : "InProgress"
  return { state, reason, message: withoutCount(message) }
}

/** A note is written when its reason changes, so its counts may be old. */
const withoutCount = (message: string) => message.replace(/^\d+ of \d+ pods? updated(; )?/, "")

/** The last note is about the template that the workload has now. */
export const isAbout = ({ note, template }: WorkloadFacts) =>
  note !== undefined &&
  (note.reason === "RolledBack" ? isOfTemplate(note.operation, template) : hasImages(template, note.to))

/** A change of other fields only: every change of a workload that has opted in has a note, so this is the last one's. */
const isWithoutImages = ({ note, isOptedIn }: WorkloadFacts) =>
  isOptedIn && note !== undefined && Object.keys(note.to).length === 0

function byItsController(object: KubeObject, workload: WorkloadFacts): Verdict {
  const { kind, generation, isObserved, replicas, status, strategy, isPaused, note } = workload
  const observed = status.observedGeneration ?? 0
  if (!isObserved)
    return {
      state: "NotSeenYet",
      reason: "",
      message: `the ${kind} controller has not observed generation ${generation} yet; the last one is ${observed}`,
    }
  const own = isAbout(workload) ? note : undefined
  if (isWaiting(workload)) return workload.holder?.by === canaryHolder ? underCanary(workload) : notTakenUp
  const isDone = workloadTarget(kind, "").isUpToDate(object)
  if (isDone && own?.reason === "RolledBack") return { state: "RolledBack", reason: own.reason, message: own.message }
  if (isDone) return complete(workload)
  const counts = countsOf(workload)
  const stuck = (status.conditions ?? []).find(
    ({ type, reason }: { type: string; reason: string }) =>
      type === "Progressing" && reason === "ProgressDeadlineExceeded",
  )
  if (stuck) return { state: "Stalled", reason: stuck.reason, message: `${counts}; ${stuck.message}` }
  if (isPaused)
    return { state: "Paused", reason: "Paused", message: `${counts}; spec.paused is true, and aim does not hold it` }
  if (strategy.type === "OnDelete" && updatedIn(status) < replicas)
    return {
      state: "Paused",
      reason: "OnDelete",
      message: `${counts}; its update strategy is OnDelete: pods that are deleted come back with the change`,
    }
  const released = own ?? (isWithoutImages(workload) ? note : undefined)
  if (released && released.reason !== "Completed")
    return { state: "InProgress", reason: released.reason, message: `${released.message}; rolling update: ${counts}` }
  return { state: "InProgress", reason: "RollingUpdate", message: counts }
}

function complete(workload: WorkloadFacts): Verdict {
  const { kind, strategy, note, replicas, status } = workload
  const partition = strategy.rollingUpdate?.partition ?? 0
  if (kind === "StatefulSet" && partition > 0 && updatedIn(status) < replicas)
    return {
      state: "Complete",
      reason: "Partitioned",
      message: `${countsOf(workload)}; its own partition keeps the first ${partition}`,
    }
  if (isAbout(workload) && note!.reason === "Completed")
    return { state: "Complete", reason: note!.reason, message: note!.message }
  const runs = replicas === 1 ? "1 pod runs the present template" : `${replicas} pods run the present template`
  // It was given to its own controller: that is how the pods came there, and no longer what they wait for.
  const by = isAbout(workload) ? `; it was a rolling update, ${note!.reason}: ${note!.message}` : ""
  return { state: "Complete", reason: "RolledOut", message: `${runs}${by}` }
}

const updatedIn = ({ updatedReplicas, updatedNumberScheduled }: WorkloadFacts["status"]): number =>
  updatedReplicas ?? updatedNumberScheduled ?? 0

const countsOf = ({ status, replicas }: WorkloadFacts) =>
  `${updatedIn(status)} of ${counted(replicas, "pod")} updated, ${status.availableReplicas ?? status.numberAvailable ?? 0} available`
