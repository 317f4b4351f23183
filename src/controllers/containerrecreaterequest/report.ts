import {
  type Condition,
  type ConditionType,
  type ContainerRecreateRequest,
  type ContainerRecreateRequestStatus,
  containerMessageMax,
  type Reason,
  stuck,
} from "#api/v1alpha1/containerrecreaterequest/index.ts"
import { formatInstant, formatMicroInstant, type Instant } from "#lib/instant.ts"
import { clip } from "#lib/text.ts"
import { conditionWriter } from "#runtime/conditions.ts"
import type { Report } from "#runtime/kind-controller.ts"
import type { Episode } from "#runtime/status.ts"
import { type Plan, type Snapshot, snapshotOf } from "./plan.ts"

/** The status that a plan stands for, and an event once the request is complete or needs a person. */
export function report(
  { request, pod }: Snapshot,
  plan: Plan,
  _: unknown,
  now: Instant,
): Report<ContainerRecreateRequest["status"]> {
  const { status: before } = request
  // A complete request never changes again, whatever becomes of its pod.
  if (before?.phase === "Completed") return { status: before }
  const status = statusOf(request, plan, pod, now)
  return { status, episodes: episodesOf(before, plan) }
}

function statusOf(
  { metadata: { generation = 0 }, status: before }: ContainerRecreateRequest,
  plan: Plan,
  pod: Snapshot["pod"],
  now: Instant,
): ContainerRecreateRequestStatus {
  const { phase, podUID, startedAt, handedOver, states, reason } = plan
  const message = clip(plan.message, 512)
  const write = conditionWriter<Condition>(generation, now)
  const condition = (...[type, isTrue, why, text]: [ConditionType, boolean, Reason, string]) =>
    write(before?.conditions, type, isTrue, why, text)
  const isStalled = needsPerson.has(reason)
  return {
    observedGeneration: generation,
    phase,
    ...(handedOver && { nodeName: handedOver.node, handOverTime: formatMicroInstant(handedOver.at) }),
    ...(podUID !== undefined && { podUID }),
    startTime: formatMicroInstant(startedAt),
    ...(phase === "Completed" && { completionTime: formatInstant(now) }),
    message,
    containerRecreateStates: states.map(state =>
      state.message === undefined ? state : { ...state, message: clip(state.message, containerMessageMax) },
    ),
    containerStatusSnapshot: snapshotOf(plan, pod),
    conditions: [
      condition("Ready", reason === "Succeeded", reason, message),
      condition("Stalled", isStalled, isStalled ? reason : "NothingToDo", isStalled ? message : ""),
    ],
  }
}

const needsPerson = new Set<Reason>(stuck)

function episodesOf(before: ContainerRecreateRequestStatus | undefined, { reason, message }: Plan): Episode[] {
  const isNews = before?.conditions.find(({ type }) => type === "Ready")?.reason !== reason
  if (!isNews) return []
  if (reason === "Succeeded") return [{ type: "Normal", reason, message }]
  return needsPerson.has(reason) ? [{ type: "Warning", reason, message }] : []
}
