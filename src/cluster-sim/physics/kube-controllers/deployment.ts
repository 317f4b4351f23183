import { formatInstant, type Instant, parseInstant } from "#lib/instant.ts"
import { isEmptySelector, selects } from "#lib/label-selector.ts"
import type { Json, Obj } from "../../object.ts"
import { StatusError } from "../../status-error.ts"
import { createRecorder } from "../recorder.ts"
import type { Part, PhysicsWorld } from "../world.ts"
import { type Condition, findCondition, withCondition, withoutCondition } from "./conditions.ts"
import { intOrPercent } from "./int-or-percent.ts"
import { keyOf, loop, nameOf, servedKind } from "./loop.ts"
import { claim, manager, ownedIndex, ownersToWake, tolerateAbsence } from "./owned.ts"
import { podTemplateHash } from "./pod-template-hash.ts"
import { controllerOf, createdAt, isTerminal, ownerReference } from "./pods.ts"
import { isNamespaceTerminating, positive } from "./replica-set.ts"
import { same } from "./same.ts"

export type Snapshot = {
  deployment: Obj
  replicaSets: readonly Obj[] // its own
  /** Whether a pod of its ReplicaSets, but for the given one, still runs or ends. */
  hasPodsBeside(replicaSet: Obj | undefined): boolean
  now: Instant
}

export type Action =
  | { do: "create"; replicaSet: Json }
  | { do: "update"; replicaSet: Obj }
  | { do: "scale"; replicaSet: Obj; from: number; to: number }
  | { do: "delete"; replicaSet: Obj }
  | { do: "status"; status: Json; revision?: string }

export type Plan = {
  actions: Action[] // in order
  /** The rest of this look would have been refused as a conflict: look again at once. */
  again: boolean
  lookAgainInMs?: number
}

const revisionKey = "deployment.kubernetes.io/revision"
const historyKey = "deployment.kubernetes.io/revision-history"
const desiredKey = "deployment.kubernetes.io/desired-replicas"
const maxKey = "deployment.kubernetes.io/max-replicas"
const hashKey = "pod-template-hash"
const notCopied = new Set([
  "kubectl.kubernetes.io/last-applied-configuration",
  "deprecated.deployment.rollback.to",
  revisionKey,
  historyKey,
  desiredKey,
  maxKey,
])
const noLimit = 2 ** 31 - 1
const historyCharactersMax = 2000

/**
 * Decides the next step of one Deployment.
 *
 * The real controller writes the Deployment's status up to twice in one look, the second time with the version it had
 * read before the first: that write is refused and the look repeated. What a client sees of this is kept: the first
 * status (a new revision, a pause) stands alone for a moment.
 */
function plan(snapshot: Snapshot): Plan {
  const { deployment, now } = snapshot
  if (isEmptySelector(deployment.spec.selector)) return { actions: [], again: false }
  const draft = createDraft(snapshot)

  if (deployment.metadata.deletionTimestamp) {
    findNew(draft, { create: false })
    reportCounts(draft)
  } else {
    notePause(draft, now)
    if (deployment.spec.paused || isScaled(draft)) resize(draft)
    else if (isRolling(deployment)) roll(draft)
    else recreate(draft)
  }
  const { actions, again, lookAgainInMs } = draft
  return { actions, again, ...(lookAgainInMs !== undefined && { lookAgainInMs }) }
}

/** What one look has found and decided so far. */
type Draft = Snapshot & {
  status: Json // of the Deployment, with what was noted in this look
  newest: Obj | undefined // the ReplicaSet of the present template
  old: Obj[]
  actions: Action[]
  again: boolean
  lookAgainInMs?: number
}

function createDraft(snapshot: Snapshot): Draft {
  const replicaSets = [...snapshot.replicaSets].sort(byCreation)
  const newest = replicaSets.find(({ spec }) => isSameTemplate(spec.template, snapshot.deployment.spec.template))
  const old = replicaSets.filter(replicaSet => replicaSet !== newest)
  return { ...snapshot, status: snapshot.deployment.status ?? {}, newest, old, actions: [], again: false }
}

