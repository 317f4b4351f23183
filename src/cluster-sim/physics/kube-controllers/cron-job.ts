import { nextTime, offsetMs, parseSchedule, type Schedule } from "#lib/cron.ts"
import { formatInstant, type Instant, parseInstant } from "#lib/instant.ts"
import type { Json, Obj } from "../../object.ts"
import { StatusError } from "../../status-error.ts"
import { createRecorder, type EventType } from "../recorder.ts"
import type { Part, PhysicsWorld } from "../world.ts"
import { findCondition, isFinished } from "./conditions.ts"
import { keyOf, loop, nameOf, servedKind } from "./loop.ts"
import { manager, ownedIndex, tolerateAbsence } from "./owned.ts"
import { controllerOf, ownerReference } from "./pods.ts"
import { isNamespaceTerminating } from "./refusals.ts"
import { same } from "./same.ts"

export type Snapshot = { cronJob: Obj; jobs: readonly Obj[]; now: Instant }

export type Plan = {
  events: { type: EventType; reason: string; message: string }[]
  status: Json
  remove: Obj[]
  create?: { at: Instant }
  lookAgainInMs?: number
}

/** A job is started this long after its time, so that the clock has certainly passed it. */
const afterMs = 100

/** Decides which jobs of one CronJob are deleted, and whether a new one is due. */
function plan({ cronJob, jobs, now }: Snapshot): Plan {
  const { spec, metadata } = cronJob
  const next: Plan = { events: [], status: cronJob.status ?? {}, remove: surplus(cronJob, jobs) }
  const say = (type: EventType, reason: string, message: string) => void next.events.push({ type, reason, message })
  let active: Json[] = next.status.active ?? []
  let { lastSuccessfulTime } = next.status
  const isListed = ({ metadata: { uid } }: Obj) => active.some(entry => entry.uid === uid)

  for (const job of jobs) {
    const { name, uid } = job.metadata
    if (!isFinished(job)) {
      if (!isListed(job))
        say("Warning", "UnexpectedJob", `Saw a job that the controller did not create or forgot: ${name}`)
      continue
    }
    const isComplete = findCondition(job.status.conditions, "Complete")?.status === "True"
    if (isListed(job)) {
      active = active.filter(entry => entry.uid !== uid)
      const condition = isComplete ? "Complete" : "Failed"
      say("Normal", "SawCompletedJob", `Saw completed job: ${name}, condition: ${condition}`)
    }
    const { completionTime } = job.status
    if (isComplete && completionTime && (parseInstant(lastSuccessfulTime) ?? 0) < (parseInstant(completionTime) ?? 0))
      lastSuccessfulTime = completionTime
  }
  for (const entry of active)
    if (!jobs.some(job => job.metadata.uid === entry.uid)) {
      active = active.filter(each => each !== entry)
      say("Normal", "MissingJob", `Active job went missing: ${entry.name}`)
    }
  for (const job of next.remove) active = active.filter(entry => entry.uid !== job.metadata.uid)
  const { active: _, lastSuccessfulTime: __, ...rest } = next.status
  const settle = () => {
    next.status = {
      ...(active.length > 0 && { active }),
      ...rest,
      ...(lastSuccessfulTime && { lastSuccessfulTime }),
    }
    return next
  }
  if (metadata.deletionTimestamp) return settle()
  const { timeZone, schedule: text, concurrencyPolicy = "Allow" } = spec
  if (timeZone && !isZone(timeZone)) {
    const message = `invalid timeZone: ${JSON.stringify(timeZone)}: unknown time zone ${timeZone}`
    say("Warning", "UnknownTimeZone", message)
    return settle()
  }
  if (spec.suspend) return settle()
  const schedule = parseSchedule(text)
  if (!schedule) {
    say("Warning", "UnparseableSchedule", `unparseable schedule: ${JSON.stringify(text)}`)
    return settle()
  }

  const { due, isLong } = mostRecent(cronJob, schedule, now)
  const following = nextTime(schedule, due ?? now, timeZone)
  if (following !== undefined) next.lookAgainInMs = Math.max(0, following - now) + afterMs
  if (due === undefined) return settle()
  if (isLong)
    say(
      "Warning",
      "TooManyMissedTimes",
      "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew",
    )
  const deadline = spec.startingDeadlineSeconds
  if (deadline !== undefined && due + deadline * 1000 < now) {
    say("Warning", "MissSchedule", `Missed scheduled time to start a job: ${mailTime(due)}`)
    return settle()
  }
  const isStarted = active.some(entry => entry.name === jobName(cronJob, due))
  if (isStarted || parseInstant(rest.lastScheduleTime) === due) return settle()
  if (concurrencyPolicy === "Forbid" && active.length > 0) {
    const message = "Not starting job because prior execution is running and concurrency policy is Forbid"
    say("Normal", "JobAlreadyActive", message)
    return settle()
  }
  if (concurrencyPolicy === "Replace") {
    next.remove.push(...jobs.filter(isListed))
    active = []
  }
  next.create = { at: due }
  return settle()
}

