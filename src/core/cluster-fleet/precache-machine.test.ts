import { describe, expect, test } from "vitest"
import { type PrecacheState, precacheStates } from "#api/v1alpha1/clusterupgrade/index.ts"
import {
  isFinal,
  type PrecacheObservation,
  precacheMachine,
  precacheObservations,
  precacheStep,
} from "./precache-machine.ts"

const states = Object.keys(precacheStates) as PrecacheState[]
const observations = Object.keys(precacheObservations) as PrecacheObservation[]

/** The picture of the original, written down once more: from, observation → to, number. */
const drawn: Record<string, string> = {
  ...Object.fromEntries(observations.map(each => [`NotStarted ${each}`, "PreparingToStart 2"])),
  "PreparingToStart NoNsFoundOnSpoke": "Starting 3",
  "Starting JobActive": "Active 4",
  "Active JobActive": "Active 5",
  "Active JobSucceeded": "Succeeded 6",
  "Starting JobSucceeded": "Succeeded 7",
  "Active JobDeadline": "PrecacheTimeout 8",
  "Active JobBackoffLimitExceeded": "UnrecoverableError 9",
  "Starting JobBackoffLimitExceeded": "UnrecoverableError 10",
  "Starting JobDeadline": "PrecacheTimeout 11",
}
const delivered = ["DependenciesViewNotPresent", "DependenciesNotPresent", "NoJobView", "NoJobFoundOnSpoke"]

describe("every state with every observation", () => {
  for (const state of states)
    for (const observation of observations)
      test(`${state}, ${observation}`, () => {
        const { to, transition, does } = precacheStep(state, observation)
        const arrow = drawn[`${state} ${observation}`]
        expect(transition === undefined ? undefined : `${to} ${transition}`).toBe(arrow)
        if (!arrow) expect(to).toBe(state)
        const isDelivered = state === "Starting" && delivered.includes(observation)
        expect(does).toBe(state === "NotStarted" ? "CleanUp" : isDelivered ? "Deliver" : undefined)
      })
})

test("no observation changes no state", () => {
  for (const state of states) expect(precacheStep(state, undefined)).toEqual({ to: state })
})

test("final states list nothing", () => {
  for (const state of states) expect(Object.keys(precacheMachine[state]).length === 0).toBe(isFinal(state))
})