/** The ReplicaSet of the present template, its annotations brought up to date, or made. */
function findNew(draft: Draft, { create }: { create: boolean }) {
  const { deployment, newest, old, now } = draft
  const revision = String(Math.max(0, ...old.map(revisionOf)) + 1)
  const { minReadySeconds = 0 } = deployment.spec
  if (newest) {
    const annotations = newestAnnotations(deployment, newest.metadata.annotations ?? {}, revision)
    if (
      !same(annotations, newest.metadata.annotations ?? {}) ||
      (newest.spec.minReadySeconds ?? 0) !== minReadySeconds
    ) {
      draft.newest = {
        ...newest,
        metadata: { ...newest.metadata, annotations },
        spec: { ...newest.spec, minReadySeconds },
      }
      draft.actions.push({ do: "update", replicaSet: draft.newest })
      return
    }
    const known = annotations[revisionKey]!
    const isFound = hasDeadline(deployment) && !findCondition(draft.status.conditions, "Progressing")
    if (isFound)
      note(draft, progressing(now, "True", "FoundNewReplicaSet", `Found new replica set "${newest.metadata.name}"`))
    if (isFound || deployment.metadata.annotations?.[revisionKey] !== known) writeEarly(draft, known)
    return
  }
  if (!create) return

  const hash = podTemplateHash(deployment.spec.template, draft.status.collisionCount)
  const labels = { ...deployment.spec.template.metadata?.labels, [hashKey]: hash }
  const { selector, template } = deployment.spec
  const replicas = newestReplicas(deployment, old, 0)
  const replicaSet = {
    apiVersion: "apps/v1",
    kind: "ReplicaSet",
    metadata: {
      name: `${deployment.metadata.name.slice(0, 252 - hash.length)}-${hash}`,
      namespace: deployment.metadata.namespace,
      labels,
      annotations: {
        ...newestAnnotations(deployment, {}, revision),
        [desiredKey]: String(deployment.spec.replicas),
        [maxKey]: String(deployment.spec.replicas + maxSurge(deployment)),
      },
      ownerReferences: [ownerReference(deployment)],
    },
    spec: {
      replicas,
      ...positive("minReadySeconds", minReadySeconds),
      selector: { ...selector, matchLabels: { ...selector.matchLabels, [hashKey]: hash } },
      template: { ...template, metadata: { ...template.metadata, labels } },
    },
  }
  draft.actions.push({ do: "create", replicaSet })
  if (hasDeadline(deployment))
    note(
      draft,
      progressing(now, "True", "NewReplicaSetCreated", `Created new replica set "${replicaSet.metadata.name}"`),
    )
  writeEarly(draft, revision)
}

/** One step of a rolling update: up with the new within the surge, then down with the old within what may be missing. */
function roll(draft: Draft) {
  const { deployment } = draft
  findNew(draft, { create: true })
  const { newest, old } = draft
  if (!newest) return // just made; the look is repeated
  const { replicas } = deployment.spec

  const size = newest.spec.replicas
  const target = size > replicas ? replicas : newestReplicas(deployment, [...old, newest], size)
  if (size !== replicas && target !== size) {
    scale(draft, newest, target)
    return reportRollout(draft)
  }

  const active = old.filter(isInUse).sort(byCreation)
  const minAvailable = replicas - maxUnavailable(deployment)
  const newestUnavailable = size - available([newest])
  const mayGo = wanted([...old, newest]) - minAvailable - newestUnavailable
  if (wanted(active) > 0 && mayGo > 0 && shrinkOld(draft, active, mayGo, minAvailable)) return reportRollout(draft)

  if (isComplete(deployment, deployment.status ?? {})) cleanUp(draft)
  reportRollout(draft)
}

/** Pods that serve nobody go first: kept, they would use up what may be missing, and the rollout would hang on them. */
function shrinkOld(draft: Draft, active: Obj[], mayGo: number, minAvailable: number): boolean {
  const availableAll = available([...active, draft.newest!])
  const sizes = new Map(active.map(replicaSet => [replicaSet, replicaSet.spec.replicas as number]))
  let left = mayGo
  for (const replicaSet of active) {
    if (left <= 0) break
    const unhealthy = replicaSet.spec.replicas - available([replicaSet])
    // It has not come down yet from its last scaling: what is available is not known, and nothing may be built on it.
    if (unhealthy < 0) return false
    if (unhealthy === 0) continue
    const going = Math.min(left, unhealthy)
    sizes.set(replicaSet, replicaSet.spec.replicas - going)
    left -= going
    scale(draft, replicaSet, sizes.get(replicaSet)!)
  }
  let spare = availableAll - minAvailable
  for (const replicaSet of active) {
    const size = sizes.get(replicaSet)!
    const going = Math.min(size, spare)
    if (going <= 0) continue
    spare -= going
    sizes.set(replicaSet, size - going)
    scale(draft, { ...replicaSet, spec: { ...replicaSet.spec, replicas: size } }, size - going)
  }
  return active.some(replicaSet => sizes.get(replicaSet) !== replicaSet.spec.replicas)
}

