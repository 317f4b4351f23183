import type { CanarySpec, Metric, Reason } from "#api/v1alpha1/canary/index.ts"
import { parseDuration } from "#lib/duration.ts"
import { hasOneName, isMixture, mixture } from "./mixture.ts"
import { providerOf } from "./provider.ts"
import { type QueryValues, type Rendered, renderForSource, renderQuery } from "./query-template.ts"
import { strategyOf } from "./steps.ts"
import { windowOf } from "./verdict.ts"

/** Why a metric cannot be asked for, and what to write instead. A person must act. */
export type Problem = { readonly reason: Reason; readonly message: string }

export type BuiltIn = "request-success-rate" | "request-duration"
export const isBuiltIn = (name: string): name is BuiltIn =>
  name === "request-success-rate" || name === "request-duration"

type Queries = Readonly<Record<BuiltIn, string>>

/**
 * In percent, of the requests that were answered: none of them with 5xx is 100, and all of them is 0. A sum over no
 * series is no number, so that the success of a revision that only fails would be unknown instead of 0.
 */
const successRate = (series: string, which: string, isNoFailure: string) =>
  `(sum(rate(${series}{${which}, ${isNoFailure}}[{{ interval }}])) or vector(0))` +
  ` / sum(rate(${series}{${which}}[{{ interval }}])) * 100`

/** The time that 99 of 100 requests took at most. */
const duration = (buckets: string, which: string) =>
  `histogram_quantile(0.99, sum(rate(${buckets}{${which}}[{{ interval }}])) by (le))`

/** Envoy counts for each Service: neither a namespace nor a Service has an underscore in its name. */
const envoyCluster = 'envoy_cluster_name=~"{{ namespace }}_{{ service }}-canary_[0-9a-zA-Z-]+"'
/** So does Traefik, by the number or the plain name of the port: a dash would be part of another Service's name. */
const traefikService = 'service=~"{{ namespace }}-{{ service }}-canary-[0-9a-zA-Z]+@kubernetescrd"'
/** Hashes and suffixes have neither vowels nor 0, 1 and 3: `web-worker-0` is no pod of `web`. */
const letters = "[bcdfghjklmnpqrstvwxz2456789]"
const podsOfTarget = `kubernetes_namespace="{{ namespace }}", kubernetes_pod_name=~"{{ target }}-${letters}{1,10}-${letters}{5}"`

/** Istio counts for each workload, beside its pods. */
const istioWorkload =
  'reporter="destination", destination_workload_namespace="{{ namespace }}", destination_workload=~"{{ target }}"'

/** By what divides the requests: what counts them, for the new revision alone. */
const envoy: Queries = {
  "request-success-rate": successRate("envoy_cluster_upstream_rq", envoyCluster, 'envoy_response_code!~"5.*"'),
  "request-duration": duration("envoy_cluster_upstream_rq_time_bucket", envoyCluster),
}
const builtIns: Readonly<Record<string, Queries>> = {
  gatewayapi: envoy,
  contour: envoy,
  traefik: {
    "request-success-rate": successRate(
      "traefik_service_request_duration_seconds_count",
      traefikService,
      'code!~"5.*"',
    ),
    "request-duration": `${duration("traefik_service_request_duration_seconds_bucket", traefikService)} * 1000`,
  },
  istio: {
    "request-success-rate": successRate("istio_requests_total", istioWorkload, 'response_code!~"5.*"'),
    "request-duration": duration("istio_request_duration_milliseconds_bucket", istioWorkload),
  },
  kubernetes: {
    "request-success-rate": successRate("http_request_duration_seconds_count", podsOfTarget, 'status!~"5.*"'),
    "request-duration": `${duration("http_request_duration_seconds_bucket", podsOfTarget)} * 1000`,
  },
}

/** Requests are counted where they arrive, by the name of the workload. */
const countsAtPods = (router: string) => router === "kubernetes" || router === "istio"

const routerOf = (spec: CanarySpec): string => providerOf({ spec }).split(":")[0]!

