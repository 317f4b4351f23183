import { formatInstant, type Instant, parseInstant } from "#lib/instant.ts"
import type { Json, Obj } from "../../object.ts"
import { type Condition, findCondition } from "./conditions.ts"
import { intOrPercent } from "./int-or-percent.ts"
import { createdAt } from "./pods.ts"
import { same } from "./same.ts"

export const revisionKey = "deployment.kubernetes.io/revision"
const historyKey = "deployment.kubernetes.io/revision-history"
export const desiredKey = "deployment.kubernetes.io/desired-replicas"
export const maxKey = "deployment.kubernetes.io/max-replicas"
export const hashKey = "pod-template-hash"
const notCopied = new Set([
  "kubectl.kubernetes.io/last-applied-configuration",
  "deprecated.deployment.rollback.to",
  revisionKey,
  historyKey,
  desiredKey,
  maxKey,
])
export const noLimit = 2 ** 31 - 1
const historyCharactersMax = 2000

/** Undefined if one of the ReplicaSets does not report it. */
export function terminatingIn(replicaSets: readonly Obj[]): number | undefined {
  let total = 0
  for (const { status = {} } of replicaSets) {
    if (status.terminatingReplicas !== undefined) total += status.terminatingReplicas
    else if (status.observedGeneration) return undefined
  }
  return total
}

export const sum = (replicaSets: readonly Obj[], count: (replicaSet: Obj) => number | undefined) =>
  replicaSets.reduce((total, replicaSet) => total + (count(replicaSet) ?? 0), 0)
export const wanted = (replicaSets: readonly Obj[]) => sum(replicaSets, ({ spec }) => spec.replicas)
export const running = (replicaSets: readonly Obj[]) => sum(replicaSets, ({ status }) => status?.replicas)
export const available = (replicaSets: readonly Obj[]) => sum(replicaSets, ({ status }) => status?.availableReplicas)

export const isInUse = ({ spec }: Obj) => spec.replicas > 0
export const isRolling = ({ spec }: Obj) => spec.strategy?.type === "RollingUpdate"
export const hasDeadline = ({ spec: { progressDeadlineSeconds: seconds } }: Obj) =>
  seconds !== undefined && seconds !== noLimit
export const naturalNumber = (text: string | undefined) => (text && /^\d+$/.test(text) ? Number(text) : undefined)
export const revisionOf = ({ metadata }: Obj) => Number(metadata.annotations?.[revisionKey] ?? 0) || 0

export const byCreation = (a: Obj, b: Obj) =>
  (createdAt(a) ?? 0) - (createdAt(b) ?? 0) || (a.metadata.name < b.metadata.name ? -1 : 1)

export function maxSurge(deployment: Obj): number {
  if (!isRolling(deployment)) return 0
  return intOrPercent(deployment.spec.strategy.rollingUpdate?.maxSurge, deployment.spec.replicas, "up")
}

export function maxUnavailable(deployment: Obj): number {
  const { replicas, strategy } = deployment.spec
  if (!isRolling(deployment) || replicas === 0) return 0
  const allowed = intOrPercent(strategy.rollingUpdate?.maxUnavailable, replicas, "down")
  // With neither surge nor unavailability a rollout could not progress.
  return Math.min(replicas, allowed === 0 && maxSurge(deployment) === 0 ? 1 : allowed)
}

export function newestReplicas(deployment: Obj, all: readonly Obj[], size: number): number {
  const { replicas } = deployment.spec
  if (!isRolling(deployment)) return replicas
  const room = replicas + maxSurge(deployment) - wanted(all)
  return room <= 0 ? size : size + Math.min(room, replicas - size)
}

export const isSaturated = (deployment: Obj, { spec, status, metadata }: Obj) =>
  spec.replicas === deployment.spec.replicas &&
  metadata.annotations?.[desiredKey] === String(deployment.spec.replicas) &&
  (status?.availableReplicas ?? 0) === deployment.spec.replicas

export const isComplete = ({ spec, metadata }: Obj, status: Json) =>
  (status.updatedReplicas ?? 0) === spec.replicas &&
  (status.replicas ?? 0) === spec.replicas &&
  (status.availableReplicas ?? 0) === spec.replicas &&
  (status.observedGeneration ?? 0) >= (metadata.generation ?? 0)

export function isProgressing(before: Json, after: Json): boolean {
  const count = (status: Json, name: string) => status[name] ?? 0
  const oldOnes = (status: Json) => count(status, "replicas") - count(status, "updatedReplicas")
  const grew = (name: string) => count(after, name) > count(before, name)
  return (
    grew("updatedReplicas") || oldOnes(after) < oldOnes(before) || grew("readyReplicas") || grew("availableReplicas")
  )
}

export function hasTimedOut(deployment: Obj, conditions: readonly Condition[], now: Instant): boolean {
  const condition = findCondition(conditions, "Progressing")
  if (!condition || condition.reason === "NewReplicaSetAvailable") return false
  if (condition.reason === "ProgressDeadlineExceeded") return true
  return (parseInstant(condition.lastUpdateTime) ?? now) + deployment.spec.progressDeadlineSeconds * 1000 < now
}

export function deadlineInMs(
  deployment: Obj,
  current: Condition | undefined,
  status: Json,
  now: Instant,
): number | undefined {
  if (!hasDeadline(deployment) || !current) return undefined
  if (isComplete(deployment, status) || current.reason === "ProgressDeadlineExceeded") return undefined
  const left = (parseInstant(current.lastUpdateTime) ?? now) + deployment.spec.progressDeadlineSeconds * 1000 - now
  return left < 1000 ? Math.max(5, left + 1) : left + 1000
}

export const progressing = (now: Instant, status: Condition["status"], reason: string, message: string): Condition => ({
  type: "Progressing",
  status,
  lastUpdateTime: formatInstant(now),
  lastTransitionTime: formatInstant(now),
  reason,
  message,
})

/** The Deployment's annotations, the revision, and the earlier revisions of this ReplicaSet (after a rollback). */
export function newestAnnotations(deployment: Obj, own: Readonly<Record<string, string>>, revision: string) {
  const annotations: Record<string, string> = { ...own }
  for (const [key, value] of Object.entries(deployment.metadata.annotations ?? {}))
    if (!notCopied.has(key)) annotations[key] = value
  const before = own[revisionKey]
  if (Number(before ?? 0) >= Number(revision)) return annotations
  annotations[revisionKey] = revision
  if (before !== undefined) {
    const served = [...(own[historyKey] ?? "").split(",").filter(Boolean), before]
    while (served.length > 1 && served.join(",").length > historyCharactersMax) served.shift()
    annotations[historyKey] = served.join(",")
  }
  return annotations
}

export function isSameTemplate(a: Json, b: Json): boolean {
  return same(withoutHash(a), withoutHash(b))
}

function withoutHash(template: Json): Json {
  if (!template.metadata?.labels?.[hashKey]) return template
  const { [hashKey]: _, ...labels } = template.metadata.labels
  return { ...template, metadata: { ...template.metadata, labels } }
}