/** All the old ones down and gone, then the new one up. */
function recreate(draft: Draft) {
  const { deployment } = draft
  findNew(draft, { create: false })
  const active = draft.old.filter(isInUse)
  for (const replicaSet of active) scale(draft, replicaSet, 0)
  if (active.length > 0) return reportRollout(draft)
  if (running(draft.old) > 0 || draft.hasPodsBeside(draft.newest)) return reportRollout(draft)
  if (!draft.newest) return findNew(draft, { create: true })
  if (draft.newest.spec.replicas !== deployment.spec.replicas) scale(draft, draft.newest, deployment.spec.replicas)
  if (isComplete(deployment, deployment.status ?? {})) cleanUp(draft)
  reportRollout(draft)
}

/** A ReplicaSet in use that remembers another spec.replicas: the user scaled, and that is not a rollout. */
function isScaled(draft: Draft): boolean {
  findNew(draft, { create: false })
  const all = draft.newest ? [...draft.old, draft.newest] : draft.old
  return all.filter(isInUse).some(({ metadata }) => {
    const desired = naturalNumber(metadata.annotations?.[desiredKey])
    return desired !== undefined && desired !== draft.deployment.spec.replicas
  })
}

/** Gives a scaled or paused Deployment its size without rolling it on: each ReplicaSet gets its share. */
function resize(draft: Draft) {
  const { deployment } = draft
  const { replicas } = deployment.spec
  findNew(draft, { create: false })
  const { newest, old } = draft
  const all = newest ? [...old, newest] : old
  const active = all.filter(isInUse)

  if (active.length <= 1) {
    const only = active[0] ?? newest ?? [...old].sort(byCreation).at(-1)
    if (only && only.spec.replicas !== replicas) scale(draft, only, replicas)
  } else if (newest && isSaturated(deployment, newest)) {
    for (const replicaSet of old.filter(isInUse)) scale(draft, replicaSet, 0)
  } else if (isRolling(deployment)) resizeInProportion(draft, active)

  if (deployment.spec.paused) cleanUp(draft)
  reportCounts(draft)
}

function resizeInProportion(draft: Draft, active: Obj[]) {
  const { deployment } = draft
  const { replicas } = deployment.spec
  const toAdd = (replicas > 0 ? replicas + maxSurge(deployment) : 0) - wanted(active)
  // Larger ones first; among equals the newer one grows and the older one shrinks first.
  const ordered = [...active].sort(
    (a, b) => b.spec.replicas - a.spec.replicas || (toAdd > 0 ? byCreation(b, a) : byCreation(a, b)),
  )
  let added = 0
  const sizes = ordered.map(replicaSet => {
    const share = toAdd === 0 || toAdd === added ? 0 : fraction(deployment, replicaSet)
    const left = toAdd - added
    const change = toAdd === 0 || left === 0 ? 0 : toAdd > 0 ? Math.min(share, left) : Math.max(share, left)
    added += change
    return replicaSet.spec.replicas + change
  })
  for (const [index, replicaSet] of ordered.entries()) {
    const size = index === 0 && toAdd !== 0 ? Math.max(0, sizes[index]! + toAdd - added) : sizes[index]!
    scale(draft, replicaSet, size, { always: true })
  }
}

function fraction(deployment: Obj, replicaSet: Obj): number {
  const size = replicaSet.spec.replicas
  if (deployment.spec.replicas === 0) return -size
  const before = naturalNumber(replicaSet.metadata.annotations?.[maxKey]) || (deployment.status?.replicas ?? 0)
  if (before === 0) return 0
  const scaled = (size * (deployment.spec.replicas + maxSurge(deployment))) / before
  return roundHalfAway(scaled) - size
}

const roundHalfAway = (value: number) => (value < 0 ? Math.ceil(value - 0.5) : Math.floor(value + 0.5))

