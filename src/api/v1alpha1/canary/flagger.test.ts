import { expect, test } from "vitest"
import { type FlaggerKind, flaggerFields, flaggerManifest, valueAt } from "#test/support/manifests/flagger-fields.ts"
import type { Kind } from "../../kind.ts"
import type { StructuralSchema } from "../../structural-schema.ts"
import { validate } from "../../validate.ts"
import { AlertProvider } from "../alertprovider/index.ts"
import { MetricTemplate } from "../metrictemplate/index.ts"
import { Canary } from "./index.ts"

// A manifest of Flagger is accepted with another apiVersion, and the server drops none of its fields.

const kinds: Record<FlaggerKind, Kind> = { Canary, MetricTemplate, AlertProvider }
const tables = Object.entries(flaggerFields) as [FlaggerKind, Record<string, unknown[]>][]

for (const [kind, table] of tables)
  for (const [path, values] of Object.entries(table))
    test(`${kind}: spec.${path}`, () => {
      for (const value of values) {
        const { errors, warnings, object } = validate(kinds[kind], flaggerManifest(kind, path, value))
        expect({ value, errors, warnings }).toEqual({ value, errors: [], warnings: [] })
        expect(valueAt(object?.spec, path)).toEqual(value)
      }
    })

/** Of the metric type web. */
const beyondTemplates = ["provider.method", "provider.value"]

/** OAM's. */
const planFields = [
  "batchPartition", "canaryMetric[0].interval", "canaryMetric[0].metricsRange.max", "canaryMetric[0].metricsRange.min",
  "canaryMetric[0].name", "canaryMetric[0].templateRef.name", "canaryMetric[0].templateRef.namespace", "numBatches",
  "paused", "rolloutBatches[0].batchRolloutWebhooks[0]", "rolloutBatches[0].canaryMetric[0]",
  "rolloutBatches[0].instanceInterval", "rolloutBatches[0].maxUnavailable", "rolloutBatches[0].podList[0]",
  "rolloutBatches[0].replicas", "rolloutStrategy", "rolloutWebhooks[0].expectedStatus[0]", "rolloutWebhooks[0].metadata.key",
  "rolloutWebhooks[0].method", "rolloutWebhooks[0].name", "rolloutWebhooks[0].type", "rolloutWebhooks[0].url",
  "targetSize",
].map(field => `rolloutPlan.${field}`) // biome-ignore format: a list of words

/** Ours, which Flagger does not have. */
const beyond = [
  "sourceRef.apiVersion",
  "sourceRef.kind",
  "sourceRef.name",
  ...planFields,
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
    const declared = leavesOf(kinds[kind].schema.properties!.spec!, "")
    const ours = kind === "Canary" ? beyond : kind === "MetricTemplate" ? beyondTemplates : []
    const known = [...Object.keys(table).filter(isKept), ...ours]
    expect(declared.filter(path => path !== "service.trafficPolicy").sort()).toEqual(known.sort())
  }
})

test("what is required, and what a field is without a word, is as in Flagger", () => {
  const { object } = validate(Canary, flaggerManifest("Canary", "analysis.sessionAffinity.cookieName", "a"))
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

function leavesOf({ properties, items, additionalProperties }: StructuralSchema, path: string): string[] {
  if (items) return leavesOf(items, `${path}[0]`)
  if (additionalProperties) return leavesOf(additionalProperties, `${path}.key`)
  if (!properties) return [path]
  return Object.entries(properties).flatMap(([name, child]) => leavesOf(child, path ? `${path}.${name}` : name))
}