/** The latest scheduled time that has passed since the last one that was acted on. */
function mostRecent(cronJob: Obj, schedule: Schedule, now: Instant): { due?: Instant; isLong: boolean } {
  const { timeZone, startingDeadlineSeconds: deadline } = cronJob.spec
  const since =
    parseInstant(cronJob.status?.lastScheduleTime) ?? parseInstant(cronJob.metadata.creationTimestamp) ?? now
  const from = deadline === undefined ? since : Math.max(since, now - deadline * 1000)
  const first = nextTime(schedule, from, timeZone)
  if (first === undefined || first > now) return { isLong: false }
  const second = nextTime(schedule, first, timeZone)
  if (second === undefined || second > now) return { due: first, isLong: false }
  const missed = Math.floor((now - first) / (second - first)) + 1
  let due: Instant | undefined
  let time = nextTime(schedule, first + (missed - 2) * (second - first), timeZone)
  while (time !== undefined && time <= now) {
    due = time
    time = nextTime(schedule, time, timeZone)
  }
  return { ...(due !== undefined && { due }), isLong: missed > 100 }
}

/** Finished jobs beyond the history limits, the oldest first. */
function surplus({ spec }: Obj, jobs: readonly Obj[]): Obj[] {
  const over = (type: string, limit: number | undefined) => {
    if (limit === undefined) return []
    const those = jobs.filter(job => findCondition(job.status?.conditions, type)?.status === "True")
    return those.sort(byStart).slice(0, Math.max(0, those.length - limit))
  }
  return [...over("Complete", spec.successfulJobsHistoryLimit), ...over("Failed", spec.failedJobsHistoryLimit)]
}

const byStart = (a: Obj, b: Obj) =>
  (parseInstant(a.status?.startTime) ?? 0) - (parseInstant(b.status?.startTime) ?? 0) ||
  (a.metadata.name < b.metadata.name ? -1 : 1)

function isZone(timeZone: string): boolean {
  try {
    offsetMs(0, timeZone)
    return true
  } catch {
    return false
  }
}

const jobName = ({ metadata }: Obj, at: Instant) => `${metadata.name}-${Math.floor(at / 60_000)}`

/** `Mon, 02 Jan 2006 15:04:05 +0000` */
const mailTime = (at: Instant) => new Date(at).toUTCString().replace("GMT", "+0000")

/** A time in a zone as Go writes it: RFC 3339 with the offset, or `Z`. */
export function zonedTime(at: Instant, timeZone: string | undefined): string {
  const offset = offsetMs(at, timeZone)
  if (offset === 0) return formatInstant(at)
  const minutes = Math.abs(offset) / 60_000
  const two = (value: number) => String(value).padStart(2, "0")
  const zone = `${offset < 0 ? "-" : "+"}${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`
  return formatInstant(at + offset).replace("Z", zone)
}

function jobFor(cronJob: Obj, at: Instant): Json {
  const { jobTemplate, timeZone } = cronJob.spec
  return {
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: {
      name: jobName(cronJob, at),
      namespace: cronJob.metadata.namespace,
      ...(jobTemplate.metadata?.labels && { labels: jobTemplate.metadata.labels }),
      annotations: {
        ...jobTemplate.metadata?.annotations,
        "batch.kubernetes.io/cronjob-scheduled-timestamp": zonedTime(at, timeZone),
      },
      ownerReferences: [ownerReference(cronJob)],
    },
    spec: jobTemplate.spec,
  }
}

/** Starts jobs by their schedule. Reads CronJobs and Jobs; writes Jobs and the status of CronJobs. */
export function cronJobController(world: PhysicsWorld): Part {
  const { storage, clock } = world
  const cronJobs = servedKind(storage, "batch/v1", "CronJob")
  const jobKind = servedKind(storage, "batch/v1", "Job")
  const owned = ownedIndex(storage, "batch/v1", "Job", "CronJob")
  const record = createRecorder(world, "cronjob-controller")

  function create(cronJob: Obj, at: Instant): Json | undefined {
    try {
      const job = storage.create(jobKind, jobFor(cronJob, at), manager)
      const { name, namespace, uid, resourceVersion } = job.metadata
      record(cronJob, "Normal", "SuccessfulCreate", `Created job ${name}`)
      return { kind: "Job", namespace, name, uid, apiVersion: "batch/v1", resourceVersion }
    } catch (error) {
      if (!(error instanceof StatusError)) throw error
      if (error.reason === "AlreadyExists" || isNamespaceTerminating(error)) return undefined
      record(cronJob, "Warning", "FailedCreate", `Error creating job: ${error.message}`)
      throw error
    }
  }

  return loop(world, {
    name: "cronjob-controller",
    begin: owned.begin,
    watches: [
      { apiVersion: "batch/v1", kind: "CronJob", keys: ({ object }) => [keyOf(object)] },
      {
        apiVersion: "batch/v1",
        kind: "Job",
        keys: ({ object }) => {
          const owner = controllerOf(object)
          return owner?.kind === "CronJob" ? [`${object.metadata.namespace}/${owner.name}`] : []
        },
      },
    ],
    reconcile(key) {
      const cronJob = storage.find(cronJobs, nameOf(key))
      if (!cronJob) return undefined
      const next = plan({ cronJob, jobs: owned.of(cronJob), now: clock.now() })
      for (const { type, reason, message } of next.events) record(cronJob, type, reason, message)
      for (const job of next.remove) {
        tolerateAbsence(() => storage.delete(jobKind, job.metadata, { propagationPolicy: "Background" }))
        record(cronJob, "Normal", "SuccessfulDelete", `Deleted job ${job.metadata.name}`)
      }
      const started = next.create && create(cronJob, next.create.at)
      const status = started
        ? {
            ...next.status,
            active: [...(next.status.active ?? []), started],
            lastScheduleTime: formatInstant(next.create!.at),
          }
        : next.status
      if (!same(status, cronJob.status ?? {}))
        storage.update(cronJobs, { ...cronJob, status }, { ...manager, subresource: "status" })
      return next.lookAgainInMs
    },
  })
}
