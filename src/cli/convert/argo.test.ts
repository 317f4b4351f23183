import { expect, test } from "vitest"
import { Canary } from "#api/v1alpha1/canary/index.ts"
import { MetricTemplate } from "#api/v1alpha1/metrictemplate/index.ts"
import { validate } from "#api/validate.ts"
import { convert } from "./index.ts"
import type { Json } from "./judged.ts"

const from = { apiVersion: "argoproj.io/v1alpha1" }
const metadata = { name: "web", namespace: "shop", labels: { app: "web" } }
const template = {
  metadata: { labels: { app: "web" } },
  spec: { containers: [{ name: "web", image: "web:1", ports: [{ containerPort: 8080 }] }] },
}
const rollout = (strategy: Json, more: Json = {}): Json => ({
  ...from,
  ...{ kind: "Rollout", metadata },
  spec: { replicas: 3, selector: { matchLabels: { app: "web" } }, template, strategy, ...more },
})

/** Converts, holds each of our objects to its schema, and gives them by kind with what was said. */
function converted(value: Json, beside: Json[] = []) {
  const conversion = convert(value, undefined, [value, ...beside])
  if (!conversion.ok) throw new Error(JSON.stringify(conversion.problems))
  for (const object of conversion.objects)
    for (const kind of [Canary, MetricTemplate])
      if (object.kind === kind.kind) expect(validate(kind, object)).toMatchObject({ errors: [], warnings: [] })
  const said = conversion.remarks.map(({ path, message }) => `${path}: ${message}`)
  const find = (kind: string) => conversion.objects.find(each => each.kind === kind) as Json & { spec: Json }
  return { canary: find("Canary"), deployment: find("Deployment"), objects: conversion.objects, said }
}

const analysisTemplate: Json = {
  ...from,
  ...{ kind: "AnalysisTemplate", metadata: { name: "rate", namespace: "shop" } },
  spec: {
    args: [{ name: "service-name" }, { name: "job", value: "web" }],
    metrics: [
      {
        ...{ name: "success", interval: "5m", failureLimit: 2, count: 3, successCondition: "result[0] >= 0.95" },
        provider: {
          prometheus: {
            address: "http://prometheus:9090",
            query: 'sum(rate(ok{svc="{{args.service-name}}",job="{{ args.job }}"}[5m]))',
            timeout: 40,
          },
        },
      },
    ],
  },
}

test("weights: a Deployment and a Canary, and a line for everything that is lost", () => {
  const canaryStrategy = {
    ...{ stableService: "web-stable", canaryService: "web-next", maxSurge: "25%", scaleDownDelaySeconds: 60 },
    trafficRouting: { plugins: { "argoproj-labs/gatewayAPI": { httpRoute: "web" } } },
    analysis: {
      templates: [{ templateName: "rate" }],
      args: [{ name: "service-name", value: "web" }],
      startingStep: 1,
    },
    steps: [
      { setWeight: 20 },
      { pause: { duration: "5m" } },
      { setWeight: 50 },
      { pause: { duration: 600 } },
      { setCanaryScale: { replicas: 2 } },
      { setWeight: 20 },
      { pause: {} },
    ],
  }
  const { canary, deployment, said } = converted(rollout({ canary: canaryStrategy }, { paused: true }), [
    analysisTemplate,
  ])
  expect(deployment).toEqual({
    ...{ apiVersion: "apps/v1", kind: "Deployment", metadata },
    spec: { replicas: 3, selector: { matchLabels: { app: "web" } }, template },
  })
  expect(canary.spec).toEqual({
    provider: "gatewayapi:v1",
    targetRef: { apiVersion: "apps/v1", kind: "Deployment", name: "web" },
    service: { name: "web-stable", port: 80, targetPort: 8080, gatewayRefs: [{ name: "GATEWAY" }] },
    analysis: {
      interval: "600s",
      threshold: 3,
      stepWeights: [20, 50],
      metrics: [
        {
          ...{ name: "rate", templateRef: { name: "rate" }, interval: "300s", thresholdRange: { min: 0.95 } },
          templateVariables: { job: "web", service_name: "web" },
        },
      ],
    },
    scaleDownDelaySeconds: 60,
    requireApproval: ["TrafficIncrease", "Promotion"],
  })
  const at = "spec.strategy.canary"
  for (const path of [
    "spec.paused", `${at}.analysis.startingStep`, `${at}.steps[4]`, `${at}.steps[5]`, `${at}.canaryService`,
    `${at}.maxSurge`,
  ]) // biome-ignore format: a list of words
    expect(said.filter(line => line.startsWith(`${path}: lost: `))).toHaveLength(1)
  expect(said).toContain(`${at}.steps: lost: pauses of different lengths; each weight lasts the longest, 600s`)
  expect(said.join("\n")).toContain("service.port: 80 is assumed")
})

