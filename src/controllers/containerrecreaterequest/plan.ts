import {
  type ContainerRecreateRequest,
  type ContainerRecreateRequestSpec,
  type ContainerSnapshot,
  type ContainerState,
  limitPrefix,
  type Phase,
  type Reason,
} from "#api/v1alpha1/containerrecreaterequest/index.ts"
import { readinessGate } from "#api/v1alpha1/readiness-gate.ts"
import { earliest, formatInstant, type Instant, parseInstant } from "#lib/instant.ts"
import { counted } from "#lib/text.ts"
import type { ContainerFacts, PodFacts } from "./pod.ts"
import { refusalOf } from "./refusal.ts"

export type Snapshot = {
  request: ContainerRecreateRequest
  /** The pod of that name, as it is now. */
  pod: PodFacts | undefined
  /** The request for the same pod that comes first. */
  ahead: string | undefined
  /** Since when a container, by its ID, has been seen running by this process. */
  runningSince(containerId: string): Instant | undefined
  /** Why the pod cannot be set to not ready. */
  gateRefusal: { reason: "Forbidden" | "Refused"; message: string } | undefined
  now: Instant
}

export type Plan = {
  phase: Phase
  reason: Reason
  message: string
  podUID?: string | undefined
  startedAt: Instant
  /** Set once the request is handed over to the agent of this node. */
  handedOver?: { node: string; at: Instant } | undefined
  states: readonly ContainerState[]
  /** Its time to live has passed. */
  isExpired: boolean
  lookAgainAt?: Instant | undefined
}

/** An agent that runs answers within a second; one that is being restarted within a minute. */
export const agentIsQuickMs = 5_000
export const agentAnswersMs = 60_000

/**
 * Decides the next step of one request. The agent stops containers; this part records which, decides when it is their
 * turn, and judges the result by what the kubelet reports.
 *
 *   "" → Pending: recorded, waits for its turn and for the drain → Recreating: the agent's → Completed
 */
export function plan(seen: Snapshot): Plan {
  const { request, pod } = seen
  if (request.status?.phase === "Completed") return completed(seen)
  const refusal = request.status?.phase === undefined ? refusalOf(request.spec, pod) : undefined
  const draft = draftOf(seen)
  if (refusal) return ended(draft, refusal.reason, refusal.message)
  if (!pod || pod.uid !== draft.podUID || pod.isTerminating || pod.hasEnded)
    return ended(draft, "PodGone", `pod ${request.spec.podName} was deleted, replaced or has ended`)
  const progress: Draft = { ...draft, states: draft.states.map(state => progressed(state, pod, seen)) }
  return resultOf(progress, pod, seen) ?? late(progress, seen) ?? waitFor(progress, pod, seen)
}

type Draft = Pick<Plan, "phase" | "podUID" | "startedAt" | "handedOver" | "states">

/** What is known so far. At the first look the containers are recorded: the agent never stops another one. */
function draftOf({ request: { spec, status }, pod, now }: Snapshot): Draft {
  const { phase = "Pending", podUID = pod?.uid, nodeName, containerRecreateStates = [] } = status ?? {}
  const startedAt = parseInstant(status?.startTime) ?? now
  const at = parseInstant(status?.handOverTime)
  const fresh = (name: string): ContainerState => {
    const container = pod?.containers.find(each => each.name === name)
    return { name, phase: "Pending", containerID: container?.id ?? "", restartCount: container?.restartCount ?? 0 }
  }
  return {
    phase,
    podUID,
    startedAt,
    handedOver: nodeName === undefined || at === undefined ? undefined : { node: nodeName, at },
    states: spec.containers.map(({ name }) => containerRecreateStates.find(s => s.name === name) ?? fresh(name)),
  }
}

/** Judges one container by its ID. Clocks of two machines are never compared. */
function progressed(state: ContainerState, pod: PodFacts, { request: { spec }, runningSince, now }: Snapshot) {
  const container = pod.containers.find(({ name }) => name === state.name)
  if (isOver(state) || !container || container.id === "") return state
  const { minStartedSeconds, forceRecreate } = spec.strategy
  if (container.id === state.containerID) return untilStarted(state, container)
  if (forceRecreate && state.phase === "Pending")
    return { ...state, containerID: container.id, restartCount: container.restartCount }
  const since = runningSince(container.id)
  const isStarted = container.state.is === "Running" && container.isReady && since !== undefined
  if (isStarted && now >= since + minStartedSeconds * 1000)
    return without({ ...state, phase: "Succeeded", ...(state.stopTime !== undefined && { isKilled: true }) })
  return withBackOff({ ...state, phase: "Recreating" }, container)
}