function scale(draft: Draft, replicaSet: Obj, to: number, { always = false } = {}) {
  const { deployment } = draft
  const from = replicaSet.spec.replicas
  if (!always && from === to) return
  const annotations = {
    ...replicaSet.metadata.annotations,
    [desiredKey]: String(deployment.spec.replicas),
    [maxKey]: String(deployment.spec.replicas + maxSurge(deployment)),
  }
  if (from === to && same(annotations, replicaSet.metadata.annotations)) return
  const scaled = {
    ...replicaSet,
    metadata: { ...replicaSet.metadata, annotations },
    spec: { ...replicaSet.spec, replicas: to },
  }
  draft.actions.push({ do: "scale", replicaSet: scaled, from, to })
}

/** Old ReplicaSets beyond the history that is kept, the oldest revisions first, if nothing is left of them. */
function cleanUp(draft: Draft) {
  const limit = draft.deployment.spec.revisionHistoryLimit
  if (limit === undefined || limit === noLimit) return
  const alive = draft.old.filter(({ metadata }) => !metadata.deletionTimestamp)
  const surplus = alive.length - limit
  if (surplus <= 0) return
  const oldest = alive.sort((a, b) => revisionOf(a) - revisionOf(b) || byCreation(a, b)).slice(0, surplus)
  for (const replicaSet of oldest) {
    const { spec, status = {}, metadata } = replicaSet
    if (spec.replicas !== 0 || (status.replicas ?? 0) !== 0) continue
    if ((metadata.generation ?? 0) > (status.observedGeneration ?? 0)) continue
    draft.actions.push({ do: "delete", replicaSet })
  }
}

function notePause(draft: Draft, now: Instant) {
  const { deployment } = draft
  if (!hasDeadline(deployment)) return
  const condition = findCondition(draft.status.conditions, "Progressing")
  if (condition?.reason === "ProgressDeadlineExceeded") return
  const isNoted = condition?.reason === "DeploymentPaused"
  if (Boolean(deployment.spec.paused) === isNoted) return
  note(
    draft,
    deployment.spec.paused
      ? progressing(now, "Unknown", "DeploymentPaused", "Deployment is paused")
      : progressing(now, "Unknown", "DeploymentResumed", "Deployment is resumed"),
  )
  writeEarly(draft)
}

function note(draft: Draft, condition: Condition) {
  draft.status = { ...draft.status, conditions: withCondition(draft.status.conditions ?? [], condition) }
}

/** A status written before the end of the look; every later write of it in this look would be refused. */
function writeEarly(draft: Draft, revision?: string) {
  if (draft.again) return
  draft.actions.push({ do: "status", status: draft.status, ...(revision !== undefined && { revision }) })
  draft.again = true
}

function write(draft: Draft, status: Json) {
  if (draft.again) return
  draft.actions.push({ do: "status", status })
}

function reportCounts(draft: Draft) {
  const status = counts(draft)
  if (!same(status, draft.status)) write(draft, status)
}

function reportRollout(draft: Draft) {
  const { deployment, newest, old, now } = draft
  const { name } = deployment.metadata
  const next = counts(draft)
  let conditions: Condition[] = next.conditions ?? []
  const current = findCondition(draft.status.conditions, "Progressing")
  const who = newest ? `ReplicaSet "${newest.metadata.name}"` : `Deployment "${name}"`

  if (!hasDeadline(deployment)) conditions = withoutCondition(conditions, "Progressing")
  const wasComplete =
    (next.replicas ?? 0) === (next.updatedReplicas ?? 0) && current?.reason === "NewReplicaSetAvailable"
  if (hasDeadline(deployment) && !wasComplete) {
    if (isComplete(deployment, next))
      conditions = withCondition(
        conditions,
        progressing(now, "True", "NewReplicaSetAvailable", `${who} has successfully progressed.`),
      )
    else if (isProgressing(draft.status, next)) {
      const condition = progressing(now, "True", "ReplicaSetUpdated", `${who} is progressing.`)
      if (current?.status === "True" && current.lastTransitionTime)
        condition.lastTransitionTime = current.lastTransitionTime
      conditions = withCondition(withoutCondition(conditions, "Progressing"), condition)
    } else if (hasTimedOut(deployment, conditions, now))
      conditions = withCondition(
        conditions,
        progressing(now, "False", "ProgressDeadlineExceeded", `${who} has timed out progressing.`),
      )
  }

  const failure = [newest, ...old]
    .flatMap(replicaSet => replicaSet?.status?.conditions ?? [])
    .find(({ type }: Condition) => type === "ReplicaFailure")
  if (!failure) conditions = withoutCondition(conditions, "ReplicaFailure")
  else {
    const { lastTransitionTime: time } = failure
    conditions = withCondition(conditions, { ...failure, lastUpdateTime: time, lastTransitionTime: time })
  }

  const { conditions: _, ...rest } = next
  const status = conditions.length > 0 ? { ...rest, conditions } : rest
  if (!same(status, draft.status)) return write(draft, status)
  const deadline = deadlineInMs(deployment, current, status, now)
  if (deadline !== undefined) draft.lookAgainInMs = deadline
}