test("Blue/Green: one flip by the Service, with an approval; what has no implementation is refused by name", () => {
  const blueGreen = {
    ...{ activeService: "web", previewService: "web-preview", autoPromotionEnabled: false, autoPromotionSeconds: 5 },
    prePromotionAnalysis: { templates: [{ templateName: "missing" }] },
    postPromotionAnalysis: { templates: [{ templateName: "rate" }] },
  }
  const { canary, said } = converted(rollout({ blueGreen }))
  expect(canary.spec).toEqual({
    provider: "kubernetes",
    targetRef: { apiVersion: "apps/v1", kind: "Deployment", name: "web" },
    service: { port: 80, targetPort: 8080 },
    analysis: { interval: "10s", threshold: 1, iterations: 1, metrics: [] },
    scaleDownDelaySeconds: 30,
    requireApproval: ["Promotion"],
  })
  const at = "spec.strategy.blueGreen"
  expect(said).toContain(`${at}.prePromotionAnalysis.templates[0]: lost: AnalysisTemplate missing is not in this file`)
  expect(said.join("\n")).toContain(`${at}.postPromotionAnalysis: lost: nothing is judged after promotion`)
  const istio = { trafficRouting: { istio: { virtualService: { name: "web" } } }, steps: [{ setWeight: 10 }] }
  const refused = converted(rollout({ canary: istio }))
  expect(refused.canary.spec).toMatchObject({ provider: "istio" })
  expect(refused.said.join("\n")).toContain(
    "spec.provider: off, unless an administrator runs aim controller --allow-provider istio",
  )
  const alb = converted(rollout({ canary: { ...istio, trafficRouting: { alb: { ingress: "web" } } } }))
  expect(alb.canary.spec).toMatchObject({ provider: "kubernetes" })
  expect(alb.said.join("\n")).toContain("spec.strategy.canary.trafficRouting: lost: no such router is here")
})

test("a header alone is A/B; a Deployment that is named stays as it is", () => {
  const match = [{ headerName: "x-canary", headerValue: { exact: "insider" } }]
  const steps = [{ setHeaderRoute: { name: "insiders", match } }, { pause: { duration: "1h" } }]
  const workloadRef = { apiVersion: "apps/v1", kind: "Deployment", name: "shop", scaleDown: "onsuccess" }
  const value = { ...rollout({ canary: { steps } }), spec: { workloadRef, strategy: { canary: { steps } } } }
  const { canary, objects } = converted(value)
  expect(objects).toHaveLength(1)
  expect(canary.spec).toMatchObject({
    targetRef: { name: "shop" },
    analysis: { interval: "3600s", iterations: 1, match: [{ headers: { "x-canary": { exact: "insider" } } }] },
  })
})

test("an AnalysisTemplate is a MetricTemplate for each metric of Prometheus", () => {
  const { objects, said } = converted(analysisTemplate)
  expect(objects).toEqual([
    {
      ...{ apiVersion: MetricTemplate.apiVersion, kind: "MetricTemplate", metadata: analysisTemplate.metadata },
      spec: {
        provider: { type: "prometheus", address: "http://prometheus:9090" },
        query: 'sum(rate(ok{svc="{{ variables.service_name }}",job="{{ variables.job }}"}[5m]))',
      },
    },
  ])
  expect(said).toEqual([
    "spec.metrics[0].count: lost: a metric is asked at each weight, once per interval",
    "spec.metrics[0].provider.prometheus.timeout: lost: nothing here does it",
  ])
  const [first] = (analysisTemplate.spec as { metrics: Json[] }).metrics
  const two = { ...analysisTemplate, spec: { metrics: [first, { name: "job", provider: { job: {} } }] } }
  expect(converted(two).objects.map(each => (each.metadata as Json).name)).toEqual(["rate-success"])
  expect(converted(two).said.join("\n")).toContain("spec.metrics[1].provider: lost: only Prometheus is converted")
})

test.each([
  ["result[0] >= 0.95", undefined, { min: 0.95 }],
  ["result < 5 && result >= 1", undefined, { max: 5, min: 1 }],
  [undefined, "result[0] > 0.05", { max: 0.05 }],
  [undefined, "result[0] < 0.95", { min: 0.95 }],
  ["default(result, 0) < 5", undefined, undefined],
  ["result[0] >= 1 || true", undefined, undefined],
  [undefined, "result > 5 && result < 9", undefined],
])("condition %j, or of failure %j", (successCondition, failureCondition, thresholdRange) => {
  const [first] = (analysisTemplate.spec as { metrics: Json[] }).metrics
  const { successCondition: _, ...metric } = first!
  const given = {
    ...metric,
    ...(successCondition && { successCondition }),
    ...(failureCondition && { failureCondition }),
  }
  const named = { ...analysisTemplate, spec: { metrics: [given] } }
  const strategy = { canary: { steps: [{ setWeight: 10 }], analysis: { templates: [{ templateName: "rate" }] } } }
  const { canary, said } = converted(rollout(strategy), [named])
  const { metrics } = canary.spec.analysis as { metrics: Json[] }
  expect(metrics[0]!.thresholdRange).toEqual(thresholdRange)
  expect(said.some(line => line.includes("is not of the form"))).toBe(thresholdRange === undefined)
})

test("what cannot be a Canary is refused", () => {
  const problems = (value: Json) => {
    const conversion = convert(value)
    return conversion.ok ? [] : conversion.problems.map(({ path }) => path)
  }
  expect(problems(rollout({}))).toEqual(["spec.strategy"])
  expect(problems(rollout({ canary: { steps: [{ pause: {} }] } }))).toEqual(["spec.strategy.canary.steps"])
  expect(problems(rollout({ canary: { steps: [] } }, { workloadRef: { kind: "ReplicaSet", name: "a" } }))).toEqual([
    "spec.workloadRef",
  ])
  expect(problems(rollout({ canary: { steps: [{ setWeight: 300 }] } }))).toEqual(["spec"])
  expect(problems({ ...from, kind: "Experiment", metadata, spec: {} })).toEqual([""])
})
