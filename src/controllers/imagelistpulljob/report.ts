import {
  type Condition,
  type ImageListPullJob,
  type ImageListPullJobStatus,
  maxFailedImages,
} from "#api/v1alpha1/imagelistpulljob/index.ts"
import { formatInstant, type Instant } from "#lib/instant.ts"
import { clip } from "#lib/text.ts"
import { conditionOf, conditionWriter } from "#runtime/conditions.ts"
import type { Report } from "#runtime/kind-controller.ts"
import type { Done } from "./apply.ts"
import { isOver, type Plan, type Snapshot } from "./plan.ts"

/** The whole status of a list. One that has ended is not reported again. */
export function report(
  { list }: Snapshot,
  plan: Plan,
  done: Done | undefined,
  now: Instant,
): Report<ImageListPullJob["status"]> | undefined {
  if (isOver(list)) return undefined
  const before = list.status
  const refused = done?.refused
  const {
    reason,
    message,
    isReady = false,
    isStuck = false,
  } = refused === undefined ? plan.verdict : { reason: "Refused" as const, message: refused, isStuck: true }
  const write = conditionWriter<Condition>(list.metadata.generation ?? 0, now)
  const said = clip(message, 512)
  const conditions = [
    write(before?.conditions, "Ready", isReady, reason, said),
    isStuck && reason !== "Pulling" && reason !== "Completed" && reason !== "Present"
      ? write(before?.conditions, "Stalled", true, reason, said)
      : write(before?.conditions, "Stalled", false, "NothingToDo", ""),
  ]
  const status: ImageListPullJobStatus = {
    observedGeneration: list.metadata.generation ?? 0,
    conditions,
    startTime: before?.startTime ?? formatInstant(now),
    ...(plan.ends && refused === undefined && { completionTime: formatInstant(now) }),
    ...plan.counts,
    failedImageStatuses: plan.failed
      .slice(0, maxFailedImages)
      .map(failed => ({ ...failed, message: clip(failed.message, 256) })),
  }
  const was = conditionOf(before?.conditions, "Ready")
  const isNews = (isReady || isStuck) && was?.reason !== reason
  const type = isReady ? ("Normal" as const) : ("Warning" as const)
  return { status, episodes: isNews ? [{ type, reason, message: said }] : [] }
}