/** The status without what is said about progress. */
function counts(draft: Draft): Json {
  const { deployment, newest, old, now } = draft
  const all = newest ? [...old, newest] : old
  const availableReplicas = available(all)
  const isServing = availableReplicas >= deployment.spec.replicas - maxUnavailable(deployment)
  const time = formatInstant(now)
  const { collisionCount } = draft.status
  const terminating = terminatingIn(all)
  return {
    observedGeneration: deployment.metadata.generation,
    ...positive("replicas", running(all)),
    ...positive("updatedReplicas", newest ? running([newest]) : 0),
    ...positive(
      "readyReplicas",
      sum(all, ({ status }) => status?.readyReplicas),
    ),
    ...positive("availableReplicas", availableReplicas),
    ...positive("unavailableReplicas", Math.max(0, wanted(all) - availableReplicas)),
    ...(terminating !== undefined && { terminatingReplicas: terminating }),
    ...(collisionCount !== undefined && { collisionCount }),
    conditions: withCondition(draft.status.conditions ?? [], {
      type: "Available",
      status: isServing ? "True" : "False",
      lastUpdateTime: time,
      lastTransitionTime: time,
      reason: isServing ? "MinimumReplicasAvailable" : "MinimumReplicasUnavailable",
      message: isServing ? "Deployment has minimum availability." : "Deployment does not have minimum availability.",
    }),
  }
}

/** Unknown as soon as one ReplicaSet that was looked at does not say. */
function terminatingIn(replicaSets: readonly Obj[]): number | undefined {
  let total = 0
  for (const { status = {} } of replicaSets) {
    if (status.terminatingReplicas !== undefined) total += status.terminatingReplicas
    else if (status.observedGeneration) return undefined
  }
  return total
}

const sum = (replicaSets: readonly Obj[], count: (replicaSet: Obj) => number | undefined) =>
  replicaSets.reduce((total, replicaSet) => total + (count(replicaSet) ?? 0), 0)
const wanted = (replicaSets: readonly Obj[]) => sum(replicaSets, ({ spec }) => spec.replicas)
const running = (replicaSets: readonly Obj[]) => sum(replicaSets, ({ status }) => status?.replicas)
const available = (replicaSets: readonly Obj[]) => sum(replicaSets, ({ status }) => status?.availableReplicas)

const isInUse = ({ spec }: Obj) => spec.replicas > 0
const isRolling = ({ spec }: Obj) => spec.strategy?.type === "RollingUpdate"
const hasDeadline = ({ spec: { progressDeadlineSeconds: seconds } }: Obj) =>
  seconds !== undefined && seconds !== noLimit
const naturalNumber = (text: string | undefined) => (text && /^\d+$/.test(text) ? Number(text) : undefined)
const revisionOf = ({ metadata }: Obj) => Number(metadata.annotations?.[revisionKey] ?? 0) || 0

const byCreation = (a: Obj, b: Obj) =>
  (createdAt(a) ?? 0) - (createdAt(b) ?? 0) || (a.metadata.name < b.metadata.name ? -1 : 1)

function maxSurge(deployment: Obj): number {
  if (!isRolling(deployment)) return 0
  return intOrPercent(deployment.spec.strategy.rollingUpdate?.maxSurge, deployment.spec.replicas, "up")
}

function maxUnavailable(deployment: Obj): number {
  const { replicas, strategy } = deployment.spec
  if (!isRolling(deployment) || replicas === 0) return 0
  const allowed = intOrPercent(strategy.rollingUpdate?.maxUnavailable, replicas, "down")
  // Neither one more nor one less would be a rollout that cannot move.
  return Math.min(replicas, allowed === 0 && maxSurge(deployment) === 0 ? 1 : allowed)
}

