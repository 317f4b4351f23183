import type { Json } from "#cluster-sim/index.ts"
import type { Commit, Run } from "#test/support/record.ts"
import { rootOf } from "./failover.ts"
import { decisionOf, idOf, keyOf, timeOf } from "./reading.ts"

// S27 to S32 for Canaries: how requests rise and fall, what promotes, and which side may be taken away. Read from what was
// committed, without the code that is judged by it.

type Live = ReadonlyMap<string, Json>

/** Everything that is wrong with how Canaries gave requests to new revisions. */
export function canaryViolationsOf(run: Run): string[] {
  if (![...run.initial, ...run.commits.map(({ object }) => object)].some(isCanary)) return []
  const live = new Map<string, Json>(run.initial.map(object => [idOf(object), object]))
  const found: string[] = []
  for (const commit of run.commits) {
    const { object, type } = commit
    const before = live.get(idOf(object))
    if (type === "DELETED") live.delete(idOf(object))
    else live.set(idOf(object), object)
    const wrong = [
      ...rises(commit, before, live),
      ...promotions(commit, before),
      ...sides(commit, before, live),
      ...deadlines(commit),
      ...holders(commit, before, live),
    ]
    found.push(...wrong.map(what => `${what} (${object.kind} ${keyOf(object)} at ${commit.revision})`))
  }
  return found
}

const isCanary = ({ kind }: Json) => kind === "Canary"
const apexOf = ({ spec }: Json): string => spec.service?.name || spec.targetRef.name
/** One that has its target to share with another carries nothing out. */
const isRefused = ({ status }: Json) =>
  status?.conditions?.some((each: Json) => each.type === "Stalled" && each.reason === "Conflict") === true
const canariesIn = (live: Live, namespace: string | undefined) =>
  [...live.values()].filter(each => isCanary(each) && each.metadata.namespace === namespace && !isRefused(each))

/** The share of requests that a route gives to the new revision; undefined where the object is none or has none. */
function weightIn(object: Json | undefined, apex: string): number | undefined {
  if (object?.metadata.name !== apex) return undefined
  if (object.kind === "ConfigMap") return object.data?.weight === undefined ? undefined : Number(object.data.weight)
  if (object.kind !== "HTTPRoute") return undefined
  const refs: Json[][] = (object.spec?.rules ?? []).map(({ backendRefs = [] }: Json) => backendRefs)
  const share = (all: Json[], name: string) =>
    all.find(each => each.name === `${apex}-${name}`)?.weight as number | undefined
  const both = refs.filter(all => share(all, "primary") !== undefined && share(all, "canary") !== undefined).at(-1)
  if (!both) return undefined
  const [source, target] = [share(both, "primary")!, share(both, "canary")!]
  return source + target === 0 ? undefined : (100 * target) / (source + target)
}

const isWeighted = ({ spec }: Json) => !(spec.analysis?.iterations > 0) && !spec.analysis?.mirror
const judging = new Set(["Progressing", "WaitingPromotion"])
const promoting = new Set(["Promoting", "Finalising"])

function stepsOf({ spec: { analysis = {}, rolloutPlan } }: Json): number[] {
  if (rolloutPlan) return batchesOf(rolloutPlan)
  if (analysis.stepWeights?.length > 0) return analysis.stepWeights
  const { stepWeight = 0, maxWeight = 100 } = analysis
  if (stepWeight <= 0) return []
  return Array.from({ length: Math.ceil(maxWeight / stepWeight) }, (_, at) =>
    Math.min(maxWeight, (at + 1) * stepWeight),
  )
}

/** The share of all pods after each batch of a plan of OAM, as a weight. */
function batchesOf({ numBatches = 1, targetSize, rolloutBatches }: Json): number[] {
  const batches: Json[] = rolloutBatches ?? Array.from({ length: numBatches }, () => ({ replicas: 1 }))
  const total = (rolloutBatches && targetSize) ?? batches.reduce((sum, { replicas }) => sum + Number(replicas), 0)
  const part = ({ replicas }: Json) =>
    typeof replicas === "string" ? Number.parseInt(replicas, 10) : (100 * replicas) / total
  const sums = batches.map((_, at) => batches.slice(0, at + 1).reduce((sum, batch) => sum + part(batch), 0))
  return [...sums.slice(0, -1).map(sum => Math.max(1, Math.floor(sum + 1e-6))), 100]
}

