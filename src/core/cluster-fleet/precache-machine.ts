import type { PrecacheState } from "#api/v1alpha1/clusterupgrade/index.ts"

/** What one look at a cluster shows of its pre-caching: the conditions of the original. */
export const precacheObservations = {
  NoNsView: "Nothing is known about the namespace yet.",
  NsFoundOnSpoke: "The namespace of an earlier attempt is there.",
  NoNsFoundOnSpoke: "Nothing of an earlier attempt is there.",
  DependenciesViewNotPresent: "Nothing is known about what the job needs.",
  DependenciesNotPresent: "The namespace or the ConfigMap is not there.",
  NoJobView: "Nothing is known about the job.",
  NoJobFoundOnSpoke: "The job is not there.",
  JobActive: "The job is at work.",
  JobSucceeded: "Every node has every image.",
  JobDeadline: "The time of the job is over.",
  JobBackoffLimitExceeded: "The job has failed.",
  UnforeseenCondition: "The job is in a state that is not known.",
} as const satisfies Record<string, string>

export type PrecacheObservation = keyof typeof precacheObservations

/** What is done on the cluster: old objects go, or the objects of this attempt are sent. */
export type PrecacheAction = "CleanUp" | "Deliver"

export type PrecacheStep = {
  to: PrecacheState
  /** The number of the transition in the original's picture; absent where the state stays and nothing is drawn. */
  transition?: number
  does?: PrecacheAction
}

type Row = Partial<Record<PrecacheObservation, PrecacheStep>>

const cleanUp: PrecacheStep = { to: "PreparingToStart", transition: 2, does: "CleanUp" }
const start: PrecacheStep = { to: "Starting", transition: 3 }
const deliver: PrecacheStep = { to: "Starting", does: "Deliver" }
const observations = Object.keys(precacheObservations) as PrecacheObservation[]

/**
 * The state machine of the original, the only one there is: an observation that a state does not list changes nothing.
 * Transition 1 is the way into NotStarted, of a cluster that has no state yet or begins another attempt.
 */
export const precacheMachine: Readonly<Record<PrecacheState, Row>> = {
  // Whatever is seen: the remainders of earlier attempts are removed first.
  NotStarted: Object.fromEntries(observations.map(each => [each, cleanUp])),
  PreparingToStart: { NoNsFoundOnSpoke: start },
  Starting: {
    DependenciesViewNotPresent: deliver,
    DependenciesNotPresent: deliver,
    NoJobView: deliver,
    NoJobFoundOnSpoke: deliver,
    JobActive: { to: "Active", transition: 4 },
    JobSucceeded: { to: "Succeeded", transition: 7 },
    JobBackoffLimitExceeded: { to: "UnrecoverableError", transition: 10 },
    JobDeadline: { to: "PrecacheTimeout", transition: 11 },
  },
  Active: {
    JobActive: { to: "Active", transition: 5 },
    JobSucceeded: { to: "Succeeded", transition: 6 },
    JobDeadline: { to: "PrecacheTimeout", transition: 8 },
    JobBackoffLimitExceeded: { to: "UnrecoverableError", transition: 9 },
  },
  Succeeded: {},
  PrecacheTimeout: {},
  UnrecoverableError: {},
}

/** The next step: where to go, and what to do there. No observation, as after a failure on the way, changes nothing. */
export function precacheStep(state: PrecacheState, observation: PrecacheObservation | undefined): PrecacheStep {
  return (observation && precacheMachine[state][observation]) ?? { to: state }
}

const finals: readonly PrecacheState[] = ["Succeeded", "PrecacheTimeout", "UnrecoverableError"]

/** Final is final for an attempt. */
export const isFinal = (state: PrecacheState) => finals.includes(state)

/** How long each state may last. Beyond it the attempt ends as if its time were over. */
export const stateLimitMs: Readonly<Partial<Record<PrecacheState, number>>> = {
  // A namespace that does not go costs two minutes; the attempt goes on under another name.
  PreparingToStart: 2 * 60_000,
  Starting: 30 * 60_000,
}
