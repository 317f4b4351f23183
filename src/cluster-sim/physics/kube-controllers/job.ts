import { formatInstant, type Instant, parseInstant } from "#lib/instant.ts"
import { selects } from "#lib/label-selector.ts"
import type { Json, Obj } from "../../object.ts"
import { StatusError } from "../../status-error.ts"
import { createRecorder, type Recorder } from "../recorder.ts"
import type { Part, PhysicsWorld } from "../world.ts"
import { type Condition, findCondition, isFinished } from "./conditions.ts"
import { positive } from "./counts.ts"
import { keyOf, loop, nameOf, servedKind } from "./loop.ts"
import { claim, manager, ownedIndex, ownersToWake, tolerateAbsence } from "./owned.ts"
import { byDeletionOrder, controllerOf, isActive, isReady, isTerminating, podFromTemplate } from "./pods.ts"
import { isNamespaceTerminating } from "./refusals.ts"
import { same } from "./same.ts"

const finalizer = "batch.kubernetes.io/job-tracking"
const indexKey = "batch.kubernetes.io/job-completion-index"
const gatherMs = 1000 // many pods of a job finish at about the same time
const backoffMsFirst = 10_000
const backoffMsMax = 600_000
const burst = 500

/** Failures since the last success, and the time of the last one. Each failure lengthens the wait for the next pod. */
export type Backoff = { failures: number; lastAt?: Instant }

export type Snapshot = { job: Obj; pods: readonly Obj[]; backoff: Backoff; now: Instant }

export type Plan = {
  create: (number | undefined)[] // completion indexes; undefined for jobs without indexes
  remove: Obj[]
  /** The removed pods do not count as failed: the job is suspended, or has too many pods. */
  removeUncounted: boolean
  startTime?: string
  /** Why the job ends. It is written at once; the final condition follows when the pods are gone. */
  ending?: Condition
  suspended?: boolean // set if it changed
  counted: { succeeded: Obj[]; failed: Obj[] } // newly finished pods
  backoff: Backoff
  lookAgainInMs?: number
}

/** Decides the next step of one job that has not finished. */
function plan({ job, pods, backoff: before, now }: Snapshot): Plan {
  const { spec, status = {} } = job
  const isSuspended = spec.suspend === true
  const active = pods.filter(isActive)
  const uncounted = (pod: Obj) => hasFinalizer(pod) && isWithin(job, pod)
  const succeeded = pods.filter(pod => uncounted(pod) && pod.status?.phase === "Succeeded")
  const failed = pods.filter(pod => uncounted(pod) && isFailed(job, pod))
  const backoff = nextBackoff(before, succeeded, failed)
  const startTime = status.startTime ?? (isSuspended ? undefined : formatInstant(now))
  const next: Plan = {
    create: [],
    remove: [],
    removeUncounted: false,
    counted: { succeeded, failed },
    backoff,
    ...(startTime !== undefined && { startTime }),
  }

  const total = isIndexed(job)
    ? indexesOf(status.completedIndexes, succeeded).length
    : (status.succeeded ?? 0) + succeeded.length
  const ending = endingOf(job, pods, (status.failed ?? 0) + failed.length, startTime, now)
  if (ending) return { ...next, ending, remove: active }
  const deadline = spec.activeDeadlineSeconds
  if (deadline !== undefined && !isSuspended)
    next.lookAgainInMs = (parseInstant(startTime) ?? now) + deadline * 1000 - now

  if (job.metadata.deletionTimestamp) return next
  manage(next, { job, pods, active, total, now })
  const left = active.length - next.remove.length + next.create.length
  const isComplete = left === 0 && (spec.completions === undefined ? total > 0 : total >= spec.completions)
  if (isComplete) {
    const message = "Reached expected number of succeeded pods"
    return { ...next, ending: condition(now, "SuccessCriteriaMet", "CompletionsReached", message) }
  }
  const wasSuspended = findCondition(status.conditions, "Suspended")?.status
  if (isSuspended && wasSuspended !== "True") next.suspended = true
  if (!isSuspended && wasSuspended === "True") next.suspended = false
  return next
}

type Scene = { job: Obj; pods: readonly Obj[]; active: Obj[]; total: number; now: Instant }

