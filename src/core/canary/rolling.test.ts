import { expect, test } from "vitest"
import type { Phase, Reason } from "#api/v1alpha1/canary/index.ts"
import { rollingOf } from "./rolling.ts"
import { canaryOf } from "./test-canary.ts"

test.each<[Phase, { weight?: number; next?: number; reason?: Reason } | undefined, string, number | undefined]>([
  ["Initializing", undefined, "initializing", undefined],
  ["Waiting", {}, "verifyingSpec", 0],
  ["Progressing", {}, "rollingInBatches", 0],
  ["Progressing", { next: 25 }, "rollingInBatches", 0],
  ["Progressing", { weight: 25 }, "rollingInBatches", 0],
  ["Progressing", { weight: 25, next: 50 }, "rollingInBatches", 1],
  ["WaitingPromotion", { weight: 50 }, "rollingInBatches", 1],
  ["Promoting", { weight: 50 }, "rollingInBatches", 2],
  ["Finalising", { weight: 100 }, "finalising", 2],
  ["Succeeded", undefined, "rolloutSucceed", undefined],
  ["Failed", { weight: 25, reason: "AnalysisFailed" }, "rolloutFailing", 0],
  ["Failed", undefined, "rolloutFailed", undefined],
  ["Progressing", { weight: 50, reason: "Restarted" }, "rolloutAbandoning", 1],
  ["Terminating", { reason: "Deleted" }, "rolloutDeleting", 0],
])("%s %o is %s, batch %s", (phase, run, rollingState, currentBatch) => {
  const spec = { provider: "oam" as const, analysis: { interval: "1m", threshold: 1, stepWeights: [25, 50] } }
  const { weight = 0, next, reason = "Measuring" } = run ?? {}
  const recorded = run && { weight, reason, ...(next !== undefined && { next: { weight: next, mirrored: false } }) }
  expect(rollingOf(canaryOf(spec), phase, recorded as never)).toEqual({
    rollingState,
    ...(currentBatch !== undefined && { currentBatch }),
  })
})

test("a Canary that is no trait of OAM has neither", () => {
  expect(rollingOf(canaryOf({}), "Succeeded", undefined)).toEqual({})
})
