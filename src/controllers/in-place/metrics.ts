import type { Judged } from "#core/in-place/next.ts"
import type { FailureReason } from "#core/in-place/standing.ts"
import type { Instant } from "#lib/instant.ts"
import type { MetricFactory } from "#runtime/metrics.ts"
import { nameOf } from "#runtime/resource.ts"
import { earliestOf, seriesOf, sumsOf } from "#runtime/series.ts"
import type { Plan, Reason, Snapshot } from "./plan.ts"

/**
 * Every metric of updates in place, without the prefix `aim_`. Workloads are many, so none has a series: they are counted
 * by namespace, kind and reason.
 */
export const inPlaceMetrics = {
  in_place_held: {
    type: "gauge",
    unit: "workloads",
    labels: ["namespace", "kind", "reason"],
    help: "Workloads that are held for an update in place, by what it does or waits for. Standing: held between two updates. Lent: such a hold stands again after the rolling update of its own controller.",
  },
  in_place_oldest_held_timestamp_seconds: {
    type: "gauge",
    unit: "unix seconds",
    labels: ["namespace", "kind"],
    help: "Since when this process has seen the oldest of them held; absent without one. A hold between two updates does not count. A workload that its own partition keeps does not count, and the time for which it was kept is left out.",
  },
  in_place_pods: {
    type: "gauge",
    unit: "pods",
    labels: ["namespace", "kind", "state"],
    help: "Pods of held workloads, by state: Stale, Restarting, Updated, Failed or Reverted.",
  },
  in_place_released_total: {
    type: "counter",
    unit: "workloads",
    labels: ["kind", "reason"],
    help: "Updates that this process saw end, by how they ended: the workload was given back to its own controller, or a standing hold stays for the next one.",
  },
  in_place_pod_updates_total: {
    type: "counter",
    unit: "pods",
    labels: ["kind", "result"],
    help: "Changes of pods that this process saw end: Updated, the reason of the failure, or Reverted where a failed pod went back.",
  },
  in_place_budget_answers_total: {
    type: "counter",
    unit: "answers",
    labels: ["kind", "answer"],
    help: "Dry-run evictions before a pod is touched: Allowed, or Refused where a PodDisruptionBudget has no room.",
  },
  in_place_pod_step_seconds: {
    type: "histogram",
    unit: "seconds",
    labels: ["kind", "step"],
    help: "How long a step of a pod takes: Drain from the readiness gate to the new image, Restart from the new image to the proof that it runs.",
  },
} as const

export type InPlaceMetrics = {
  /** Call after each look. `refusal`: why the server refuses our writes, if it does. */
  looked(key: string, seen: Snapshot, plan: Plan, refusal: string | undefined): void
  /** Call with each answer to the last question before a pod is touched. */
  askedBudget(isAllowed: boolean): void
  /** The workload is gone, or no longer marked. */
  forget(key: string): void
}

/** What the last look has found of a pod that was not updated from the beginning. `end`: the last end that was counted. */
type PodBefore = {
  readonly drainedSince: Instant | undefined
  readonly changedAt: Instant | undefined
  readonly end: string | undefined
}
/** `keptSince`: its partition keeps it. */
type Known = { since: Instant; keptSince?: Instant | undefined; pods: ReadonlyMap<string, PodBefore> }

/** One series for all workloads together. */
const all = ""

/** What surrounds the workload is not known yet. */
const notListed = "NotListed"

/** Whether a workload stays held for this reason. An annotation may hold any text, and only these become labels. */
const reasons: Readonly<Record<Reason, "held" | "released" | "both">> = {
  Updating: "held",
  Pulling: "held",
  ImageUnavailable: "held",
  BudgetSpent: "held",
  Forbidden: "held",
  Refused: "held",
  Partitioned: "held",
  NodeNotReady: "held",
  PodNotReady: "held",
  UpdateFailed: "held",
  Fencing: "held",
  InvalidAnnotation: "held",
  NotInPlace: "both",
  NoBudget: "both",
  FellBackToRollingUpdate: "both",
  Completed: "released",
  RolledBack: "released",
  OptedOut: "released",
}
const results: readonly (FailureReason | "Updated" | "Reverted")[] = [
  "Updated",
  "Reverted",
  "CrashLoop",
  "ImagePullFailed",
  "ContainerFailed",
  "ImageDiffers",
  "Timeout",
]
const states: readonly Judged["standing"]["is"][] = ["Stale", "Restarting", "Updated", "Failed", "Reverted"]

/** From a container that restarts at once to one that is drained and loads for an hour. */
const buckets = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600]