/** Compares the desired number of pods with the active ones, and plans creates and deletes. */
function manage(next: Plan, { job, pods, active, total, now }: Scene) {
  const { completions, parallelism, suspend } = job.spec
  const wanted = suspend
    ? 0
    : completions === undefined
      ? total > 0
        ? active.length
        : parallelism
      : Math.max(0, Math.min(parallelism, completions - total))
  const surplus = active.length - wanted
  if (surplus > 0) {
    next.remove = [...active].sort(byDeletionOrder([], now)).slice(0, surplus)
    next.removeUncounted = true
    return
  }
  const ending = replacesFailedOnly(job) ? pods.filter(isTerminating).length : 0
  const missing = Math.min(burst, wanted - ending - active.length)
  if (missing <= 0 || suspend) return
  const wait = backoffLeftMs(next.backoff, now)
  if (wait > 0) {
    next.lookAgainInMs = Math.min(next.lookAgainInMs ?? wait, Math.max(gatherMs, wait))
    return
  }
  next.create = isIndexed(job)
    ? freeIndexes(job, active, next.counted.succeeded, missing)
    : Array.from({ length: missing }, () => undefined)
}

function endingOf(
  job: Obj,
  pods: readonly Obj[],
  failures: number,
  startTime: string | undefined,
  now: Instant,
): Condition | undefined {
  const { conditions } = job.status ?? {}
  const known = findCondition(conditions, "SuccessCriteriaMet") ?? findCondition(conditions, "FailureTarget")
  if (known?.status === "True") return known
  const { backoffLimit, activeDeadlineSeconds: deadline, suspend } = job.spec
  if (failures > backoffLimit || hasRestartedTooOften(job, pods))
    return condition(now, "FailureTarget", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
  const started = parseInstant(startTime)
  if (deadline !== undefined && !suspend && started !== undefined && now - started >= deadline * 1000)
    return condition(now, "FailureTarget", "DeadlineExceeded", "Job was active longer than specified deadline")
  return undefined
}

/** Pods with restartPolicy OnFailure do not end when they fail, so their restarts are counted. */
function hasRestartedTooOften({ spec }: Obj, pods: readonly Obj[]): boolean {
  if (spec.template.spec.restartPolicy !== "OnFailure") return false
  let restarts = 0
  for (const { status = {} } of pods) {
    if (status.phase !== "Running" && status.phase !== "Pending") continue
    for (const container of [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])])
      restarts += container.restartCount ?? 0
  }
  return spec.backoffLimit === 0 ? restarts > 0 : restarts >= spec.backoffLimit
}

function nextBackoff(before: Backoff, succeeded: readonly Obj[], failed: readonly Obj[]): Backoff {
  if (succeeded.length === 0 && failed.length === 0) return before
  const lastSuccess = succeeded.length > 0 ? Math.max(...succeeded.map(finishedAt)) : undefined
  const since = failed.map(finishedAt).filter(at => lastSuccess === undefined || at > lastSuccess)
  const failures = (lastSuccess === undefined ? before.failures : 0) + since.length
  return since.length > 0 ? { failures, lastAt: Math.max(...since) } : { failures }
}

function backoffLeftMs({ failures, lastAt }: Backoff, now: Instant): number {
  if (failures === 0 || lastAt === undefined) return 0
  const wait = Math.min(backoffMsMax, backoffMsFirst * 2 ** Math.min(failures - 1, 20))
  return Math.max(0, lastAt + wait - now)
}

function finishedAt(pod: Obj): Instant {
  const ends = (pod.status?.containerStatuses ?? []).map((status: Json) =>
    parseInstant(status.state?.terminated?.finishedAt),
  )
  if (ends.length > 0 && ends.every((at: Instant | undefined) => at !== undefined)) return Math.max(...ends)
  const ready = findCondition(pod.status?.conditions, "Ready")
  const since = ready?.status === "False" ? parseInstant(ready.lastTransitionTime) : undefined
  if (since !== undefined) return since
  const { deletionTimestamp, deletionGracePeriodSeconds = 0, creationTimestamp } = pod.metadata
  const deleted = parseInstant(deletionTimestamp)
  return deleted !== undefined ? deleted - deletionGracePeriodSeconds * 1000 : (parseInstant(creationTimestamp) ?? 0)
}

const isIndexed = ({ spec }: Obj) => spec.completionMode === "Indexed"
const replacesFailedOnly = ({ spec }: Obj) => spec.podReplacementPolicy === "Failed"
const hasFinalizer = ({ metadata }: Obj) => metadata.finalizers?.includes(finalizer) ?? false

