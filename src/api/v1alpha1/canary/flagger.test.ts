import { expect, test } from "vitest"
import { flaggerAlertProvider, flaggerCanary, flaggerMetricTemplate } from "#test/support/manifests/flagger-fields.ts"
import type { Kind } from "../../kind.ts"
import type { StructuralSchema } from "../../structural-schema.ts"
import { validate } from "../../validate.ts"
import { AlertProvider } from "../alertprovider/index.ts"
import { MetricTemplate } from "../metrictemplate/index.ts"
import { Canary } from "./index.ts"

// A manifest of Flagger is accepted with another apiVersion, and the server drops none of its fields.

type Fields = Record<string, unknown>

/** The fields that stand beside others: those that are required there, and those that make a combination possible. */
const beside: readonly (readonly [below: RegExp, ...fields: (readonly [path: string, value: unknown])[]])[] = [
  [/^autoscalerRef/, ...ref("autoscalerRef", "autoscaling/v2", "HorizontalPodAutoscaler")],
  [/^ingressRef/, ...ref("ingressRef", "networking.k8s.io/v1", "Ingress")],
  [/^routeRef/, ...ref("routeRef", "apisix.apache.org/v2", "ApisixRoute")],
  [/^upstreamRef/, ...ref("upstreamRef", "gloo.solo.io/v1", "Upstream")],
  [/^service.gatewayRefs/, ["service.gatewayRefs[0].name", "public"]],
  [/^service.mirror/, ["service.mirror[0].backendRef.name", "shadow"], ["service.mirror[0].backendRef.port", 80]],
  [/^analysis.metrics/, ["analysis.metrics[0].name", "errors"], ["analysis.metrics[0].query", "vector(1)"]],
  [/^analysis.metrics.*templateRef/, ["analysis.metrics[0].templateRef.name", "errors"]],
  [/^analysis.alerts/, ["analysis.alerts[0].name", "all"], ["analysis.alerts[0].providerRef.name", "slack"]],
  [/^analysis.webhooks/, ["analysis.webhooks[0].name", "a"], ["analysis.webhooks[0].url", "http://tester.test/"]],
  [/^analysis.sessionAffinity/, ["analysis.sessionAffinity.cookieName", "canary"]],
  [/^analysis.(iterations|match|mirror$)/, ["analysis.stepWeight", undefined], ["analysis.iterations", 5]],
  [/^analysis.stepWeights/, ["analysis.stepWeight", undefined]],
  [/^provider=gatewayapi/, ["service.gatewayRefs[0].name", "public"]],
  [/^provider=knative/, ["targetRef.apiVersion", "serving.knative.dev/v1"], ["targetRef.kind", "Service"]],
]

function ref(path: string, apiVersion: string, kind: string): [string, unknown][] {
  return [[`${path}.apiVersion`, apiVersion], [`${path}.kind`, kind], [`${path}.name`, "web"]] // biome-ignore format: a row
}

const tables: readonly (readonly [kind: Kind, table: Record<string, readonly unknown[]>, spec: Fields])[] = [
  [
    Canary,
    flaggerCanary,
    {
      targetRef: { apiVersion: "apps/v1", kind: "Deployment", name: "web" },
      service: { port: 80 },
      analysis: { interval: "1m", threshold: 5, stepWeight: 10 },
    },
  ],
  [MetricTemplate, flaggerMetricTemplate, { provider: { type: "prometheus" }, query: "vector(1)" }],
  [AlertProvider, flaggerAlertProvider, { type: "slack" }],
]

for (const [kind, table, spec] of tables)
  for (const [path, values] of Object.entries(table))
    test(`${kind.kind}: spec.${path}`, () => {
      for (const value of values) {
        const manifest = manifestWith(kind, spec, path, value)
        const { errors, warnings, object } = validate(kind, manifest)
        expect({ value, errors, warnings }).toEqual({ value, errors: [], warnings: [] })
        expect(read(object?.spec as Fields, path)).toEqual(value)
      }
    })

