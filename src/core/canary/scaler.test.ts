import { describe, expect, test } from "vitest"
import type { RouteObject } from "./router.ts"
import { decide } from "./run.ts"
import { freedScaler, heldScaler, readScaler, type ScalerKind, type ScalerSeen, scales } from "./scaler.ts"
import type { Sight } from "./sight.ts"
import { calm, minute, running } from "./test-sight.ts"

const target = { kind: "Deployment", name: "web" }
const scaleTargetRef = { apiVersion: "apps/v1", ...target }
const object = (kind: ScalerKind, spec: object, metadata: object = {}): RouteObject => ({
  apiVersion: kind === "ScaledObject" ? "keda.sh/v1alpha1" : "autoscaling/v2",
  kind,
  metadata: { name: "web", namespace: "shop", ...metadata },
  spec: { scaleTargetRef, ...spec },
})
const seen = (kind: ScalerKind, found: RouteObject) => readScaler(kind, found, { canary: "web", isOfTarget: true })

/** The server completes a behavior that is given in part. */
const scaleUp = {
  stabilizationWindowSeconds: 0,
  selectPolicy: "Max",
  policies: [
    { type: "Pods", value: 4, periodSeconds: 15 },
    { type: "Percent", value: 100, periodSeconds: 15 },
  ],
}
const policies = [{ type: "Percent", value: 100, periodSeconds: 15 }]
const behavior = (fields: object = {}) => ({ scaleUp, scaleDown: { selectPolicy: "Max", policies, ...fields } })

const rows: Record<string, [ScalerKind, object, object?]> = {
  "an HPA without a behavior": ["HorizontalPodAutoscaler", { minReplicas: 2, maxReplicas: 9 }],
  "an HPA with one": [
    "HorizontalPodAutoscaler",
    { minReplicas: 2, maxReplicas: 9, behavior: behavior({ stabilizationWindowSeconds: 60, selectPolicy: "Min" }) },
    { annotations: { mine: "yes" }, labels: { mine: "yes" } },
  ],
  "a ScaledObject": ["ScaledObject", { maxReplicaCount: 9 }],
  "a ScaledObject with everything": [
    "ScaledObject",
    {
      minReplicaCount: 2,
      idleReplicaCount: 0,
      advanced: {
        restoreToOriginalReplicaCount: true,
        horizontalPodAutoscalerConfig: { name: "a", behavior: behavior() },
      },
    },
  ],
}
describe("held and freed, it is as before", () => {
  for (const [name, [kind, spec, metadata]] of Object.entries(rows))
    test(name, () => {
      const before = object(kind, spec, metadata)
      expect(seen(kind, before)).toMatchObject({ isNoted: false, mayShrink: true })
      const held = heldScaler(kind, before, "web")
      expect(seen(kind, held)).toMatchObject({ isNoted: true, mayShrink: false })
      expect(heldScaler(kind, held, "web")).toEqual(held)
      // As the server returns it: without fields that are undefined.
      expect(freedScaler(kind, JSON.parse(JSON.stringify(held)))).toEqual(before)
    })
})

test("one that never scales down is left alone", () => {
  const hpa = object("HorizontalPodAutoscaler", { behavior: behavior({ selectPolicy: "Disabled" }) })
  expect(seen("HorizontalPodAutoscaler", hpa)).toMatchObject({ isNoted: false, mayShrink: false })
  expect(freedScaler("HorizontalPodAutoscaler", hpa)).toEqual(hpa)
})