function isFailed(job: Obj, pod: Obj): boolean {
  if (pod.status?.phase === "Failed") return true
  if (replacesFailedOnly(job)) return false
  return pod.metadata.deletionTimestamp !== undefined && pod.status?.phase !== "Succeeded"
}

function isWithin(job: Obj, pod: Obj): boolean {
  if (!isIndexed(job)) return true
  const index = indexOf(pod)
  return index !== undefined && index < job.spec.completions
}

function indexOf({ metadata }: Obj): number | undefined {
  const text = metadata.annotations?.[indexKey]
  return text !== undefined && /^\d+$/.test(text) ? Number(text) : undefined
}

/** The indexes of `0,2-4` and of newly succeeded pods, in order. */
export function indexesOf(text: string | undefined, succeeded: readonly Obj[] = []): number[] {
  const indexes = new Set(succeeded.map(indexOf).filter(index => index !== undefined))
  for (const part of (text ?? "").split(",").filter(Boolean)) {
    const [first = 0, last = first] = part.split("-").map(Number)
    for (let index = first; index <= last; index++) indexes.add(index)
  }
  return [...indexes].sort((a, b) => a - b)
}

/** Three or more in a row are a range. */
export function indexText(indexes: readonly number[]): string {
  const parts: string[] = []
  for (let start = 0; start < indexes.length; ) {
    let end = start
    while (indexes[end + 1] === indexes[end]! + 1) end++
    if (end === start) parts.push(`${indexes[start]}`)
    else parts.push(end === start + 1 ? `${indexes[start]},${indexes[end]}` : `${indexes[start]}-${indexes[end]}`)
    start = end + 1
  }
  return parts.join(",")
}

function freeIndexes(job: Obj, active: readonly Obj[], succeeded: readonly Obj[], count: number): number[] {
  const taken = new Set([...indexesOf(job.status?.completedIndexes, succeeded), ...active.map(indexOf)])
  const free: number[] = []
  for (let index = 0; index < job.spec.completions && free.length < count; index++)
    if (!taken.has(index)) free.push(index)
  return free
}

const condition = (now: Instant, type: string, reason: string, message: string): Condition => ({
  type,
  status: "True",
  lastProbeTime: formatInstant(now),
  lastTransitionTime: formatInstant(now),
  reason,
  message,
})

/** The pod of one completion: its finalizer stays until it is counted. Labels, name and environment have its index. */
function podFor(job: Obj, index: number | undefined): Json {
  const pod = podFromTemplate(job.spec.template, job)
  const finalizers = [...(pod.metadata.finalizers ?? []).filter((each: string) => each !== finalizer), finalizer]
  if (index === undefined) return { ...pod, metadata: { ...pod.metadata, finalizers } }
  const own = { [indexKey]: String(index) }
  const told = {
    name: "JOB_COMPLETION_INDEX",
    valueFrom: { fieldRef: { fieldPath: `metadata.labels['${indexKey}']` } },
  }
  const withIndex = (container: Json) =>
    container.env?.some(({ name }: Json) => name === told.name)
      ? container
      : { ...container, env: [...(container.env ?? []), told] }
  const suffix = `-${index}-`
  return {
    ...pod,
    metadata: {
      ...pod.metadata,
      generateName: `${job.metadata.name.slice(0, 58 - suffix.length)}${suffix}`,
      labels: { ...pod.metadata.labels, ...own },
      annotations: { ...pod.metadata.annotations, ...own },
      finalizers,
    },
    spec: {
      ...pod.spec,
      ...(pod.spec.initContainers && { initContainers: pod.spec.initContainers.map(withIndex) }),
      containers: pod.spec.containers.map(withIndex),
      hostname: `${job.metadata.name}-${index}`,
    },
  }
}

