import type { ContainerRecreateRequest, ContainerState } from "#api/v1alpha1/containerrecreaterequest/index.ts"
import { limitPrefix } from "#api/v1alpha1/containerrecreaterequest/index.ts"
import { formatInstant, formatMicroInstant, type Instant, parseInstant } from "#lib/instant.ts"

/** A container as the runtime shows it. */
export type Found =
  | { is: "Running" }
  /** It has ended, or no container has its ID any more. */
  | { is: "Ended" }
  /** It exists, and does not belong to the pod of the request. */
  | { is: "Foreign" }

/** A stop that this process has begun. */
export type StopState = { is: "UnderWay" } | { is: "Failed"; message: string }

export type Snapshot = {
  request: ContainerRecreateRequest
  /** The name of this node. */
  node: string
  found(container: string): Found | undefined
  stop(container: string): StopState | undefined
  /** From when on one more container may be stopped on this node. */
  limit: { perMinute: number; freeAt: Instant }
  now: Instant
}

/** Stops one container, the recorded one, with what is left of its grace period. */
export type Stop = { container: string; containerID: string; since: Instant }

export type Plan = {
  /** Written before anything is stopped, on condition that the request is as it was read. */
  states: readonly ContainerState[]
  stop?: Stop | undefined
  lookAgainAt?: Instant | undefined
}

/**
 * Decides what the agent of one node does for one request. For one request and container only one container ID is ever
 * stopped, the recorded one: the next container is not stopped before the stop of this one has ended, or, with
 * orderedRecreate, before it is ready again.
 */
export function plan(seen: Snapshot): Plan {
  const { request, node } = seen
  const states = request.status?.containerRecreateStates ?? []
  if (request.status?.phase !== "Recreating" || request.status.nodeName !== node) return { states }
  const { failurePolicy, orderedRecreate } = request.spec.strategy
  const next = [...states]
  for (const [index, state] of states.entries()) {
    const step = stepOf(state, seen)
    next[index] = step.state
    if (step.is === "Stop") return { states: next, stop: step.stop }
    if (step.is === "Wait") return { states: next, lookAgainAt: step.until }
    if (step.state.phase === "Failed" && failurePolicy === "Fail") return { states: next }
    if (step.state.phase !== "Succeeded" && step.state.phase !== "Failed" && orderedRecreate) return { states: next }
  }
  return { states: next }
}

type Step = { state: ContainerState } & (
  | { is: "Next" }
  | { is: "Wait"; until?: Instant | undefined }
  | { is: "Stop"; stop: Stop }
)

function stepOf(state: ContainerState, seen: Snapshot): Step {
  const { name, phase, containerID } = state
  if (phase === "Succeeded" || phase === "Failed") return { is: "Next", state }
  const found = seen.found(name)
  if (found?.is === "Foreign")
    return {
      is: "Next",
      state: { ...state, phase: "Failed", message: `${containerID} is not a container of this pod` },
    }
  return phase === "Pending" ? begin(state, found, seen) : goOn(state, found, seen)
}

/** Not stopped yet. The beginning of a stop is written first, so that the next process knows of it. */
function begin(state: ContainerState, found: Found | undefined, { request, limit, now }: Snapshot): Step {
  const { message: _, ...silent } = state
  if (found?.is !== "Running") {
    // A forced request is for the next container: the manager records its ID.
    if (request.spec.strategy.forceRecreate)
      return { is: "Next", state: { ...state, message: "it does not run; waits for its next start" } }
    return { is: "Next", state: { ...silent, phase: "Recreating", isKilled: false } }
  }
  if (now < limit.freeAt) {
    const message = `${limitPrefix} of ${limit.perMinute} stops a minute on this node until ${formatInstant(limit.freeAt)}`
    return { is: "Wait", state: { ...state, message }, until: limit.freeAt }
  }
  const stop = { container: state.name, containerID: state.containerID, since: now }
  return { is: "Stop", state: { ...silent, phase: "Recreating", stopTime: formatMicroInstant(now) }, stop }
}

/** The beginning of its stop is written. A container that still runs is stopped again: the last caller has died. */
function goOn(state: ContainerState, found: Found | undefined, { stop, now }: Snapshot): Step {
  const { name, containerID } = state
  if (state.stopTime === undefined) return { is: "Next", state }
  const begun = stop(name)
  if (begun?.is === "UnderWay") return { is: "Wait", state }
  if (begun?.is === "Failed") return { is: "Next", state: { ...state, phase: "Failed", message: begun.message } }
  // Its end is not written: the kubelet reports the new container, and the manager judges by that.
  if (found?.is !== "Running") return { is: "Next", state }
  return { is: "Stop", state, stop: { container: name, containerID, since: parseInstant(state.stopTime) ?? now } }
}