/** S27: the weight rises step by step while a revision is judged, and falls to nothing or not at all. */
function rises({ object, type }: Commit, before: Json | undefined, live: Live): string[] {
  if (type === "DELETED" || !before) return []
  return canariesIn(live, object.metadata.namespace).flatMap(canary => {
    const [was, is] = [weightIn(before, apexOf(canary)), weightIn(object, apexOf(canary))]
    if (was === undefined || is === undefined || was === is || !isWeighted(canary)) return []
    const { phase = "" } = canary.status ?? {}
    if (is < was) return is === 0 ? [] : [`S27 the weight fell from ${was} to ${is}, and not to 0`]
    if (promoting.has(phase) || (is === 100 && isLeftAlone(canary, live))) return []
    // Roles change where a person takes a promotion back, or has a rollout of the workload's own controller.
    if (is === 100 && !judging.has(phase)) return []
    if (!judging.has(phase)) return [`S27 the weight rose to ${is} in phase ${phase || "none"}`]
    const next = stepsOf(canary).find(step => step > was)
    return next === undefined || is > next
      ? [`S27 the weight rose from ${was} to ${is}, and the next step is ${next}`]
      : []
  })
}

/** The workload before was deleted: the new revision is all that is left of its OAM component. */
function isLeftAlone({ spec, status, metadata: { namespace } }: Json, live: Live): boolean {
  const name = status?.run?.source.workload
  const isIt = (each: Json) =>
    each.kind === "Deployment" && each.metadata.name === name && each.metadata.namespace === namespace
  return spec.provider === "oam" && ![...live.values()].some(isIt)
}

/** S28 and S29: a run begins with nothing, and is promoted by its own good measurements alone. */
function promotions({ object, type }: Commit, before: Json | undefined): string[] {
  if (!isCanary(object) || type === "DELETED" || !object.status) return []
  const { spec, status } = object
  const { run } = status
  const was = before?.status
  const found: string[] = []
  if (run && run.id !== was?.run?.id && run.failedChecks + run.iterations + run.weight + run.metrics.length > 0)
    found.push(`S28 run ${run.id} began with what another one had`)
  const isNew = status.history?.length > 0 && status.history[0].endedAt !== was?.history?.[0]?.endedAt
  const last = isNew ? status.history[0] : undefined
  if (last?.result === "Promoted" && (last.id !== was?.run?.id || status.lastPromotedSpec !== was?.run?.checksum))
    found.push(`S28 ${last.id} was promoted, and ${was?.run?.id ?? "no run"} was judged`)
  if (status.phase !== "Promoting" || !judging.has(was?.phase ?? "") || spec.skipAnalysis) return found
  const threshold = Math.max(1, spec.analysis?.threshold ?? 0)
  if (run.failedChecks >= threshold) found.push(`S28 promoted after ${run.failedChecks} failed checks of ${threshold}`)
  const asked: Json[] = [...(spec.analysis?.metrics ?? []), ...(spec.rolloutPlan?.canaryMetric ?? [])]
  const isGood = ({ name }: Json) => run.metrics.find((each: Json) => each.name === name)?.verdict === "Good"
  const bad = spec.analysis?.noData === "Pass" ? undefined : asked.find(metric => !isGood(metric))
  if (bad) found.push(`S29 promoted without a good measurement of ${bad.name}`)
  return found
}

const isReady = ({ metadata, status }: Json) =>
  !metadata.deletionTimestamp &&
  (status?.conditions ?? []).some((each: Json) => each.type === "Ready" && each.status === "True")

