import { expect, test } from "vitest"
import type { Json } from "../../object.ts"
import { autoscalerController } from "./autoscaler.ts"
import { deploymentController } from "./deployment.ts"
import { testWorld } from "./test-world.ts"

const seconds = 1000
const scaler = (spec: Json = {}) => ({
  apiVersion: "autoscaling/v2",
  kind: "HorizontalPodAutoscaler",
  metadata: { name: "web" },
  spec: {
    scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name: "web" },
    minReplicas: 2,
    maxReplicas: 10,
    ...spec,
  },
})

/** A Deployment of this size, and a metric in percent of its target of 80 %. */
function world(replicas: number, { spec = {}, percent = undefined as number | undefined } = {}) {
  const told = testWorld()
  const state = { percent }
  told.start(
    deploymentController(told),
    autoscalerController(told, () => state.percent),
  )
  const labels = { app: "web" }
  const template = { metadata: { labels }, spec: { containers: [{ name: "web", image: "web:1" }] } }
  told.create({
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "web" },
    spec: { replicas, selector: { matchLabels: labels }, template },
  })
  told.create(scaler(spec))
  return {
    ...told,
    state,
    size: () => told.get("Deployment", "web")!.spec.replicas,
    said: () =>
      told
        .get("HorizontalPodAutoscaler", "web")!
        .status.conditions.map(({ type, status, reason }: Json) => `${type} ${status} ${reason}`),
  }
}

test("bounds hold without a metric, fifteen seconds after a change", async () => {
  const { clock, size, said, patch, events } = world(1)
  await clock.advance(14 * seconds)
  expect(size()).toBe(1)
  await clock.advance(10 * seconds)
  expect(size()).toBe(2)
  expect(said()).toEqual(["AbleToScale True SucceededRescale"])
  expect(events("web")).toContain(
    "SuccessfulRescale: New size: 2; reason: Current number of replicas below Spec.MinReplicas",
  )
  patch("Deployment", "web", { spec: { replicas: 12 } })
  await clock.advance(20 * seconds)
  expect(size()).toBe(10)
  await clock.advance(20 * seconds)
  expect(said()).toEqual(["AbleToScale True SucceededGetScale", "ScalingActive False FailedGetResourceMetric"])
})

test("a target of size zero is left alone", async () => {
  const { clock, size, said } = world(0)
  await clock.advance(60 * seconds)
  expect(size()).toBe(0)
  expect(said()).toContain("ScalingActive False ScalingDisabled")
})

test("a metric above its target scales up, at most to twice the size, and down only after five minutes", async () => {
  const { clock, size, state, said } = world(3, { percent: 240 })
  await clock.advance(20 * seconds)
  expect(size()).toBe(6)
  expect(said()).toContain("ScalingActive True ValidMetricFound")
  await clock.advance(15 * seconds)
  expect(size()).toBe(10)
  state.percent = 8
  await clock.advance(120 * seconds)
  expect(size()).toBe(10)
  expect(said()).toContain("AbleToScale True ScaleDownStabilized")
  await clock.advance(300 * seconds)
  expect(size()).toBe(2)
})

test("within a tenth of the target nothing changes, and behavior sets the window", async () => {
  const { clock, size, state } = world(4, {
    percent: 86,
    spec: { behavior: { scaleDown: { stabilizationWindowSeconds: 0 } } },
  })
  await clock.advance(60 * seconds)
  expect(size()).toBe(4)
  state.percent = 40
  await clock.advance(20 * seconds)
  expect(size()).toBe(2)
})

test("scaling down can be switched off", async () => {
  const { clock, size } = world(6, { percent: 10, spec: { behavior: { scaleDown: { selectPolicy: "Disabled" } } } })
  await clock.advance(900 * seconds)
  expect(size()).toBe(6)
})