test("what its owner writes meanwhile counts, and stays", () => {
  const kind = "HorizontalPodAutoscaler"
  const edited = (held: RouteObject, spec: object): RouteObject => ({
    ...held,
    spec: { ...(held.spec as object), ...spec },
  })
  const held = heldScaler(kind, object(kind, { minReplicas: 2 }), "web")
  expect(freedScaler(kind, edited(held, { minReplicas: 5 })).spec).toEqual({ scaleTargetRef, minReplicas: 5 })

  // Other rules, beside our policy.
  const slower = behavior({ selectPolicy: "Disabled", stabilizationWindowSeconds: 900 })
  expect(freedScaler(kind, edited(held, { behavior: slower })).spec).toMatchObject({
    behavior: { scaleUp, scaleDown: { policies, stabilizationWindowSeconds: 900 } },
  })

  // Another policy: it is held again, and this one comes back.
  const other = edited(held, { behavior: behavior({ selectPolicy: "Min" }) })
  expect(seen(kind, other)).toMatchObject({ isNoted: true, mayShrink: true })
  expect(freedScaler(kind, heldScaler(kind, other, "web")).spec).toMatchObject({
    behavior: behavior({ selectPolicy: "Min" }),
  })
  expect(freedScaler(kind, other).spec).toMatchObject({ behavior: behavior({ selectPolicy: "Min" }) })
})

test("the workload that is scaled: a ScaledObject without a kind means a Deployment", () => {
  expect(scales(object("ScaledObject", { scaleTargetRef: { name: "web" } }), target)).toBe(true)
  expect(scales(object("ScaledObject", { scaleTargetRef: { name: "web" } }), { ...target, kind: "StatefulSet" })).toBe(
    false,
  )
  expect(scales(object("HorizontalPodAutoscaler", {}), { ...target, name: "other" })).toBe(false)
})

describe("when it is held", () => {
  const free: ScalerSeen = {
    kind: "HorizontalPodAutoscaler",
    name: "web",
    isOfTarget: true,
    isNoted: false,
    mayShrink: true,
  }
  const held = { ...free, isNoted: true, mayShrink: false }
  const going = (sight: Sight): Sight => ({
    ...sight,
    canary: {
      ...sight.canary,
      metadata: { ...sight.canary.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" },
      status: { ...sight.canary.status!, phase: "Terminating" },
    },
  })
  const cases: Record<string, [Sight, ScalerSeen, string]> = {
    "between runs it is free": [calm(), free, ""],
    "between runs it is put back": [calm(), held, "free"],
    "in a run it is held first": [running(0), free, "hold"],
    "then the run goes on": [running(0), held, "route"],
    "a run that waits for its start": [
      running(0, { spec: { requireApproval: ["Rollout"] }, status: { phase: "Waiting" } }),
      free,
      "",
    ],
    "its owner's edit in a run": [running(0), { ...held, mayShrink: true }, "hold"],
    "it was given another workload": [running(0), { ...held, isOfTarget: false }, "free"],
    "another workload's": [running(0), { ...free, isOfTarget: false }, "route"],
    "a run that goes back": [running(20, { status: { phase: "Failed" }, run: { reason: "AnalysisFailed" } }), held, "route"],
    "nothing new is held then": [
      running(20, { status: { phase: "Failed" }, run: { reason: "AnalysisFailed" } }),
      free,
      "route",
    ],
    suspended: [running(20, { spec: { suspend: true } }), free, ""],
    "a Canary that is deleted: requests first": [going(running(20)), held, "route"],
    "a Canary that is deleted: then the autoscaler": [going(calm()), held, "free"],
    "a Canary that is deleted: then the rest": [going(calm()), free, "leave"],
  } // biome-ignore format: a table
  for (const [name, [sight, scaler, expected]] of Object.entries(cases))
    test(name, () => {
      const { act } = decide({ ...sight, scalers: [scaler] })
      expect(act?.do === "scaler" ? (act.isHeld ? "hold" : "free") : (act?.do ?? "")).toBe(expected)
    })

  test("one that is missing is named beside what goes on", () => {
    const said = decide({ ...running(20, { forMs: minute / 2 }), scalerMissing: "no autoscaler web" })
    expect(said).toMatchObject({ reason: "Measuring", message: expect.stringContaining("no autoscaler web") })
  })
})
