import { expect, test } from "vitest"
import type { CanarySpecInput } from "#api/v1alpha1/canary/index.ts"
import { findingsOf } from "./findings.ts"
import { partitionHold, planned, planProblem } from "./rollout-plan.ts"
import { targetSizeAt } from "./size-at.ts"
import { canaryOf } from "./test-canary.ts"

type Plan = NonNullable<CanarySpecInput["rolloutPlan"]>
const gatewayRefs = [{ name: "public" }]
const withPlan = (rolloutPlan: Plan, spec: Parameters<typeof canaryOf>[0] = {}) =>
  canaryOf({ provider: "oam", service: { name: "web", gatewayRefs }, rolloutPlan, ...spec })
const batches = (...replicas: (number | string)[]) => replicas.map(each => ({ replicas: each }))

test.each<[string, Plan, number[]]>([
  ["nothing: one batch, which is judged too", {}, [100]],
  ["four of the same size", { numBatches: 4 }, [25, 50, 75, 100]],
  ["three of the same size", { numBatches: 3 }, [33, 66, 100]],
  ["numbers of pods", { rolloutBatches: batches(1, 3, 4) }, [12, 50, 100]],
  ["percentages, where the last counts for nothing", { rolloutBatches: batches("10%", "20%", "5%") }, [10, 30, 100]],
  ["both, of so many pods", { targetSize: 10, rolloutBatches: batches(1, "40%", 5) }, [10, 50, 100]],
  ["batches below one percent are one", { targetSize: 1000, rolloutBatches: batches(1, 2, 997) }, [1, 100]],
  ["a plan that is refused", { rolloutBatches: batches("60%", "60%", "1%") }, [60, 99, 100]],
])("batches become weights: %s", (_, plan, weights) => {
  expect(planned(withPlan(plan)).spec.analysis.stepWeights).toEqual(weights)
})

test("batches of pods are as many pods again", () => {
  for (let full = 1; full <= 100; full++) {
    const canary = planned(withPlan({ rolloutBatches: batches(...Array<number>(full).fill(1)) }))
    const sizes = canary.spec.analysis.stepWeights!.map(weight => targetSizeAt(canary, weight, full))
    expect(sizes).toEqual(Array.from({ length: full }, (_, index) => index + 1))
  }
})

test("metrics, hooks and the pause are those of the Canary", () => {
  const url = "http://tester.default/"
  const { suspend, analysis } = planned(
    withPlan(
      {
        paused: true,
        canaryMetric: [{ name: "errors", interval: "30s", metricsRange: { max: 1 }, templateRef: { name: "errors" } }],
        rolloutWebhooks: [
          { type: "initialize-rollout", name: "a", url },
          { type: "pre-batch-rollout", name: "b", url },
          { type: "post-batch-rollout", name: "c", url },
          { type: "finalize-rollout", name: "d", url, metadata: { team: "shop" } },
        ],
      },
      { analysis: { metrics: [{ name: "request-duration" }] } },
    ),
  ).spec
  expect(suspend).toBe(true)
  expect(analysis.metrics).toMatchObject([
    { name: "request-duration" },
    { name: "errors", interval: "30s", thresholdRange: { max: 1 }, templateRef: { name: "errors" } },
  ])
  expect(analysis.webhooks.map(({ name, type }) => [name, type])).toEqual([
    ["a", "confirm-rollout"],
    ["b", "confirm-traffic-increase"],
    ["c", "rollout"],
    ["d", "post-rollout"],
  ])
})

test.each<[string, Plan, string | undefined]>([
  ["percentages only", { rolloutBatches: batches("10%", "90%") }, undefined],
  ["numbers that come to the size", { targetSize: 4, rolloutBatches: batches(1, 3) }, undefined],
  ["numbers that do not", { targetSize: 5, rolloutBatches: batches(1, 3) }, "they have 4 pods, and rolloutPlan.targetSize is 5"],
  ["both without a size", { rolloutBatches: batches(1, "50%") }, "write it, or percentages only"],
  ["nothing for the last", { rolloutBatches: batches("50%", "50%", "10%") }, "nothing is left for the last batch"],
  ["no pods for the last", { targetSize: 4, rolloutBatches: batches(4, "10%") }, "nothing is left for the last batch"],
])("batches: %s", (_, plan, message) => {
  const canary = withPlan(plan)
  const found = planProblem(canary)
  if (message === undefined) expect(found).toBeUndefined()
  else expect(found?.message).toContain(message)
  expect(findingsOf(canary).some(({ kind, field }) => kind === "Refused" && field === `spec.${found?.field}`)).toBe(
    message !== undefined,
  )
}) // biome-ignore format: a table

test("a batch behind batchPartition waits, and says what to write", () => {
  const canary = planned(withPlan({ numBatches: 4, batchPartition: 1 }))
  expect([25, 50].map(weight => partitionHold(canary, weight))).toEqual([undefined, undefined])
  expect(partitionHold(canary, 75)).toBe(
    "batch 1 is done, and rolloutPlan.batchPartition lets no other begin: write 2 for the next one",
  )
  expect(partitionHold(planned(withPlan({ numBatches: 4 })), 75)).toBeUndefined()
})

test("what has no effect is named", () => {
  const canary = withPlan({
    rolloutStrategy: "DecreaseFirst",
    rolloutBatches: [{ replicas: "50%", podList: ["a"], maxUnavailable: 1, instanceInterval: 3 }, { replicas: "50%" }],
    rolloutWebhooks: [{ type: "finalize-rollout", name: "a", url: "http://a.default/", expectedStatus: [200] }],
    canaryMetric: [{ name: "errors", templateRef: { name: "a" } }],
  })
  const fields = findingsOf(canary).flatMap(({ kind, field }) => (kind === "NoEffect" ? [field] : []))
  expect(fields).toEqual([
    "spec.rolloutPlan.rolloutBatches[0].podList",
    "spec.rolloutPlan.rolloutBatches[0].maxUnavailable",
    "spec.rolloutPlan.rolloutBatches[0].instanceInterval",
    "spec.rolloutPlan.rolloutWebhooks[0].expectedStatus",
    "spec.rolloutPlan.rolloutStrategy",
  ])
  expect(findingsOf(withPlan({ rolloutStrategy: "IncreaseFirst" })).filter(({ kind }) => kind === "NoEffect")).toEqual(
    [],
  )
})

test("what a metric of the plan lacks is found at its own place", () => {
  const service = { name: "web", gatewayRefs: [] }
  const analysis = { metrics: [{ name: "rate", query: "1" }] }
  const canary = withPlan({ canaryMetric: [{ name: "request-duration" }] }, { service, analysis })
  const fields = findingsOf(canary).flatMap(({ kind, field }) => (kind === "Refused" ? [field] : []))
  // A mesh has no built-in metrics.
  expect(fields).toEqual(["spec.rolloutPlan.canaryMetric[0].name"])
})