export function createInPlaceMetrics(factory: MetricFactory | undefined, kind: string): InPlaceMetrics {
  const { in_place_held, in_place_oldest_held_timestamp_seconds, in_place_pods, ...others } = inPlaceMetrics
  const { in_place_pod_step_seconds: step, ...counters } = others
  const sums = sumsOf(factory, { in_place_held, in_place_pods })
  const oldest = earliestOf(factory, { in_place_oldest_held_timestamp_seconds }, { kind })
  const series = seriesOf(factory, counters)
  const steps = factory?.histogram({ name: "in_place_pod_step_seconds", ...step, buckets })
  const known = new Map<string, Known>()
  // A rate needs a first zero.
  for (const [reason, where] of Object.entries(reasons))
    if (where !== "held") series.add(all, "in_place_released_total", { kind, reason }, 0)
  for (const result of results) series.add(all, "in_place_pod_updates_total", { kind, result }, 0)
  for (const answer of ["Allowed", "Refused"]) series.add(all, "in_place_budget_answers_total", { kind, answer }, 0)

  function forget(key: string): void {
    known.delete(key)
    sums.forget(key)
    oldest.forget(key)
  }

  return {
    looked(key, seen, plan, refusal) {
      const { workload, now } = seen
      const before = known.get(key)
      if (!seen.isListed) {
        // A list that never ends, for example for want of a right, must not look like a workload that is not held.
        if (!before && workload.hold) showUnlisted(key, now)
        return
      }
      if (!workload.hold) {
        if (before) series.add(all, "in_place_released_total", { kind, reason: labelOf(workload.note?.reason) })
        return forget(key)
      }
      const { namespace = "" } = nameOf(key)
      if (plan.rest) {
        if (before) series.add(all, "in_place_released_total", { kind, reason: labelOf(workload.note?.reason) })
        forget(key)
        sums.publish(key, [{ metric: "in_place_held", labels: { namespace, kind, reason: plan.rest }, value: 1 }])
        return
      }
      const mine: Known = before ?? { since: now, pods: new Map() }
      known.set(key, mine)
      const reason = refusal ?? reasonOf(seen, plan)
      if (reason === "Partitioned") {
        mine.keptSince ??= now
        oldest.forget(key)
      } else {
        mine.since += now - (mine.keptSince ?? now)
        mine.keptSince = undefined
        oldest.set(key, mine.since)
      }
      const judged = plan.judged ?? []
      if (plan.judged) mine.pods = compared(mine.pods, judged, changedIn(plan), now)
      const counts = new Map(states.map(state => [state, 0]))
      for (const { standing } of judged) counts.set(standing.is, counts.get(standing.is)! + 1)
      sums.publish(key, [
        { metric: "in_place_held", labels: { namespace, kind, reason }, value: 1 },
        ...[...counts].map(
          ([state, value]) => ({ metric: "in_place_pods", labels: { namespace, kind, state }, value }) as const,
        ),
      ])
    },
    askedBudget: isAllowed =>
      series.add(all, "in_place_budget_answers_total", { kind, answer: isAllowed ? "Allowed" : "Refused" }),
    forget,
  }

  function showUnlisted(key: string, now: Instant): void {
    const { namespace = "" } = nameOf(key)
    known.set(key, { since: now, pods: new Map() })
    oldest.set(key, now)
    sums.publish(key, [{ metric: "in_place_held", labels: { namespace, kind, reason: notListed }, value: 1 }])
  }

  /** Counts what has changed since the look before, and returns what the next one compares with. */
  function compared(before: Known["pods"], judged: readonly Judged[], changed: ReadonlySet<string>, now: Instant) {
    const after = new Map<string, PodBefore>()
    for (const { pod, standing } of judged) {
      const was = before.get(pod.uid)
      const { mark, gate } = pod
      const drainedSince = gate?.isDrained ? (was?.drainedSince ?? now) : undefined
      const isChanged = changed.has(pod.uid)
      if (isChanged && drainedSince !== undefined) steps?.observe({ kind, step: "Drain" }, (now - drainedSince) / 1000)
      const changedAt = isChanged ? now : was?.changedAt
      const result = standing.is === "Failed" ? standing.reason : standing.is
      const hasEnded = was !== undefined && result !== "Stale" && result !== "Restarting"
      // A pod whose gate has just opened is not Ready for a moment: the same change ends once.
      const end = hasEnded ? `${mark?.at} ${result}` : was?.end
      if (was || standing.is !== "Updated") after.set(pod.uid, podBefore(drainedSince, changedAt, end))
      if (!hasEnded || end === was.end) continue
      series.add(all, "in_place_pod_updates_total", { kind, result })
      // The mark of a change by another process says when, in whole seconds.
      if (result === "Updated" && mark && Object.keys(mark.to).length > 0)
        steps?.observe({ kind, step: "Restart" }, (now - (changedAt ?? mark.at)) / 1000)
    }
    return after
  }
}

/** Most pods wait for their turn, and have nothing to remember. */
const untouched: PodBefore = { drainedSince: undefined, changedAt: undefined, end: undefined }

const podBefore = (drainedSince: Instant | undefined, changedAt: Instant | undefined, end: string | undefined) =>
  drainedSince === undefined && changedAt === undefined && end === undefined
    ? untouched
    : { drainedSince, changedAt, end }

/** Pods that this look has given their images. */
const changedIn = ({ actions }: Plan): ReadonlySet<string> =>
  new Set(actions.flatMap(each => (each.do === "pod" && each.write.do === "patch" ? [each.write.pod.uid] : [])))

/** The newest that is written, or was written with this look. A release ends the hold: its reason is another series'. */
function reasonOf({ workload }: Snapshot, { actions }: Plan): string {
  const written = actions.flatMap(action => (action.do === "note" ? [action.note.reason] : [])).at(-1)
  return labelOf(written ?? workload.note?.reason ?? "Updating")
}

const labelOf = (reason = "") => (Object.hasOwn(reasons, reason) ? reason : "Other")