/** The query of a built-in metric, still with its functions. */
export function builtInQuery(name: BuiltIn, spec: CanarySpec): string | Problem {
  const router = routerOf(spec)
  const queries = Object.hasOwn(builtIns, router) ? builtIns[router] : undefined
  if (!queries) {
    const message = `${name} is built in for the providers ${Object.keys(builtIns).join(", ")}, not for ${router}: write templateRef or query`
    return { reason: "NotSupported", message }
  }
  const { kind } = spec.targetRef
  if (countsAtPods(router) && kind !== "Deployment") {
    const message = `${name} cannot tell the pods of both revisions of a ${kind} apart by their names: write a query with {{ revision }}, or a templateRef`
    return { reason: "NotSupported", message }
  }
  return isTestedBeside(spec) ? `${queries[name]} >= 0 or ${builtIns.kubernetes![name]}` : queries[name]
}

/**
 * Before the one flip of Blue/Green, the gateway sends the new revision nothing: load tests ask its Service directly, and
 * only its pods count that. What the gateway has counted goes first; a share of no requests is NaN, which no comparison keeps.
 */
const isTestedBeside = (spec: CanarySpec): boolean =>
  !countsAtPods(routerOf(spec)) &&
  !hasOneName({ spec }) &&
  strategyOf(spec.analysis) === "BlueGreen" &&
  !spec.analysis.mirror

/** What is asked: of the new revision, and where the metric is relative also of the one that runs. */
export type Questions = { readonly target: string; readonly source?: string; readonly windowMs: number }

/**
 * The texts of a metric's questions. A query is about one revision alone, or finds nothing: values in it stand for
 * themselves, also in a regular expression, and its window begins at the present weight or later.
 */
export function questionsOf(
  metric: Pick<Metric, "name" | "interval" | "relativeTo" | "templateRef" | "templateVariables">,
  query: string,
  values: QueryValues,
  atThisWeightMs: number,
): Questions | Problem {
  const askedMs = parseDuration(metric.interval)
  if (askedMs === undefined || askedMs < 1000) {
    const message = `metric ${metric.name}: interval is no duration of at least 1s: write 30s, 1m or 1m30s`
    return { reason: "InvalidSpec", message }
  }
  const windowMs = windowOf(askedMs, atThisWeightMs)
  const interval = `${windowMs / 1000}s`
  const own = { ...values, interval, variables: metric.templateVariables ?? {} }
  if (values.target === values.source && isMixture(query)) return unusable(metric.name, { ok: false, problem: mixture })
  const all = isBuiltIn(metric.name) && !metric.templateRef ? literal(own) : own
  const ofTarget = renderQuery(query, all)
  if (!ofTarget.ok) return unusable(metric.name, ofTarget)
  if (!metric.relativeTo) return { target: ofTarget.text, windowMs }
  const ofSource = renderForSource(query, all)
  if (!ofSource) {
    const message = `metric ${metric.name}: relativeTo needs a query with {{ target }} or {{ revision }}, or it asks the same of both revisions`
    return { reason: "InvalidQuery", message }
  }
  return ofSource.ok ? { target: ofTarget.text, source: ofSource.text, windowMs } : unusable(metric.name, ofSource)
}

const unusable = (name: string, { problem }: Extract<Rendered, { ok: false }>): Problem => ({
  reason: "InvalidQuery",
  message: `metric ${name}: ${problem}`,
})

/** For a regular expression within double quotes: a dot in a name is a dot. */
const literal = (values: QueryValues): QueryValues => ({
  ...values,
  target: values.target.replaceAll(".", "\\\\."),
  source: values.source?.replaceAll(".", "\\\\."),
})

/**
 * Characters by which a value would be more than a value of the query: it would end a string, a selector, an argument or
 * a parameter and begin another. A template of another namespace is asked with that namespace's credentials, so that a
 * variable of the Canary must stay what it is.
 */
const beyondAValue = /["'`\\{}()[\]&;,\n\r]/

/** A variable that could change a query of another namespace. */
export function variableProblem(metric: Pick<Metric, "name" | "templateVariables">): Problem | undefined {
  const bad = Object.entries(metric.templateVariables ?? {}).find(([, value]) => beyondAValue.test(value))
  if (!bad) return undefined
  const message = `metric ${metric.name}: templateVariables.${bad[0].slice(0, 64)} has quotes, brackets, a comma, a backslash, & or ; or a line break: a template of another namespace takes plain values only`
  return { reason: "InvalidQuery", message }
}