/** The recorded container is still the last one. */
function untilStarted(state: ContainerState, container: ContainerFacts): ContainerState {
  if (state.phase !== "Recreating") return state
  const { state: is, restartPolicy } = container
  if (is.is === "Ended" && is.exitCode === 0 && restartPolicy === "OnFailure")
    return { ...state, phase: "Failed", message: endedForGood }
  return withBackOff(state, container)
}

const endedForGood =
  "it ended with exit code 0, and restartPolicy OnFailure starts a container again only after a failure"

function withBackOff(state: ContainerState, { state: is }: ContainerFacts): ContainerState {
  if (is.is !== "BackOff") return isBackOff(state) ? without(state) : state
  const until = is.until === undefined ? "" : ` until ${formatInstant(is.until)} (clock of the node)`
  return { ...state, message: `${backOff}${until}` }
}

const backOff = "the kubelet waits with its start"
const isBackOff = ({ message = "" }: ContainerState) => message.startsWith(backOff)
const without = ({ message: _, ...state }: ContainerState): ContainerState => state
const isOver = ({ phase }: ContainerState) => phase === "Succeeded" || phase === "Failed"

/** The result, once there is one. */
function resultOf(draft: Draft, pod: PodFacts, { request: { spec } }: Snapshot): Plan | undefined {
  const failed = draft.states.filter(({ phase }) => phase === "Failed")
  if (failed.length > 0 && spec.strategy.failurePolicy === "Fail") return failedWith(draft, failed)
  if (!draft.states.every(isOver)) return undefined
  if (failed.length > 0) return failedWith(draft, failed)
  const warning = draft.handedOver ? gateWarning(spec, pod) : ""
  return ended(draft, "Succeeded", `${counted(draft.states.length, "container")} recreated${warning}`)
}

function failedWith(draft: Draft, [first]: readonly ContainerState[]): Plan {
  const { name, message = "failed" } = first!
  const reason = message === endedForGood ? "ContainerEnded" : "StopFailed"
  return ended(draft, reason, `${name}: ${message}`, `${name} failed, and failurePolicy is Fail`)
}

function late(draft: Draft, { request: { spec }, now }: Snapshot): Plan | undefined {
  const at = deadlineOf(draft, spec)
  if (at === undefined || now < at) return undefined
  const open = draft.states.filter(state => !isOver(state)).map(({ name }) => name)
  return ended(draft, "DeadlineExceeded", `not recreated within ${spec.activeDeadlineSeconds} s: ${open.join(", ")}`)
}

const deadlineOf = ({ startedAt }: Draft, { activeDeadlineSeconds }: ContainerRecreateRequestSpec) =>
  activeDeadlineSeconds === undefined ? undefined : startedAt + activeDeadlineSeconds * 1000

/** A plan that waits: for an event, or for the first of the times that matter. */
const waiting =
  (draft: Draft, pod: PodFacts, seen: Snapshot) =>
  (reason: Reason, message: string, until?: Instant): Plan => ({
    ...draft,
    reason,
    message,
    isExpired: false,
    lookAgainAt: earliest(until, deadlineOf(draft, seen.request.spec), nextStart(draft, pod, seen)),
  })

/** Not over: whose turn it is. */
function waitFor(draft: Draft, pod: PodFacts, seen: Snapshot): Plan {
  const { request, ahead, gateRefusal, now } = seen
  if (draft.phase === "Recreating" && draft.handedOver) return underWay(draft, pod, seen)
  const wait = waiting(draft, pod, seen)
  if (ahead !== undefined) return wait("Queued", `waits for request ${ahead}, which is for the same pod`)
  const drain = drainOf(request.spec, pod)
  // Once the pod is shown as not ready, an earlier refusal is over.
  if (drain === Infinity && gateRefusal) return wait(gateRefusal.reason, gateRefusal.message)
  if (drain !== undefined && now < drain)
    return wait("Draining", `pod ${request.spec.podName} is set to not ready`, drain === Infinity ? undefined : drain)
  return underWay({ ...draft, phase: "Recreating", handedOver: { node: pod.node, at: now } }, pod, seen)
}

