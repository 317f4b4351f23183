import { formatInstant, type Instant } from "#lib/instant.ts"
import type { Json, Obj } from "../../object.ts"
import { type Condition, findCondition, withCondition, withoutCondition } from "./conditions.ts"
import { positive } from "./counts.ts"
import {
  available,
  deadlineInMs,
  hasDeadline,
  hasTimedOut,
  isComplete,
  isProgressing,
  maxUnavailable,
  progressing,
  running,
  sum,
  terminatingIn,
  wanted,
} from "./deployment-facts.ts"
import { same } from "./same.ts"

export type Snapshot = {
  deployment: Obj
  replicaSets: readonly Obj[] // its own
  /** Whether a pod of its ReplicaSets, except the given one, is still running or ending. */
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
  /** The rest of this reconcile would have been refused as a conflict: reconcile again at once. */
  again: boolean
  lookAgainInMs?: number
}

/** The findings and decisions of one reconcile so far. */
export type Draft = Snapshot & {
  status: Json // of the Deployment, with the changes of this reconcile
  newest: Obj | undefined // the ReplicaSet of the current template
  old: Obj[]
  actions: Action[]
  again: boolean
  lookAgainInMs?: number
}

export function notePause(draft: Draft, now: Instant) {
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

export function note(draft: Draft, condition: Condition) {
  draft.status = { ...draft.status, conditions: withCondition(draft.status.conditions ?? [], condition) }
}

/** Writes the status before the end of the reconcile. Every later status write of this reconcile would be refused. */
export function writeEarly(draft: Draft, revision?: string) {
  if (draft.again) return
  draft.actions.push({ do: "status", status: draft.status, ...(revision !== undefined && { revision }) })
  draft.again = true
}

function write(draft: Draft, status: Json) {
  if (draft.again) return
  draft.actions.push({ do: "status", status })
}

export function reportCounts(draft: Draft) {
  const status = counts(draft)
  if (!same(status, draft.status)) write(draft, status)
}

export function reportRollout(draft: Draft) {
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

/** The status without the condition Progressing. */
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
