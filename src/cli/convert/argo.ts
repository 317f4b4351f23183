import { Canary } from "#api/v1alpha1/canary/index.ts"
import { validate } from "#api/validate.ts"
import { findingsOf } from "#core/canary/findings.ts"
import { analysedBy, analysisTemplate, listOf, lost, secondsOf } from "./argo-analysis.ts"
import { type Conversion, isObject, type Json, judged, type Remark } from "./judged.ts"

const argoVersion = "argoproj.io/v1alpha1"

export const argoKinds = ["Rollout", "AnalysisTemplate"]

/** Converts a manifest of Argo Rollouts; `beside` are the others of its file. Undefined for every other manifest. */
export function argo(value: Json, beside: readonly unknown[]): Conversion | undefined {
  if (value.apiVersion !== argoVersion) return undefined
  if (value.kind === "AnalysisTemplate") return analysisTemplate(value)
  return value.kind === "Rollout" ? rollout(value, beside) : undefined
}

const takeOver =
  "Argo Rollouts must not act on a workload that aim has: create the Deployment, wait until it is ready, move the Services to it, and delete the Rollout; then apply the Canary"

const ofDeployment = ["replicas", "selector", "template", "minReadySeconds", "revisionHistoryLimit"]

function rollout(value: Json, beside: readonly unknown[]): Conversion {
  const spec = isObject(value.spec) ? value.spec : {}
  const strategy = isObject(spec.strategy) ? spec.strategy : {}
  const canary = isObject(strategy.canary) ? strategy.canary : undefined
  const blueGreen = isObject(strategy.blueGreen) ? strategy.blueGreen : undefined
  if (!canary && !blueGreen)
    return { ok: false, problems: [{ path: "spec.strategy", message: "it has neither canary nor blueGreen" }] }
  const { workloadRef } = spec
  if (isObject(workloadRef) && workloadRef.kind !== "Deployment")
    return { ok: false, problems: [{ path: "spec.workloadRef", message: "only a Deployment can be a target" }] }
  const name = isObject(workloadRef) ? workloadRef.name : isObject(value.metadata) ? value.metadata.name : undefined
  const how = canary ? byWeights(canary, beside) : byFlip(blueGreen!, beside)
  if ("problems" in how) return { ok: false, problems: how.problems }
  const service = {
    ...(how.service !== undefined && how.service !== name && { name: how.service }),
    port: 80,
    ...targetPortOf(spec.template),
    ...how.route,
  }
  const wanted = {
    provider: how.provider,
    targetRef: { apiVersion: "apps/v1", kind: "Deployment", name },
    ...(typeof spec.progressDeadlineSeconds === "number" && { progressDeadlineSeconds: spec.progressDeadlineSeconds }),
    service,
    analysis: how.analysis,
    ...how.more,
  }
  const remarks: Remark[] = [
    { path: "spec.strategy", message: "service.port: 80 is assumed: write the port of the Service that clients use" },
    ...lost(spec, "spec", ["strategy", "workloadRef", "progressDeadlineSeconds", ...ofDeployment], {
      paused: "aim pause holds a run",
      restartAt: "kubectl rollout restart does it",
      rollbackWindow: "a template that goes back to the running one has no run",
      analysis: "a Canary keeps its own history",
      progressDeadlineAbort: "a run that makes no progress always fails",
    }),
    ...how.remarks,
  ]
  const conversion = judged(Canary, value, wanted, remarks)
  if (!conversion.ok)
    return {
      ok: false,
      problems: conversion.problems.map(({ path, message }) => ({ path: "spec", message: `${path}: ${message}` })),
    }
  const stored = validate(Canary, conversion.objects[0]).object as unknown as Canary
  return {
    ...conversion,
    objects: [...(isObject(workloadRef) ? [] : [deploymentOf(value, spec)]), ...conversion.objects],
    remarks: [
      ...conversion.remarks,
      ...findingsOf(stored).map(({ field, message }) => ({ path: "spec.strategy", message: `${field}: ${message}` })),
    ],
    notes: [takeOver],
  }
}

function deploymentOf({ metadata }: Json, spec: Json): Json {
  const { name, namespace, labels } = isObject(metadata) ? metadata : {}
  const kept = [...ofDeployment, "progressDeadlineSeconds"].filter(field => spec[field] !== undefined)
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name, ...(namespace !== undefined && { namespace }), ...(labels !== undefined && { labels }) },
    spec: Object.fromEntries(kept.map(field => [field, spec[field]])),
  }
}

/** Of the first port of a container. */
function targetPortOf(template: unknown): Json {
  const pod = isObject(template) && isObject(template.spec) ? template.spec : {}
  const [port] = listOf(pod.containers).flatMap(({ ports }) => listOf(ports))
  return port ? { targetPort: port.containerPort } : {}
}

type Way = {
  provider: string
  service?: unknown
  route?: Json
  analysis: Json
  more?: Json
  remarks: Remark[]
}

const everywhere = {
  antiAffinity: "write affinity into the template",
  maxSurge: "the new revision runs beside the running one",
  maxUnavailable: "the new revision runs beside the running one",
  dynamicStableScale: "the running revision keeps its pods until promotion",
  abortScaleDownDelaySeconds: "the pods of a failed run go at once",
  postPromotionAnalysis: "nothing is judged after promotion; scaleDownDelaySeconds leaves time for aim rollback",
  previewService: "NAME-canary is made",
  canaryService: "NAME-canary is made",
}