/** Runs pods to completion. Reads Jobs and Pods; writes Pods and the status of Jobs. */
export function jobController(world: PhysicsWorld): Part {
  const { storage, clock } = world
  const jobs = servedKind(storage, "batch/v1", "Job")
  const podKind = servedKind(storage, "v1", "Pod")
  const owned = ownedIndex(storage, "v1", "Pod", "Job")
  const record = createRecorder(world, "job-controller")
  const backoffs = new Map<string, Backoff>()

  const adopters = (pod: Obj) =>
    storage
      .list(jobs, { namespace: pod.metadata.namespace })
      .items.filter(({ spec }) => selects(spec.selector, pod.metadata.labels))

  function free(pod: Obj): Obj | undefined {
    if (!hasFinalizer(pod)) return pod
    const rest = pod.metadata.finalizers?.filter(each => each !== finalizer) ?? []
    const { finalizers: _, ...metadata } = pod.metadata
    const object = { ...pod, metadata: rest.length > 0 ? { ...metadata, finalizers: rest } : metadata }
    return tolerateAbsence(() => storage.update(podKind, object, manager))
  }

  function freeNow(pod: Obj) {
    const current = storage.find(podKind, pod.metadata)
    if (current) free(current)
  }

  function create(job: Obj, indexes: readonly (number | undefined)[]): number {
    let made = 0
    for (const index of indexes) {
      try {
        const pod = storage.create(podKind, podFor(job, index), manager)
        record(job, "Normal", "SuccessfulCreate", `Created pod: ${pod.metadata.name}`)
        made++
      } catch (error) {
        if (!(error instanceof StatusError)) throw error
        if (isNamespaceTerminating(error)) break
        record(job, "Warning", "FailedCreate", `Error creating: ${error.message}`)
        throw Object.assign(error, { made })
      }
    }
    return made
  }

  function remove(job: Obj, pods: readonly Obj[], isUncounted: boolean) {
    for (const pod of pods) {
      const target = isUncounted ? free(pod) : pod
      const removed = target && tolerateAbsence(() => storage.delete(podKind, target.metadata))
      if (removed) record(job, "Normal", "SuccessfulDelete", `Deleted pod: ${pod.metadata.name}`)
    }
  }

  function writeStatus(job: Obj, status: Json): Obj {
    return same(status, job.status)
      ? job
      : storage.update(jobs, { ...job, status }, { ...manager, subresource: "status" })
  }

  /** Removes the finalizer of a pod that no unfinished job will count. */
  function freeOrphan(key: string) {
    const pod = storage.find(podKind, nameOf(key))
    if (!pod || !hasFinalizer(pod)) return
    const owner = controllerOf(pod)
    if (owner && owner.kind !== "Job") return
    const job = owner && storage.find(jobs, { namespace: pod.metadata.namespace, name: owner.name })
    if (job && job.metadata.uid === owner.uid && !isFinished(job)) return
    free(pod)
  }

  function reconcile(key: string): number | undefined {
    if (key.startsWith(orphanKey)) {
      freeOrphan(key.slice(orphanKey.length))
      return undefined
    }
    const job = storage.find(jobs, nameOf(key))
    if (!job) return undefined
    const { uid } = job.metadata
    const isOthers = job.spec.managedBy && job.spec.managedBy !== "kubernetes.io/job-controller"
    if (isFinished(job)) backoffs.delete(uid)
    if (isFinished(job) || isOthers) return undefined

    const pods = claim({ storage, kind: podKind, owner: job, owned }, pod =>
      selects(job.spec.selector, pod.metadata.labels),
    )
    const now = clock.now()
    const next = plan({ job, pods, backoff: backoffs.get(uid) ?? { failures: 0 }, now })
    backoffs.set(uid, next.backoff)

    let trouble: (StatusError & { made?: number }) | undefined
    let made = 0
    remove(job, next.remove, next.removeUncounted)
    try {
      made = create(job, next.create)
    } catch (error) {
      if (!(error instanceof StatusError)) throw error
      trouble = error
      made = trouble.made ?? 0
    }
    if (next.suspended !== undefined) {
      const word = next.suspended ? "suspended" : "resumed"
      record(job, "Normal", next.suspended ? "Suspended" : "Resumed", `Job ${word}`)
    }
    account({ writeStatus, freeNow, record }, { job, pods, next, made, now })
    if (trouble) throw trouble
    return next.lookAgainInMs
  }

  return loop(world, {
    name: "job-controller",
    begin: owned.begin,
    watches: [
      { apiVersion: "batch/v1", kind: "Job", keys: ({ object }) => [keyOf(object)] },
      {
        apiVersion: "v1",
        kind: "Pod",
        delayMs: gatherMs,
        keys: change => ownersToWake(change, "Job", adopters),
      },
      {
        apiVersion: "v1",
        kind: "Pod",
        keys: ({ type, object }) => (type !== "DELETED" && hasFinalizer(object) ? [orphanKey + keyOf(object)] : []),
      },
      {
        // The pods of a deleted or finished job are not counted any more.
        apiVersion: "batch/v1",
        kind: "Job",
        keys: ({ type, object }) =>
          type === "DELETED" || isFinished(object) ? owned.of(object).map(pod => orphanKey + keyOf(pod)) : [],
      },
    ],
    reconcile,
  })
}

