import type { Canary, Metric } from "#api/v1alpha1/canary/index.ts"
import type { MetricTemplate } from "#api/v1alpha1/metrictemplate/index.ts"
import { metricServiceOf } from "./metric-services/index.ts"
import { hasOneName, isMixture, mixture } from "./mixture.ts"
import { providerOf } from "./provider.ts"
import { builtInQuery, isBuiltIn, variableProblem } from "./queries.ts"
import { queryProblem, templateProblem } from "./query-check.ts"
import { planned, planProblem } from "./rollout-plan.ts"
import { isRouter } from "./router.ts"
import { howToAllow, routerOf, withoutEffect } from "./routers/index.ts"

/** What can be said of a manifest before any cluster has seen it. The controller says the same of the first kind, later. */
export type Finding = {
  /** Below the object: `spec.analysis.match`. */
  readonly field: string
  readonly message: string
  /** Refused: the Canary cannot be carried out. NoEffect: nothing reads the field. Missing: another object is needed. */
  readonly kind: "Refused" | "NoEffect" | "Missing"
}

/** Everything in a spec that does not work here, that has no effect, or that needs something beside it. */
export function findingsOf(canary: Canary): readonly Finding[] {
  const router = routerOf(canary)
  const problems = isRouter(router) ? router.problemsOf(canary) : [router]
  const { analysis, rolloutPlan } = canary.spec
  const { metrics } = planned(canary).spec.analysis
  const placeOf = (index: number) =>
    index < analysis.metrics.length
      ? `analysis.metrics[${index}]`
      : `rolloutPlan.canaryMetric[${index - analysis.metrics.length}]`
  const batches = rolloutPlan && planProblem(canary)
  return [
    ...(batches ? [refused(batches.field, batches.message)] : []),
    ...problems.map(({ field, message }) => refused(field, message)),
    ...(isRouter(router) && router.isOff
      ? [
          {
            field: "spec.provider",
            message: `off, unless ${howToAllow(providerOf(canary))}`,
            kind: "Missing" as const,
          },
        ]
      : []),
    ...withoutEffect(canary).map(field => ({
      field: `spec.${field}`,
      message: whyNoEffect(field, providerOf(canary)),
      kind: "NoEffect" as const,
    })),
    ...metrics.flatMap((metric, index) => metricFindings(canary, metric, placeOf(index))),
    ...(metrics.some(needsServer) && !canary.spec.metricsServer
      ? [
          {
            field: "spec.metricsServer",
            message:
              "no Prometheus is named for built-in metrics and inline queries: write metricsServer, or an administrator runs aim controller with --metrics-server URL",
            kind: "Missing" as const,
          },
        ]
      : []),
  ]
}

const refused = (field: string, message: string): Finding => ({ field: `spec.${field}`, message, kind: "Refused" })

const needsServer = (metric: Metric) => !metric.templateRef

function metricFindings(canary: Canary, metric: Metric, at: string): readonly Finding[] {
  if (metric.templateRef) {
    const isForeign = (metric.templateRef.namespace || canary.metadata.namespace) !== canary.metadata.namespace
    const bad = isForeign ? variableProblem(metric) : undefined
    return bad ? [refused(`${at}.templateVariables`, bad.message)] : []
  }
  if (metric.query) {
    const wrong = queryProblem(metric.query, metric.templateVariables ?? {})
    const mixed = hasOneName(canary) && isMixture(metric.query) ? mixture : undefined
    return [wrong, mixed].flatMap(message => (message === undefined ? [] : [refused(`${at}.query`, message)]))
  }
  const query = isBuiltIn(metric.name) ? builtInQuery(metric.name, canary.spec) : ""
  // Without a router there is no query either, and the router is what is missing.
  if (typeof query === "string" || !isRouter(routerOf(canary))) return []
  return [refused(`${at}.name`, query.message)]
}

/** The same of a template, whose variables the Canaries that use it give. */
export function findingsOfTemplate({ spec: { provider, query } }: MetricTemplate): readonly Finding[] {
  const service = metricServiceOf(provider)
  if ("reason" in service) return [refused("provider.type", service.message)]
  const lacking = service.problemOf(provider)
  const wrong = templateProblem(query, service)
  return [
    ...(lacking ? [refused("provider", lacking.message)] : []),
    ...(wrong === undefined ? [] : [refused("query", wrong)]),
  ]
}

const plannedReasons: readonly (readonly [RegExp, string])[] = [
  [/rolloutStrategy$/, "has no effect: pods of the new revision come before others go"],
  [/podList$/, "has no effect: which pods go is up to their controller"],
  [/maxUnavailable$/, "has no effect: pods go when others have come"],
  [/instanceInterval$/, "has no effect: write analysis.interval, which is how long a batch lasts"],
  [/expectedStatus$/, "has no effect: any answer from 200 to 299 is a yes"],
]
const copies = "no copy of the workload and its autoscaler is made here"
const reasons: readonly (readonly [RegExp, string])[] = [
  [/^autoscalerRef\.primary/, `has no effect: ${copies}`],
  [/^(ingressRef|routeRef|upstreamRef)/, "has no effect: it belongs to a router that is not here"],
  [/^analysis\.match$/, "has no effect beside rising weights: write iterations for A/B"],
  [/^analysis\.(stepWeights?|maxWeight)$/, "has no effect beside iterations"],
  [/^analysis\.mirrorWeight$/, "has no effect without mirror: true"],
  [/^analysis\.stepWeightPromotion$/, "has no effect: a number of pods cannot express the weights of a promotion"],
]

function whyNoEffect(field: string, provider: string): string {
  const found = [...reasons, ...plannedReasons].find(([pattern]) => pattern.test(field))
  return found ? found[1] : `has no effect with provider ${provider}`
}
