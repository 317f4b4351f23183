import {
  type Condition,
  type FailedNode,
  type ImagePullJob,
  type ImagePullJobStatus,
  maxFailedNodes,
  type Reason,
} from "#api/v1alpha1/imagepulljob/index.ts"
import { formatInstant, type Instant } from "#lib/instant.ts"
import { isSame } from "#lib/same.ts"
import { clip } from "#lib/text.ts"
import { conditionOf, conditionWriter } from "#runtime/conditions.ts"
import type { Report } from "#runtime/kind-controller.ts"
import type { Episode } from "#runtime/status.ts"
import type { Done } from "./apply.ts"
import { countsDueAt, type Plan, type Snapshot, type Verdict, verdictAfter } from "./plan.ts"

/** The whole status. Undefined where there is nothing to say, or where only counts have changed a moment ago. */
export function report(
  snapshot: Snapshot,
  plan: Plan,
  done: Done | undefined,
  now: Instant,
): Report<ImagePullJob["status"]> | undefined {
  const { job, isListed, isOver, view } = snapshot
  if (!isListed || isOver) return undefined
  const before = job.status
  const started = done?.started ?? 0
  const verdict = verdictAfter(plan, started)
  const { Active = 0, Starting = 0, Succeeded = 0, Failed = 0, desired = 0, failures = [], retries = [] } = view ?? {}
  const status: ImagePullJobStatus = {
    observedGeneration: job.metadata.generation ?? 0,
    conditions: conditionsOf(job, verdict, now),
    startTime: before?.startTime ?? formatInstant(now),
    ...(plan.ends && { completionTime: formatInstant(now) }),
    desired,
    active: plan.ends ? 0 : Active + Starting + started,
    succeeded: Succeeded,
    failed: Failed,
    ...(!plan.ends && view?.transfer && { transfer: view.transfer }),
    failedNodes: [...failures, ...retries].slice(0, maxFailedNodes).map(
      ({ node, reason, message }): FailedNode => ({
        name: node,
        reason: reason as Reason,
        message: clip(message, 256),
      }),
    ),
    message: clip(verdict.message, 512),
    summary: `${Succeeded}/${desired}`,
  }
  if (before && now < countsDueAt(snapshot) && isSame(newsOf(before), newsOf(status))) return undefined
  return { status, episodes: episodesOf(before, status) }
}

function conditionsOf({ metadata, status }: ImagePullJob, verdict: Verdict, now: Instant): Condition[] {
  const write = conditionWriter<Condition>(metadata.generation ?? 0, now)
  const { reason, message, isReady = false, isStuck = false } = verdict
  return [
    write(status?.conditions, "Ready", isReady, reason, clip(message, 512)),
    isStuck
      ? write(status?.conditions, "Stalled", true, reason, clip(message, 512))
      : write(status?.conditions, "Stalled", false, "NothingToDo", ""),
  ]
}

/** What is reported at once; the rest may wait. */
const newsOf = ({ conditions, observedGeneration, completionTime, failedNodes, failed }: ImagePullJobStatus) => ({
  observedGeneration,
  completionTime,
  failed: failedNodes.slice(0, failed).map(({ name, reason }) => ({ name, reason })),
  conditions: conditions.map(({ type, status, reason }) => ({ type, status, reason })),
})

function episodesOf(before: ImagePullJobStatus | undefined, after: ImagePullJobStatus): Episode[] {
  const [was, is] = [conditionOf(before?.conditions, "Stalled"), conditionOf(after.conditions, "Stalled")!]
  if (is.status === "True" && (was?.status !== "True" || was.reason !== is.reason))
    return [{ type: "Warning", reason: is.reason, message: is.message }]
  const ready = conditionOf(after.conditions, "Ready")!
  const isNews = ready.status === "True" && conditionOf(before?.conditions, "Ready")?.status !== "True"
  return isNews ? [{ type: "Normal", reason: ready.reason, message: ready.message }] : []
}