const orphanKey = "pod:"

/** The writes of the accounting. */
type JobHands = {
  writeStatus(job: Obj, status: Json): Obj
  /** Removes the finalizer from the current version of a pod. */
  freeNow(pod: Obj): void
  record: Recorder
}

/** Writes the uids of finished pods, then removes their finalizers, then writes the counts: each pod counts once. */
function account(
  { writeStatus, freeNow, record }: JobHands,
  { job, pods, next, made, now }: { job: Obj; pods: readonly Obj[]; next: Plan; made: number; now: Instant },
): void {
  const { ending, counted } = next
  const old = job.status ?? {}
  const active = pods.filter(isActive)
  const removed = next.remove.length
  const ready = active.filter(pod => isReady(pod) && !next.remove.includes(pod)).length
  const isFailing = ending?.type === "FailureTarget"
  const removable = (pod: Obj) =>
    hasFinalizer(pod) &&
    !(next.removeUncounted && next.remove.includes(pod)) &&
    (ending !== undefined ||
      job.metadata.deletionTimestamp !== undefined ||
      pod.status?.phase === "Succeeded" ||
      isFailed(job, pod))
  const toFree = pods.filter(removable)
  const failed = toFree.filter(pod => !counted.succeeded.includes(pod) && (counted.failed.includes(pod) || isFailing))
  const succeeded = toFree.filter(pod => counted.succeeded.includes(pod))

  let conditions: Condition[] = old.conditions ?? []
  if (ending && !findCondition(conditions, ending.type)) conditions = [...conditions, ending]
  let startTime: string | undefined = next.startTime
  if (next.suspended !== undefined) {
    const isSuspended = next.suspended
    const word = isSuspended ? "suspended" : "resumed"
    const changed = {
      ...condition(now, "Suspended", isSuspended ? "JobSuspended" : "JobResumed", `Job ${word}`),
      status: isSuspended ? ("True" as const) : ("False" as const),
    }
    conditions = findCondition(conditions, "Suspended")
      ? conditions.map(each => (each.type === "Suspended" ? changed : each))
      : [...conditions, changed]
    startTime = isSuspended ? undefined : formatInstant(now)
  }
  const terminating = pods.filter(isTerminating).length + removed
  const indexes = isIndexed(job) ? indexText(indexesOf(old.completedIndexes, succeeded)) : undefined
  const status = (numbers: { succeeded: number; failed: number; uncounted: Json; conditions: Condition[] }) => ({
    ...(numbers.conditions.length > 0 && { conditions: numbers.conditions }),
    ...(startTime !== undefined && { startTime }),
    ...(old.completionTime && { completionTime: old.completionTime }),
    ...positive("active", active.length - removed + made),
    ...positive("succeeded", numbers.succeeded),
    ...positive("failed", numbers.failed),
    terminating,
    ...(indexes && { completedIndexes: indexes }),
    uncountedTerminatedPods: numbers.uncounted,
    ready,
  })
  const was = { succeeded: old.succeeded ?? 0, failed: old.failed ?? 0 }
  const done = isIndexed(job) ? indexesOf(indexes).length : was.succeeded
  const uids = (some: readonly Obj[]) => some.map(({ metadata }) => metadata.uid)
  const uncounted = {
    ...(!isIndexed(job) && succeeded.length > 0 && { succeeded: uids(succeeded) }),
    ...(failed.length > 0 && { failed: uids(failed) }),
  }
  const first = writeStatus(job, status({ succeeded: done, failed: was.failed, uncounted, conditions }))
  for (const pod of toFree) freeNow(pod)

  const isOver = ending !== undefined && terminating === 0
  const final: Condition | undefined = isOver
    ? { ...condition(now, isFailing ? "Failed" : "Complete", ending.reason!, ending.message!) }
    : undefined
  const last = writeStatus(first, {
    ...status({
      succeeded: isIndexed(job) ? done : was.succeeded + succeeded.length,
      failed: was.failed + failed.length,
      uncounted: {},
      conditions: final ? [...conditions, final] : conditions,
    }),
    ...(final?.type === "Complete" && { completionTime: final.lastTransitionTime }),
  })
  if (final?.type === "Complete") record(last, "Normal", "Completed", "Job completed")
  if (final?.type === "Failed") record(last, "Warning", final.reason!, final.message!)
}