function newestReplicas(deployment: Obj, all: readonly Obj[], size: number): number {
  const { replicas } = deployment.spec
  if (!isRolling(deployment)) return replicas
  const room = replicas + maxSurge(deployment) - wanted(all)
  return room <= 0 ? size : size + Math.min(room, replicas - size)
}

const isSaturated = (deployment: Obj, { spec, status, metadata }: Obj) =>
  spec.replicas === deployment.spec.replicas &&
  metadata.annotations?.[desiredKey] === String(deployment.spec.replicas) &&
  (status?.availableReplicas ?? 0) === deployment.spec.replicas

const isComplete = ({ spec, metadata }: Obj, status: Json) =>
  (status.updatedReplicas ?? 0) === spec.replicas &&
  (status.replicas ?? 0) === spec.replicas &&
  (status.availableReplicas ?? 0) === spec.replicas &&
  (status.observedGeneration ?? 0) >= (metadata.generation ?? 0)

function isProgressing(before: Json, after: Json): boolean {
  const count = (status: Json, name: string) => status[name] ?? 0
  const oldOnes = (status: Json) => count(status, "replicas") - count(status, "updatedReplicas")
  const grew = (name: string) => count(after, name) > count(before, name)
  return (
    grew("updatedReplicas") || oldOnes(after) < oldOnes(before) || grew("readyReplicas") || grew("availableReplicas")
  )
}

function hasTimedOut(deployment: Obj, conditions: readonly Condition[], now: Instant): boolean {
  const condition = findCondition(conditions, "Progressing")
  if (!condition || condition.reason === "NewReplicaSetAvailable") return false
  if (condition.reason === "ProgressDeadlineExceeded") return true
  return (parseInstant(condition.lastUpdateTime) ?? now) + deployment.spec.progressDeadlineSeconds * 1000 < now
}

function deadlineInMs(deployment: Obj, current: Condition | undefined, status: Json, now: Instant): number | undefined {
  if (!hasDeadline(deployment) || !current) return undefined
  if (isComplete(deployment, status) || current.reason === "ProgressDeadlineExceeded") return undefined
  const left = (parseInstant(current.lastUpdateTime) ?? now) + deployment.spec.progressDeadlineSeconds * 1000 - now
  return left < 1000 ? Math.max(5, left + 1) : left + 1000
}

const progressing = (now: Instant, status: Condition["status"], reason: string, message: string): Condition => ({
  type: "Progressing",
  status,
  lastUpdateTime: formatInstant(now),
  lastTransitionTime: formatInstant(now),
  reason,
  message,
})