function byFlip(blueGreen: Json, beside: readonly unknown[]): Way {
  const at = "spec.strategy.blueGreen"
  const { activeService, autoPromotionEnabled, autoPromotionSeconds, scaleDownDelaySeconds = 30 } = blueGreen
  const { metrics, limit, remarks } = analysedBy(blueGreen.prePromotionAnalysis, `${at}.prePromotionAnalysis`, beside)
  const used = [
    "activeService",
    "autoPromotionEnabled",
    "autoPromotionSeconds",
    "scaleDownDelaySeconds",
    "prePromotionAnalysis",
  ]
  return {
    provider: "kubernetes",
    service: activeService,
    analysis: { interval: intervalFrom(secondsOf(autoPromotionSeconds)), threshold: limit + 1, iterations: 1, metrics },
    more: { scaleDownDelaySeconds, ...(autoPromotionEnabled === false && { requireApproval: ["Promotion"] }) },
    remarks: [...remarks, ...lost(blueGreen, at, used, everywhere)],
  }
}

function byWeights(canary: Json, beside: readonly unknown[]): Way | { problems: Remark[] } {
  const at = "spec.strategy.canary"
  const steps = listOf(canary.steps)
  const remarks: Remark[] = []
  const weights: number[] = []
  const pauses: (string | undefined)[] = []
  const matches: Json[] = []
  const asked = [analysedBy(canary.analysis, `${at}.analysis`, beside)]
  for (const [index, step] of steps.entries()) {
    const path = `${at}.steps[${index}]`
    if (typeof step.setWeight === "number") {
      if (step.setWeight > (weights.at(-1) ?? 0)) weights.push(step.setWeight)
      else remarks.push({ path, message: "lost: weights only rise, and the last is followed by promotion" })
    } else if (isObject(step.pause)) pauses.push(secondsOf(step.pause.duration))
    else if (isObject(step.analysis)) asked.push(analysedBy(step.analysis, `${path}.analysis`, beside))
    else if (isObject(step.setHeaderRoute)) matches.push(...headersOf(step.setHeaderRoute))
    else remarks.push({ path, message: `lost: nothing here does ${Object.keys(step).join(", ") || "an empty step"}` })
  }
  const isMatched = weights.length === 0 && matches.length > 0
  if (matches.length > 0 && !isMatched)
    remarks.push({ path: `${at}.steps`, message: "lost: setHeaderRoute, which a Canary has instead of weights" })
  if (weights.length === 0 && !isMatched)
    return {
      problems: [
        { path: `${at}.steps`, message: "no step sets a weight: a Deployment does the same without a Canary" },
      ],
    }
  const timed = pauses.filter(each => each !== undefined)
  const interval = timed.toSorted((a, b) => Number.parseInt(b, 10) - Number.parseInt(a, 10))[0]
  if (new Set(timed).size > 1)
    remarks.push({
      path: `${at}.steps`,
      message: `lost: pauses of different lengths; each weight lasts the longest, ${interval}`,
    })
  const hasApproval = timed.length < pauses.length
  if (hasApproval)
    remarks.push({
      path: `${at}.steps`,
      message: "a pause without a duration is an approval, before each weight and before promotion",
    })
  const routing = routingOf(canary.trafficRouting, `${at}.trafficRouting`)
  const used = ["steps", "analysis", "trafficRouting", "stableService", "scaleDownDelaySeconds"]
  return {
    provider: routing.provider,
    service: canary.stableService,
    ...(routing.route && { route: routing.route }),
    analysis: {
      ...{ interval: intervalFrom(interval), threshold: Math.max(...asked.map(({ limit }) => limit)) + 1 },
      ...(isMatched ? { iterations: 1, match: matches } : { stepWeights: weights }),
      metrics: asked.flatMap(({ metrics }) => metrics),
    },
    more: {
      scaleDownDelaySeconds: canary.scaleDownDelaySeconds ?? 30,
      ...(hasApproval && { requireApproval: ["TrafficIncrease", "Promotion"] }),
    },
    remarks: [
      ...asked.flatMap(each => each.remarks),
      ...remarks,
      ...routing.remarks,
      ...lost(canary, at, used, everywhere),
    ],
  }
}

/** Each of them sends requests to the new version. */
const headersOf = ({ match }: Json): Json[] =>
  listOf(match).map(({ headerName, headerValue }) => ({ headers: { [String(headerName)]: headerValue } }))

/** A pause is how long a weight lasts. */
const intervalFrom = (seconds: string | undefined) =>
  seconds === undefined ? "1m" : `${Math.max(10, Number.parseInt(seconds, 10))}s`

const plugin = "argoproj-labs/gatewayAPI"
const providers: Readonly<Record<string, string>> = {
  ...{ istio: "istio", nginx: "nginx", smi: "smi:v1alpha2", traefik: "traefik", apisix: "apisix", appMesh: "appmesh" },
}

function routingOf(routing: unknown, at: string): { provider: string; route?: Json; remarks: Remark[] } {
  if (!isObject(routing)) return { provider: "kubernetes", remarks: [] }
  if (isObject(routing.plugins) && isObject(routing.plugins[plugin])) {
    const { httpRoute } = routing.plugins[plugin]
    const message = `write the Gateway of HTTPRoute ${httpRoute ?? "NAME"} in service.gatewayRefs; a Canary edits the HTTPRoute that is called like its Service`
    return {
      provider: "gatewayapi:v1",
      route: { gatewayRefs: [{ name: "GATEWAY" }] },
      remarks: [{ path: `${at}.plugins`, message }, ...lost(routing, at, ["plugins"])],
    }
  }
  const known = Object.keys(routing).find(name => Object.hasOwn(providers, name))
  if (known) return { provider: providers[known]!, remarks: lost(routing, at, [known]) }
  const message = "lost: no such router is here, so weights are given by the number of pods"
  return { provider: "kubernetes", remarks: [{ path: at, message }] }
}
