import type { Canary } from "#api/v1alpha1/canary/index.ts"
import { providerOf } from "../provider.ts"
import type { Router } from "../router.ts"
import { strategyOf } from "../steps.ts"

/** Fields of Flagger that belong to a router that is not here, or to the copy of a workload, which is not made here. */
const nowhere = [
  "autoscalerRef.primaryScalerQueries", "autoscalerRef.primaryScalerReplicas", "ingressRef", "routeRef", "upstreamRef",
  "service.gateways", "service.delegation", "service.retries", "service.trafficPolicy", "service.meshName",
  "service.backends", "service.match[].name", "service.match[].scheme", "service.match[].authority",
  "service.match[].withoutHeaders", "service.match[].ignoreUriCase", "service.match[].port",
  "service.match[].gateways", "service.match[].sourceLabels", "service.match[].sourceNamespace",
  "analysis.match[].sourceLabels", "rolloutPlan.rolloutBatches[].podList", "rolloutPlan.rolloutBatches[].maxUnavailable",
  "rolloutPlan.rolloutBatches[].instanceInterval", "rolloutPlan.rolloutWebhooks[].expectedStatus",
] as const // biome-ignore format: a list of words

/** Fields that the spec has and the chosen router does not use, for people. An empty value counts as absent. */
export function withoutEffect(canary: Canary, { uses = [], unused = [] }: Partial<Router>): readonly string[] {
  const { analysis } = canary.spec
  const isWeighted = strategyOf(analysis) === "Weighted"
  const isPlain = providerOf(canary) === "kubernetes"
  const fields = [
    ...nowhere.filter(field => !uses.includes(field)),
    ...unused,
    ...(canary.spec.rolloutPlan?.rolloutStrategy === "DecreaseFirst" ? ["rolloutPlan.rolloutStrategy"] : []),
    ...(isWeighted ? ["analysis.match"] : []),
    // The number of pods cannot express what lies between half of the requests and all of them.
    ...(isWeighted && isPlain ? ["analysis.stepWeightPromotion"] : []),
    ...(analysis.iterations !== undefined ? ["analysis.stepWeight", "analysis.stepWeights", "analysis.maxWeight"] : []),
    ...(analysis.mirror || isPlain ? [] : ["analysis.mirrorWeight"]),
  ]
  const found = fields.flatMap(field => foundAt(canary.spec, field.split(".")))
  // A field below one that is named says nothing more.
  return found.filter(field => !found.some(other => field !== other && field.startsWith(`${other}[`)))
}

function foundAt(value: unknown, [step, ...rest]: readonly string[], at = ""): readonly string[] {
  if (step === undefined) return isEmpty(value) ? [] : [at]
  if (typeof value !== "object" || value === null) return []
  const name = step.replace("[]", "")
  const next = (value as Readonly<Record<string, unknown>>)[name]
  const path = at ? `${at}.${name}` : name
  if (!step.endsWith("[]")) return foundAt(next, rest, path)
  return Array.isArray(next) ? next.flatMap((each, index) => foundAt(each, rest, `${path}[${index}]`)) : []
}

const isEmpty = (value: unknown) =>
  value === undefined || value === "" || value === false || value === 0 || (Array.isArray(value) && value.length === 0)
