import type { Canary } from "#api/v1alpha1/canary/index.ts"
import type { MetricTemplate } from "#api/v1alpha1/metrictemplate/index.ts"
import { providerOf } from "#core/canary/provider.ts"
import { isBuiltIn } from "#core/canary/queries.ts"
import { serviceNamesOf } from "#core/canary/services.ts"
import { strategyOf, weightsOf } from "#core/canary/steps.ts"
import { isObject, type Remark } from "./judged.ts"

/** Fields that work here in another way than in Flagger. */
export function differencesOf(canary: Canary): Remark[] {
  const { spec } = canary
  const { analysis } = spec
  const provider = providerOf(canary)
  const strategy = strategyOf(analysis)
  const weights = strategy === "Weighted" ? weightsOf(analysis) : []
  const isPlain = provider === "kubernetes"
  const at = (path: string, isTrue: boolean, message: string): Remark[] => (isTrue ? [{ path, message }] : [])
  return [
    ...at("spec", !spec.provider, `no provider: ${provider} here, where Flagger takes the flag of its controller`),
    ...at(
      "spec.analysis.iterations",
      isPlain && strategy === "BlueGreen",
      "the new revision answers all requests for the last interval, where Flagger's provider kubernetes gives it none",
    ),
    ...at(
      "spec.analysis",
      isPlain && strategy === "Weighted",
      "weights are given by the number of pods, where Flagger's provider kubernetes makes ten iterations of them",
    ),
    ...at(
      "spec.analysis.maxWeight",
      !analysis.stepWeights && weights.length > 1 && weights.at(-1)! % weights[0]! !== 0,
      `the last step ends at ${weights.at(-1)}, where Flagger goes beyond it`,
    ),
    ...analysis.metrics.flatMap((metric, index) =>
      at(
        `spec.analysis.metrics[${index}].name`,
        isBuiltIn(metric.name) && !metric.templateRef && !metric.query && provider.startsWith("gatewayapi"),
        "measured at the gateway (Envoy's envoy_cluster_upstream_rq), where Flagger asks for metrics of the pods: the Prometheus must scrape the gateway",
      ),
    ),
    ...analysis.alerts.flatMap(({ severity }, index) =>
      at(
        `spec.analysis.alerts[${index}].severity`,
        severity === "",
        "without a severity all alerts are sent, where Flagger sends none",
      ),
    ),
  ]
}

/** The same of a template: what the number is about. */
export function differencesOfTemplate({ spec: { provider, query } }: MetricTemplate): Remark[] {
  const { type } = provider
  if (type === "datadog" || type === "dynatrace" || type === "splunk")
    return [
      {
        path: "spec.provider.type",
        message:
          "measured over the interval of the metric, where Flagger goes back ten of them: write an interval that is longer than data are late",
      },
    ]
  if (type === "graphite" && !/(^|&)\s*from=/.test(query))
    return [
      {
        path: "spec.query",
        message:
          "the mean over the interval of the metric, where Flagger takes the newest value of a day: consolidateBy() in the target names another function",
      },
    ]
  return []
}

const hasPrimary = /primary/i

/** Flagger's copy NAME-primary is no workload here: a text that means its pods finds nothing. */
export function ofPrimary(object: Canary | MetricTemplate): Remark[] {
  const inQuery = (path: string): Remark => ({
    path,
    message: "-primary is the name of a Service here and of no pods: write {{ source }} for the workload that runs",
  })
  if (object.kind === "MetricTemplate")
    return hasPrimary.test((object as MetricTemplate).spec.query) ? [inQuery("spec.query")] : []
  const canary = object as Canary
  const { metrics, webhooks } = canary.spec.analysis
  const { source } = serviceNamesOf(canary)
  return [
    ...metrics.flatMap(({ query = "", templateVariables = {} }, index) => [
      ...(hasPrimary.test(query) ? [inQuery(`spec.analysis.metrics[${index}].query`)] : []),
      ...Object.entries(templateVariables).flatMap(([name, text]) =>
        hasPrimary.test(text) ? [inQuery(`spec.analysis.metrics[${index}].templateVariables.${name}`)] : [],
      ),
    ]),
    ...webhooks.flatMap(({ metadata = {}, url }, index) =>
      Object.entries({ url, ...metadata }).flatMap(([name, text]) => {
        const path = `spec.analysis.webhooks[${index}].${name === "url" ? name : `metadata.${name}`}`
        const message = `${source} is a Service here and no Deployment: where a command means the workload, write ${canary.spec.targetRef.name}`
        return hasPrimary.test(text) ? [{ path, message }] : []
      }),
    ),
  ]
}

/** Objects of other namespaces: Flagger uses each, aim those that are shared. */
export function sharedNamespaces(canary: Canary): Remark[] {
  const own = canary.metadata.namespace
  const { metrics, alerts } = canary.spec.analysis
  const refs = [
    ...metrics.map(({ templateRef }, index) => ({
      path: `spec.analysis.metrics[${index}].templateRef`,
      ref: templateRef,
    })),
    ...alerts.map(({ providerRef }, index) => ({
      path: `spec.analysis.alerts[${index}].providerRef`,
      ref: providerRef,
    })),
  ]
  return refs.flatMap(({ path, ref }) => {
    if (!ref?.namespace || ref.namespace === own) return []
    const command = `kubectl annotate namespace ${ref.namespace} autoimagemanager.io/shared=true`
    return [{ path, message: `an administrator must share namespace ${ref.namespace}: \`${command}\`` }]
  })
}

/** Phases in which the user's workload has the template that its copy has. */
const atRest = ["Initialized", "Succeeded"]

/** What Flagger leaves behind, and in which state it has the workload. */
export function leftOf(canary: Canary, status: unknown): Remark[] {
  const { targetRef, autoscalerRef } = canary.spec
  if (targetRef.kind === "Service") return []
  const phase = isObject(status) ? status.phase : undefined
  const copy = `${targetRef.name}-primary`
  const scaler = autoscalerRef ? `, ${autoscalerRef.kind} ${autoscalerRef.name}-primary` : ""
  return [
    ...(phase !== undefined && !atRest.includes(String(phase))
      ? [
          {
            path: "status.phase",
            message: `${phase}: ${targetRef.kind} ${targetRef.name} may have a template that ${copy} does not run; take over when Flagger is at rest (${atRest.join(", ")})`,
          },
        ]
      : []),
    {
      path: "spec.targetRef",
      message: `Flagger's copies are not used: once the Canary is Initialized, delete ${targetRef.kind} ${copy}${scaler} and the ConfigMaps and Secrets called NAME-primary`,
    },
  ]
}