/** The Deployment's annotations, the revision, and the revisions this ReplicaSet served before (after a rollback). */
function newestAnnotations(deployment: Obj, own: Readonly<Record<string, string>>, revision: string) {
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

function isSameTemplate(a: Json, b: Json): boolean {
  return same(withoutHash(a), withoutHash(b))
}

function withoutHash(template: Json): Json {
  if (!template.metadata?.labels?.[hashKey]) return template
  const { [hashKey]: _, ...labels } = template.metadata.labels
  return { ...template, metadata: { ...template.metadata, labels } }
}

/** Rolls a Deployment's ReplicaSets. Reads Deployments, ReplicaSets and Pods; writes ReplicaSets and its own status. */
export function deploymentController(world: PhysicsWorld): Part {
  const { storage, clock } = world
  const deployments = servedKind(storage, "apps/v1", "Deployment")
  const replicaSetKind = servedKind(storage, "apps/v1", "ReplicaSet")
  const owned = ownedIndex(storage, "apps/v1", "ReplicaSet", "Deployment")
  const pods = ownedIndex(storage, "v1", "Pod", "ReplicaSet")
  const record = createRecorder(world, "deployment-controller")

  const adopters = (replicaSet: Obj) =>
    Object.keys(replicaSet.metadata.labels ?? {}).length === 0
      ? []
      : storage
          .list(deployments, { namespace: replicaSet.metadata.namespace })
          .items.filter(
            ({ spec }) => !isEmptySelector(spec.selector) && selects(spec.selector, replicaSet.metadata.labels),
          )

  /** The end of a pod matters to a Deployment that waits for the old ones to be gone. */
  function* deploymentOfPod(pod: Obj) {
    const owner = controllerOf(pod)
    if (owner?.kind !== "ReplicaSet") return
    const replicaSet = storage.find(replicaSetKind, { namespace: pod.metadata.namespace, name: owner.name })
    const deployment = replicaSet && controllerOf(replicaSet)
    if (deployment?.kind === "Deployment") yield `${pod.metadata.namespace}/${deployment.name}`
  }

  function writeStatus(deployment: Obj, status: Json, revision?: string) {
    const { metadata } = deployment
    const annotations = { ...metadata.annotations, ...(revision !== undefined && { [revisionKey]: revision }) }
    const object = { ...deployment, metadata: { ...metadata, annotations }, status }
    storage.update(deployments, object, { ...manager, subresource: "status" })
  }

  function apply(deployment: Obj, action: Action) {
    switch (action.do) {
      case "status":
        writeStatus(deployment, action.status, action.revision)
        break
      case "update":
        storage.update(replicaSetKind, action.replicaSet, manager)
        break
      case "delete":
        tolerateAbsence(() => storage.delete(replicaSetKind, action.replicaSet.metadata))
        break
      case "scale": {
        const { replicaSet, from, to } = action
        // Two scalings of one ReplicaSet in one look: the second stands on the first.
        const current = storage.get(replicaSetKind, replicaSet.metadata)
        const { resourceVersion } = current.metadata
        storage.update(
          replicaSetKind,
          { ...replicaSet, metadata: { ...replicaSet.metadata, resourceVersion } },
          manager,
        )
        if (from !== to) {
          const direction = from < to ? "up" : "down"
          const { name } = replicaSet.metadata
          const message = `Scaled ${direction} replica set ${name} from ${from} to ${to}`
          record(deployment, "Normal", "ScalingReplicaSet", message)
        }
        break
      }
      case "create":
        create(deployment, action.replicaSet)
    }
  }

  function create(deployment: Obj, replicaSet: Json) {
    const { name } = replicaSet.metadata
    try {
      storage.create(replicaSetKind, replicaSet, manager)
    } catch (error) {
      if (!(error instanceof StatusError) || isNamespaceTerminating(error)) throw error
      const status = deployment.status ?? {}
      if (error.reason === "AlreadyExists") {
        // Not one of ours, or we would have found it: two templates with one hash.
        writeStatus(deployment, { ...status, collisionCount: (status.collisionCount ?? 0) + 1 })
        throw error
      }
      const message = `Failed to create new replica set "${name}": ${error.message}`
      if (hasDeadline(deployment)) {
        const condition = progressing(clock.now(), "False", "ReplicaSetCreateError", message)
        const conditions = withCondition(status.conditions ?? [], condition)
        if (!same(conditions, status.conditions)) writeStatus(deployment, { ...status, conditions })
      }
      record(deployment, "Warning", "ReplicaSetCreateError", message)
      throw error
    }
    if (replicaSet.spec.replicas > 0) {
      const message = `Scaled up replica set ${name} from 0 to ${replicaSet.spec.replicas}`
      record(deployment, "Normal", "ScalingReplicaSet", message)
    }
  }

  return loop(world, {
    name: "deployment-controller",
    begin() {
      const stops = [owned.begin(), pods.begin()]
      return () => stops.forEach(stop => void stop())
    },
    watches: [
      { apiVersion: "apps/v1", kind: "Deployment", keys: ({ object }) => [keyOf(object)] },
      { apiVersion: "apps/v1", kind: "ReplicaSet", keys: change => ownersToWake(change, "Deployment", adopters) },
      {
        apiVersion: "v1",
        kind: "Pod",
        keys: ({ type, object }) => (type === "DELETED" ? deploymentOfPod(object) : []),
      },
    ],
    reconcile(key) {
      const deployment = storage.find(deployments, nameOf(key))
      if (!deployment) return undefined
      const { selector } = deployment.spec
      const replicaSets = claim({ storage, kind: replicaSetKind, owner: deployment, owned }, replicaSet =>
        selects(selector, replicaSet.metadata.labels),
      )
      const next = plan({
        deployment,
        replicaSets,
        now: clock.now(),
        hasPodsBeside: newest =>
          replicaSets.some(replicaSet => replicaSet !== newest && pods.of(replicaSet).some(pod => !isTerminal(pod))),
      })
      try {
        for (const action of next.actions) apply(deployment, action)
      } catch (error) {
        if (error instanceof StatusError && isNamespaceTerminating(error)) return undefined
        throw error
      }
      return next.again ? 5 : next.lookAgainInMs
    },
  })
}