/** Ours, which Flagger does not have. */
const beyond = [
  "canaryReplicas",
  "scaleDownDelaySeconds",
  "onFailure",
  "requireApproval[0]",
  "analysis.initialDelay",
  "analysis.noData",
  "analysis.errorLimit",
  "analysis.metrics[0].relativeTo",
  "analysis.webhooks[0].secretRef.name",
  "analysis.webhooks[0].deadline",
  "analysis.webhooks[0].onDeadline",
]

test("no field is ours and Flagger's by mistake: the table and the declaration name the same fields", () => {
  // Istio's own object is kept as it is written, whatever is in it.
  const isKept = (path: string) => !path.startsWith("service.trafficPolicy.")
  for (const [kind, table] of tables) {
    const declared = leavesOf(kind.schema.properties!.spec!, "")
    const ours = kind === Canary ? beyond : []
    const known = [...Object.keys(table).filter(isKept), ...ours]
    expect(declared.filter(path => path !== "service.trafficPolicy").sort()).toEqual(known.sort())
  }
})

test("what is required, and what a field is without a word, is as in Flagger", () => {
  const { object } = validate(Canary, manifestWith(Canary, tables[0]![2], "analysis.sessionAffinity.cookieName", "a"))
  expect(object?.spec).toEqual({
    targetRef: { apiVersion: "apps/v1", kind: "Deployment", name: "web" },
    service: { port: 80, portName: "http", portDiscovery: false, headless: false },
    analysis: {
      interval: "1m",
      threshold: 5,
      stepWeight: 10,
      stepWeightPromotion: 0,
      match: [],
      mirror: false,
      sessionAffinity: { cookieName: "a", maxAge: 86_400 },
      primaryReadyThreshold: 100,
      canaryReadyThreshold: 100,
      metrics: [],
      webhooks: [],
      alerts: [],
      noData: "Hold",
      errorLimit: 4,
    },
    progressDeadlineSeconds: 600,
    skipAnalysis: false,
    revertOnDeletion: false,
    suspend: false,
    scaleDownDelaySeconds: 0,
    onFailure: "Rollback",
    requireApproval: [],
  })
})

function manifestWith(kind: Kind, spec: Fields, path: string, value: unknown) {
  const written = structuredClone(spec)
  // An address and a Secret exclude each other, and one of them is needed.
  if (kind === AlertProvider && path !== "address") write(written, "secretRef.name", "slack")
  if (kind === Canary)
    for (const [below, ...fields] of beside)
      if (below.test(path) || below.test(`${path}=${value}`)) for (const field of fields) write(written, ...field)
  write(written, path, value)
  return { apiVersion: kind.apiVersion, kind: kind.kind, metadata: { name: "web", namespace: "test" }, spec: written }
}

/** `a.b[0].c` as its steps: a number is an index. */
const stepsOf = (path: string) =>
  path.split(/[.[]/).map(step => (step.endsWith("]") ? Number(step.slice(0, -1)) : step))

function write(into: Fields, path: string, value: unknown): void {
  const steps = stepsOf(path)
  let at = into as Record<string | number, unknown>
  for (const [index, step] of steps.slice(0, -1).entries()) {
    at[step] ??= typeof steps[index + 1] === "number" ? [] : {}
    at = at[step] as Record<string | number, unknown>
  }
  at[steps.at(-1)!] = value
}

const read = (from: Fields, path: string): unknown =>
  stepsOf(path).reduce<unknown>((at, step) => (at as Record<string | number, unknown> | undefined)?.[step], from)

function leavesOf({ properties, items, additionalProperties }: StructuralSchema, path: string): string[] {
  if (items) return leavesOf(items, `${path}[0]`)
  if (additionalProperties) return leavesOf(additionalProperties, `${path}.key`)
  if (!properties) return [path]
  return Object.entries(properties).flatMap(([name, child]) => leavesOf(child, path ? `${path}.${name}` : name))
}