/** In the hands of the agent. The beginning of a stop changes nothing here, so that it costs no second write. */
function underWay(draft: Draft, pod: PodFacts, seen: Snapshot): Plan {
  const { request, now } = seen
  const { handedOver, states } = draft
  const { node, at } = handedOver!
  const wait = waiting(draft, pod, seen)
  const isPending = states.some(({ phase }) => phase === "Pending")
  const isUnanswered = isPending && !states.some(isAnswer)
  if (isUnanswered && now >= at + agentAnswersMs) {
    const message = `no agent has answered on node ${node} within ${agentAnswersMs / 1000} s; see: aim manifests agent`
    return ended(draft, "AgentMissing", message)
  }
  if (isUnanswered && now >= at + agentIsQuickMs)
    return wait("WaitingForAgent", `the agent of node ${node} has not answered yet`, at + agentAnswersMs)
  const done = states.filter(({ phase }) => phase === "Succeeded").length
  const open = states.filter(state => !isOver(state))
  const slow = open.find(({ message }) => message !== undefined)
  const detail = slow ? `; ${slow.name}: ${slow.message}` : ""
  const message = `${done} of ${counted(states.length, "container")} recreated on node ${node}${detail}${gateWarning(request.spec, pod)}`
  const reason = open.some(isBackOff) ? "WaitingForBackOff" : open.some(isLimited) ? "WaitingForLimit" : "Recreating"
  return wait(reason, message, isUnanswered ? at + agentIsQuickMs : undefined)
}

/** Only the agent writes these: the beginning of a stop, a wait before it, its failure. */
const isAnswer = ({ phase, message, stopTime, isKilled }: ContainerState) =>
  stopTime !== undefined ||
  isKilled !== undefined ||
  phase === "Failed" ||
  (phase === "Pending" && message !== undefined)

const isLimited = ({ phase, message }: ContainerState) => phase === "Pending" && message?.startsWith(limitPrefix)

/** When the first of the new containers has run for long enough. */
function nextStart({ states }: Draft, pod: PodFacts, { request: { spec }, runningSince }: Snapshot) {
  return earliest(
    ...states.map(state => {
      const container = pod.containers.find(({ name }) => name === state.name)
      if (isOver(state) || !container?.isReady || container.id === state.containerID) return undefined
      const since = runningSince(container.id)
      return since === undefined ? undefined : since + spec.strategy.minStartedSeconds * 1000
    }),
  )
}

/** When the drain is over; undefined without one. Infinity: the pod is not shown as not ready yet. */
function drainOf({ strategy }: ContainerRecreateRequestSpec, { gate }: PodFacts): Instant | undefined {
  if (strategy.unreadyGracePeriodSeconds === undefined || !gate) return undefined
  if (gate.is !== "False" || gate.since === undefined) return Infinity
  // The time of the condition is in whole seconds.
  return gate.since + strategy.unreadyGracePeriodSeconds * 1000 + 1000
}

const gateWarning = ({ strategy }: ContainerRecreateRequestSpec, { gate }: PodFacts) =>
  strategy.unreadyGracePeriodSeconds !== undefined && !gate
    ? `; unreadyGracePeriodSeconds has no effect, because the pod lacks the readiness gate ${readinessGate}`
    : ""

/** Complete. What is not finished has failed. */
function ended(draft: Draft, reason: Reason, message: string, why = message): Plan {
  const states = draft.states.map(state =>
    isOver(state) ? state : { ...state, phase: "Failed" as const, message: why },
  )
  return { ...draft, phase: "Completed", states, reason, message, isExpired: false }
}

/** Nothing changes any more; it is deleted when its time to live has passed. */
function completed(seen: Snapshot): Plan {
  const { spec, status } = seen.request
  const at = parseInstant(status?.completionTime)
  const ttl = spec.ttlSecondsAfterFinished
  const expiresAt = at === undefined || ttl === undefined ? undefined : at + ttl * 1000
  const isExpired = expiresAt !== undefined && seen.now >= expiresAt
  const ready = status?.conditions.find(({ type }) => type === "Ready")
  return {
    ...draftOf(seen),
    reason: ready?.reason ?? "Succeeded",
    message: ready?.message ?? "",
    isExpired,
    lookAgainAt: isExpired ? undefined : expiresAt,
  }
}

/** The new containers of a plan. Those that are not ready yet change too often to be written each time. */
export const snapshotOf = ({ states }: Plan, pod: PodFacts | undefined): ContainerSnapshot[] =>
  states
    .filter(({ phase }) => phase === "Succeeded")
    .flatMap(({ name }) => {
      const found = pod?.containers.find(container => container.name === name)
      return found ? [{ name, ready: found.isReady, restartCount: found.restartCount, containerID: found.id }] : []
    })

/** Whether the pod must be shown as not ready for this request. */
export const wantsUnready = ({ spec, status }: ContainerRecreateRequest, ahead: string | undefined): boolean =>
  spec.strategy.unreadyGracePeriodSeconds !== undefined &&
  (status?.phase === "Recreating" || (status?.phase === "Pending" && ahead === undefined))
