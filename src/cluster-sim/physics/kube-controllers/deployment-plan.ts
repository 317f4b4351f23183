import { isEmptySelector } from "#lib/label-selector.ts"
import type { Obj } from "../../object.ts"
import { findCondition } from "./conditions.ts"
import { positive } from "./counts.ts"
import {
  available,
  byCreation,
  desiredKey,
  hasDeadline,
  hashKey,
  isComplete,
  isInUse,
  isRolling,
  isSameTemplate,
  isSaturated,
  maxKey,
  maxSurge,
  maxUnavailable,
  naturalNumber,
  newestAnnotations,
  newestReplicas,
  noLimit,
  progressing,
  revisionKey,
  revisionOf,
  running,
  wanted,
} from "./deployment-facts.ts"
import {
  type Draft,
  note,
  notePause,
  type Plan,
  reportCounts,
  reportRollout,
  type Snapshot,
  writeEarly,
} from "./deployment-status.ts"
import { podTemplateHash } from "./pod-template-hash.ts"
import { ownerReference } from "./pods.ts"
import { same } from "./same.ts"

/**
 * Decides the next step of one Deployment.
 *
 * The real controller writes the Deployment's status up to twice in one reconcile. The second write still has the
 * version from before the first one, so it is refused and the reconcile is repeated. Clients can see this, so it is
 * simulated: for a moment there is only the first status (a new revision, a pause).
 */
export function plan(snapshot: Snapshot): Plan {
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

function createDraft(snapshot: Snapshot): Draft {
  const replicaSets = [...snapshot.replicaSets].sort(byCreation)
  const newest = replicaSets.find(({ spec }) => isSameTemplate(spec.template, snapshot.deployment.spec.template))
  const old = replicaSets.filter(replicaSet => replicaSet !== newest)
  return { ...snapshot, status: snapshot.deployment.status ?? {}, newest, old, actions: [], again: false }
}

/** Finds the ReplicaSet of the current template and updates its annotations, or creates it. */
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

/** One step of a rolling update: scales the new ReplicaSet up within maxSurge, or else old ones down. */
function roll(draft: Draft) {
  const { deployment } = draft
  findNew(draft, { create: true })
  const { newest, old } = draft
  if (!newest) return // just created; the reconcile is repeated
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

/** Unavailable pods are removed first. Otherwise they would use up maxUnavailable, and the rollout would hang. */
function shrinkOld(draft: Draft, active: Obj[], mayGo: number, minAvailable: number): boolean {
  const availableAll = available([...active, draft.newest!])
  const sizes = new Map(active.map(replicaSet => [replicaSet, replicaSet.spec.replicas as number]))
  let left = mayGo
  for (const replicaSet of active) {
    if (left <= 0) break
    const unhealthy = replicaSet.spec.replicas - available([replicaSet])
    // Its last scaling is not complete, so the number of available pods is not reliable yet.
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

/** Scales all old ReplicaSets down, waits until their pods are gone, then scales the new one up. */
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

/** Whether the user has scaled: an active ReplicaSet's annotation has another spec.replicas. That is no rollout. */
function isScaled(draft: Draft): boolean {
  findNew(draft, { create: false })
  const all = draft.newest ? [...draft.old, draft.newest] : draft.old
  return all.filter(isInUse).some(({ metadata }) => {
    const desired = naturalNumber(metadata.annotations?.[desiredKey])
    return desired !== undefined && desired !== draft.deployment.spec.replicas
  })
}

/** Resizes a scaled or paused Deployment without progressing its rollout: each ReplicaSet gets its share. */
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

/** Deletes empty old ReplicaSets beyond the history limit, the oldest revisions first. */
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
