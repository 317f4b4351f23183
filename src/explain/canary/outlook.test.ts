import { expect, test } from "vitest"
import { leastIntervals } from "#core/canary/steps.ts"
import { canaryOf } from "#core/canary/test-canary.ts"
import { type Around, outlookOf } from "./outlook.ts"

const around: Around = {
  workload: { replicas: 10, pod: {} },
  services: {},
  route: "Missing",
  rivals: [],
  template: () => undefined,
  provider: () => undefined,
  isShared: () => undefined,
}
type Spec = Parameters<typeof canaryOf>[0]
const gateway = { gatewayRefs: [{ name: "public" }] }
const look = (spec: Spec = {}, more: Partial<Around> = {}) =>
  outlookOf(canaryOf({ ...spec, service: { ...gateway, ...spec?.service } }), { ...around, ...more })
const steps = (spec: Spec) =>
  look(spec).stages.map(({ weight, intervals, pods }) => `${weight}% ${pods?.target}/${pods?.source} x${intervals}`)

test("weights, sizes and time of each strategy", () => {
  expect(steps({ analysis: { stepWeights: [5, 20, 50] } })).toEqual(["5% 1/10 x1", "20% 2/10 x1", "50% 5/10 x1"])
  expect(steps({ analysis: { iterations: 4 } })).toEqual(["0% 10/10 x4", "100% 10/10 x1"])
  const match = [{ headers: { "x-canary": { exact: "yes" } } }]
  expect(steps({ analysis: { iterations: 4, match } })).toEqual(["100% 10/10 x4"])
  expect(steps({ canaryReplicas: 3, analysis: { stepWeights: [5, 100] } })).toEqual(["5% 3/10 x1", "100% 10/10 x1"])
  expect(look({ skipAnalysis: true })).toMatchObject({ stages: [], leastMs: 0, promotion: [100] })
})

test("the least time is that of the run", () => {
  for (const analysis of [{ stepWeights: [5, 20, 50] }, { iterations: 4 }, { stepWeight: 30, maxWeight: 50 }]) {
    const { leastMs, stages } = look({ analysis: { interval: "2m", ...analysis } })
    expect(leastMs).toBe(leastIntervals(analysis) * 120_000)
    expect(stages.reduce((sum, { intervals }) => sum + intervals, 0)).toBe(leastIntervals(analysis))
  }
  expect(look({ analysis: { stepWeights: [50], initialDelay: "5m" } }).leastMs).toBe(300_000)
  // 50 by the analysis, 70 and 90 for one interval each, then all.
  const slow = look({ analysis: { stepWeights: [50], stepWeightPromotion: 20 } })
  expect(slow).toMatchObject({ promotion: [70, 90, 100], leastMs: 3 * 60_000 })
})

test("objects: made, or adopted", () => {
  const there = { apiVersion: "v1", kind: "Service", metadata: { name: "web" }, spec: { selector: { app: "web" } } }
  const { objects } = look({}, { services: { apex: there }, route: "There" })
  expect(objects.map(({ object, what }) => `${object}: ${what.split(";")[0]}`)).toEqual([
    "Service web: adopted",
    "Service web-primary: made",
    "Service web-canary: made",
    "HTTPRoute web: adopted",
    "Deployment web-REVISION: made for each run",
    "Deployment web: a change of its template is held in its author's own write",
  ])
  const plain = outlookOf(canaryOf({ provider: "kubernetes", analysis: { iterations: 2 } }), around)
  expect(plain.objects.map(({ object }) => object)).not.toContain("HTTPRoute web")
})

test("hooks and approvals stand in the order of a run", () => {
  const hook = (type: string) => ({ name: type, url: "http://hooks/", type }) as never
  const { gates } = look({
    requireApproval: ["Promotion", "Rollout"],
    analysis: { webhooks: [hook("event"), hook("confirm-promotion"), hook("rollout"), hook("confirm-rollout")] },
  })
  expect(gates.map(gate => gate.split(",")[0])).toEqual([
    "hook confirm-rollout (confirm-rollout)",
    "approval of a person (Rollout)",
    "hook rollout (rollout)",
    "hook confirm-promotion (confirm-promotion)",
    "approval of a person (Promotion)",
    "hook event (event)",
  ])
})

const problems = (spec: Spec, more: Partial<Around>) => look(spec, more).findings.map(({ message }) => message)

test("what does not work because of what is around it", () => {
  expect(problems({}, {})).toEqual([])
  expect(problems({}, { workload: "Missing" })).toEqual(["there is no Deployment web in this namespace"])
  expect(problems({}, { route: "NotServed" })).toEqual([expect.stringContaining("does not serve HTTPRoute")])
  expect(problems({}, { rivals: ["other"] })).toEqual([expect.stringContaining("Canary other has the same target")])
  const metrics = [{ name: "own", templateRef: { name: "own", namespace: "far" } }]
  expect(problems({ analysis: { metrics } }, { isShared: () => false })).toEqual([
    expect.stringContaining("namespace far does not share its MetricTemplate own"),
  ])
  expect(problems({ analysis: { metrics } }, { isShared: () => true, template: () => "Missing" })).toEqual([
    "there is no MetricTemplate own in namespace far",
  ])
  // What could not be read is not concluded from.
  expect(problems({ analysis: { metrics } }, { workload: undefined })).toEqual([])
})

test("so few pods cannot express a weight, with the nearest", () => {
  const few = outlookOf(canaryOf({ provider: "kubernetes", analysis: { stepWeights: [10] } }), {
    ...around,
    workload: { replicas: 2, pod: {} },
  })
  expect(few.findings).toMatchObject([{ field: "spec.analysis.stepWeights", kind: "Refused" }])
})

test("addresses that need an administrator, of the Canary and of what it refers to", () => {
  const template = {
    metadata: { name: "own", namespace: "far" },
    spec: { provider: { type: "prometheus", address: "http://prometheus.monitoring.svc:9090" }, query: "x" },
  } as never
  const spec = {
    metricsServer: "http://10.0.0.7:9090",
    analysis: { metrics: [{ name: "own", templateRef: { name: "own", namespace: "far" } }] },
  }
  expect(look(spec, { template: () => template, isShared: () => true }).addresses).toMatchObject([
    { field: "spec.metricsServer", flag: "--allow-egress shop=10.0.0.7:9090" },
    { field: "spec.analysis.metrics[0].templateRef", flag: "--allow-egress far=prometheus.monitoring.svc:9090" },
  ])
})

test("configuration that both revisions read", () => {
  const pod = {
    volumes: [
      { configMap: { name: "a" } },
      { secret: { secretName: "b" } },
      { projected: { sources: [{ secret: { name: "c" } }] } },
    ],
    initContainers: [{ envFrom: [{ configMapRef: { name: "d" } }] }],
    containers: [
      { env: [{ valueFrom: { secretKeyRef: { name: "b" } } }, { valueFrom: { configMapKeyRef: { name: "e" } } }] },
    ],
  }
  const seen = (takesSnapshots: boolean) =>
    look({}, { workload: { replicas: 1, pod }, takesSnapshots }).configs.map(({ name, isShared }) => [name, isShared])
  expect(seen(false)).toEqual(
    ["configmap/a", "configmap/d", "configmap/e", "secret/b", "secret/c"].map(name => [name, true]),
  )
  expect(seen(true)).toEqual([
    ["configmap/a", false],
    ["configmap/d", false],
    ["configmap/e", false],
    ["secret/b", true],
    ["secret/c", true],
  ])
})
