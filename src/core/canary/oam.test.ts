import { describe, expect, test } from "vitest"
import { byAge, componentLabel, selectorOf, unnamedScaler } from "./oam.ts"
import { canaryOf } from "./test-canary.ts"

describe("what Services select the pods of both revisions by", () => {
  const web = { [componentLabel]: "web" }
  test.each([
    ["their component", { ...web, app: "a" }, { ...web, app: "b" }, web],
    ["what both workloads select by", { app: "a", tier: "x" }, { app: "a", tier: "y" }, { app: "a" }],
    ["not the component of one alone", { ...web, app: "a" }, { app: "a" }, { app: "a" }],
    ["nothing in common", { uid: "1" }, { uid: "2" }, {}],
  ])("%s", (_, target, source, expected) => {
    const { [componentLabel]: _component, ...matchLabels } = target as Record<string, string>
    expect(selectorOf({ labels: target, matchLabels }, { labels: source, matchLabels: source })).toEqual(expected)
  })

  test("a first revision alone", () => {
    expect(selectorOf({ labels: { app: "a", build: "7" }, matchLabels: { app: "a" } })).toEqual({ app: "a" })
  })
})

test("the newest revision has the highest number, and not the last name", () => {
  const named = (revision: string) => ({ revision, name: revision })
  const sorted = ["web-v9", "web-v10", "web-v2"].map(named).toSorted(byAge)
  expect(sorted.map(({ name }) => name)).toEqual(["web-v10", "web-v9", "web-v2"])
  expect(["blue", "green"].map(named).toSorted(byAge)[0]!.name).toBe("green")
})

test("a ScaledObject follows the component only where the Canary names one", () => {
  const scaler = (kind: "ScaledObject" | "HorizontalPodAutoscaler", isOfTarget = true) =>
    ({ kind, name: "web", isOfTarget }) as never
  const component = canaryOf({ provider: "oam" })
  expect(unnamedScaler(component, [scaler("ScaledObject")])?.message).toContain("kind: ScaledObject, name: web}")
  const autoscalerRef = { apiVersion: "keda.sh/v1alpha1", kind: "ScaledObject" as const, name: "web" }
  expect(unnamedScaler(canaryOf({ provider: "oam", autoscalerRef }), [scaler("ScaledObject")])).toBeUndefined()
  expect(unnamedScaler(component, [scaler("HorizontalPodAutoscaler"), scaler("ScaledObject", false)])).toBeUndefined()
})
