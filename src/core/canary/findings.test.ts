import { expect, test } from "vitest"
import { Canary } from "#api/v1alpha1/canary/index.ts"
import type { MetricTemplate } from "#api/v1alpha1/metrictemplate/index.ts"
import { validate } from "#api/validate.ts"
import { flaggerFields, flaggerManifest } from "#test/support/manifests/flagger-fields.ts"
import { findingsOf, findingsOfTemplate } from "./findings.ts"

/**
 * Fields of Flagger that do nothing here, or that are refused, by the provider that the rest of the manifest asks for.
 * Every other field works, and nothing is said of it.
 */
const without = {
  "gatewayapi:v1": [
    /^autoscalerRef\.primaryScaler/, /^(ingressRef|routeRef|upstreamRef)/, /^service\.(gateways|delegation|retries|trafficPolicy|meshName|backends)/,
    /^service\.match\[0\]\.(name|scheme|authority|withoutHeaders|ignoreUriCase|port|gateways|sourceLabels|sourceNamespace)/,
    /^service\.match\[0\]\.method\.(prefix|regex)/, /^service\.corsPolicy\.allowOrigins\[0\]\.(prefix|regex)/,
    /^analysis\.match\[0\]\.sourceLabels/, /^analysis\.mirrorWeight/,
  ],
  kubernetes: [
    /^autoscalerRef\.primaryScaler/, /^(ingressRef|routeRef|upstreamRef)/, /^service\.(gateways|delegation|retries|trafficPolicy|meshName|backends)/,
    /^service\.(timeout|backendTimeout|hosts|gatewayRefs|match|rewrite|headers|mirror|corsPolicy)/,
    /^analysis\.(match|mirror|mirrorWeight|sessionAffinity|stepWeightPromotion)/,
  ],
} as const // biome-ignore format: lists of fields

/** It counts as absent. */
const isEmpty = (value: unknown) => value === false || value === 0 || value === ""

for (const [provider, reported] of Object.entries(without))
  test(`provider ${provider}: every field works, or is named`, () => {
    for (const [path, values] of Object.entries(flaggerFields.Canary))
      for (const value of values) {
        if (path === "provider" || path === "targetRef.kind" || isEmpty(value)) continue
        const manifest = flaggerManifest("Canary", path, value) as { spec: Record<string, unknown> }
        const service = manifest.spec.service as Record<string, unknown>
        const gateway = provider === "kubernetes" ? {} : { gatewayRefs: service.gatewayRefs ?? [{ name: "public" }] }
        const analysis = manifest.spec.analysis as Record<string, unknown>
        const maxWeight = analysis.stepWeight === undefined ? {} : { maxWeight: analysis.maxWeight ?? 50 }
        const { object, errors } = validate(Canary, {
          ...manifest,
          spec: {
            metricsServer: "http://prometheus:9090",
            ...manifest.spec,
            provider,
            service: { ...service, ...gateway },
            analysis: { ...analysis, ...maxWeight },
          },
        })
        expect(errors, path).toEqual([])
        const said = findingsOf(object as Canary).map(({ field }) => field.replace("spec.", ""))
        const isSaid = said.some(field => path.startsWith(field.replace(/\.key$/, "")))
        const wanted = reported.some(pattern => pattern.test(path))
        expect({ path, value, said, isSaid }).toMatchObject({ isSaid: wanted })
        if (!wanted) expect({ path, said }).toEqual({ path, said: [] })
      }
  })

test("a provider without a router is refused", () => {
  for (const provider of flaggerFields.Canary.provider!.filter(
    each => !/^(gatewayapi|contour|traefik|istio|kubernetes|smi:v1alpha2)/.test(String(each)),
  )) {
    const { object } = validate(Canary, flaggerManifest("Canary", "provider", provider))
    expect(findingsOf(object as Canary)[0]).toMatchObject({ field: "spec.provider", kind: "Refused" })
  }
})

test("a query that does not parse is refused with its place, in a Canary and in a template", () => {
  const query = "sum(rate(errors[{{ interval }}])"
  const manifest = flaggerManifest("Canary", "analysis.metrics[0].query", query)
  const found = findingsOf(validate(Canary, manifest).object as Canary).filter(({ field }) => /query$/.test(field))
  expect(found).toEqual([
    {
      field: "spec.analysis.metrics[0].query",
      message: "the query does not parse at line 1, column 33: ) is missing, which closes (",
      kind: "Refused",
    },
  ])
  const provider = { type: "prometheus", address: "http://prometheus:9090", insecureSkipVerify: false }
  expect(findingsOfTemplate({ spec: { provider, query } } as MetricTemplate)).toMatchObject([
    { field: "spec.query", kind: "Refused", message: expect.stringContaining("line 1, column 33") },
  ])
})