function readyBehind(live: Live, namespace: string, name: string): number {
  const service = live.get(`v1 Service ${namespace}/${name}`)
  const selector = Object.entries((service?.spec?.selector ?? {}) as Record<string, string>)
  if (selector.length === 0) return 0
  const isOne = ({ kind, metadata }: Json) =>
    kind === "Pod" &&
    metadata.namespace === namespace &&
    selector.every(([key, value]) => metadata.labels?.[key] === value)
  return [...live.values()].filter(each => isOne(each) && isReady(each)).length
}

/** S30: no side gets requests without a ready pod while the other has some. */
function sides({ object, type }: Commit, before: Json | undefined, live: Live): string[] {
  const isGone =
    object.kind === "Pod" && before && isReady(before) && (type === "DELETED" || object.metadata.deletionTimestamp)
  if (!isGone && !["Service", "ConfigMap", "HTTPRoute"].includes(object.kind)) return []
  const { namespace } = object.metadata
  return canariesIn(live, namespace).flatMap(canary => {
    const { run, phase } = canary.status ?? {}
    if (!run || canary.spec.targetRef.kind === "Service") return []
    // During the analysis a Canary deletes no pod that answers.
    if (isGone && !promoting.has(phase) && phase !== "Failed") return []
    const apex = apexOf(canary)
    const weight = ["v1 ConfigMap", "gateway.networking.k8s.io/v1 HTTPRoute"]
      .map(kind => weightIn(live.get(`${kind} ${namespace}/${apex}`), apex))
      .find(each => each !== undefined)
    if (weight === undefined) return []
    const [source, target] = ["primary", "canary"].map(side => readyBehind(live, namespace ?? "", `${apex}-${side}`))
    if (weight > 0 && target === 0 && source! > 0) return [`S30 ${weight} % go to a new revision without a ready pod`]
    return weight < 100 && source === 0 && target! > 0 ? [`S30 ${100 - weight} % go to a side without a ready pod`] : []
  })
}

const waiting = new Set([
  "WaitingForReady",
  "SourceNotReady",
  "NotAccepted",
  "Unschedulable",
  "QuotaExceeded",
  "PullingImage",
])
const slackMs = 120_000

/** S31: what waits for longer than its deadline fails. */
function deadlines({ object, type, at }: Commit): string[] {
  if (!isCanary(object) || type === "DELETED") return []
  const { phase, run } = object.status ?? {}
  if (phase !== "Progressing" && phase !== "Promoting") return []
  if (object.spec.suspend || !waiting.has(run?.reason)) return []
  const overAt = timeOf(run.progressAt) + (object.spec.progressDeadlineSeconds ?? 600) * 1000
  return at > overAt + slackMs ? [`S31 ${phase} waits (${run.reason}) since ${run.progressAt}`] : []
}

const held = "autoimagemanager.io/held"

/** S32: a hold is released before another part of aim has the workload, and no pod is failed over while its run goes back. */
function holders({ object, type }: Commit, before: Json | undefined, live: Live): string[] {
  if (type === "DELETED" || !before) return []
  const [was, is] = [before.metadata.labels?.[held], object.metadata.labels?.[held]]
  if (was !== undefined && is !== undefined && was !== is) return [`S32 the hold went from ${was} to ${is}`]
  if (object.kind !== "Pod" || JSON.stringify(decisionOf(object)) === JSON.stringify(decisionOf(before))) return []
  if (!String(decisionOf(object).by ?? "").startsWith("alternateimagesource/")) return []
  const hashes = ["pod-template-hash", "controller-revision-hash"].map(label => object.metadata.labels?.[label])
  const root = rootOf(live, object)
  return canariesIn(live, object.metadata.namespace).flatMap(({ spec, status }) => {
    const isTarget = root?.metadata.name === spec.targetRef.name || root?.metadata.name === status?.run?.target.workload
    const isGoingBack = status?.phase === "Failed" && hashes.includes(status.run?.target.hash)
    return isTarget && isGoingBack ? ["S32 a pod was failed over while its run went back"] : []
  })
}
