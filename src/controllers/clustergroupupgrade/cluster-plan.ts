import type { ClusterGroupUpgradeSpec, Upgrade } from "#api/v1alpha1/clustergroupupgrade/index.ts"
import type { ClusterUpgrade, Reason } from "#api/v1alpha1/clusterupgrade/index.ts"
import { type ClusterFacts, stepCluster } from "#core/cluster-fleet/cluster-step.ts"
import {
  hasGoneBack,
  hashOf,
  operationsOf,
  type PrecacheSpec,
  precacheDelivery,
  rollbackDelivery,
  type Sender,
  upgradeDelivery,
} from "#core/cluster-fleet/deliveries.ts"
import { precacheLook } from "#core/cluster-fleet/precache-look.ts"
import { isFinal } from "#core/cluster-fleet/precache-machine.ts"
import { stepPrecache } from "#core/cluster-fleet/precache-step.ts"
import { isOver, type RunDecision } from "#core/cluster-fleet/run.ts"
import type { Delivery } from "#core/cluster-fleet/transport.ts"
import { bothOpen, openingOf } from "#core/cluster-fleet/windows.ts"
import { formatInstant, type Instant } from "#lib/instant.ts"
import { type Purpose, type Snapshot, type Spoke, type View, viewName } from "./snapshot.ts"

/** A delivery that is sent, looked at or taken away. */
export type Errand = { cluster: string; purpose: Purpose; delivery: Delivery; key: string; seen?: string }

/** What is decided about one cluster. */
export type ClusterPlan = {
  cluster: string
  facts: ClusterFacts
  reason: Reason
  message: string
  sends?: Errand
  asks: Errand[]
  /** The bundle of pre-caching goes: what an earlier attempt left, or after success. */
  cleans?: Errand
  /** The helper objects of the run go, and the actions after completion are done. */
  releases?: Errand
  lookAgainAt?: Instant
}

export type ClusterContext = {
  snapshot: Snapshot
  spec: ClusterGroupUpgradeSpec
  operation: string
  upgrades: readonly Upgrade[]
  decision: RunDecision
  precache: (PrecacheSpec & { hash: string }) | undefined
  isAskedAgain: boolean
}

const noWindows = { preCaching: [], upgrade: [] }
const nowhere = (name: string): Spoke => ({ name, labels: {}, annotations: {}, windows: noWindows, mapping: [] })

/** A look that did not come about is made again after this long. */
const askAgainMs = 30_000

export const factsOf = ({ status }: Pick<ClusterUpgrade, "status">): ClusterFacts => {
  if (!status) return { state: "NotStarted", attempt: 0, upgradeIndex: 0 }
  const { conditions: _, observedGeneration: __, ...facts } = status
  return facts
}

/** Decides about one cluster, from its own facts and what the run allows. */
export function planCluster(context: ClusterContext, upgrade: ClusterUpgrade): ClusterPlan {
  const { cluster } = upgrade.spec
  const before = factsOf(upgrade)
  const { snapshot, decision } = context
  const spoke = snapshot.known.get(cluster) ?? nowhere(cluster)
  const sender: Sender = {
    uid: snapshot.run.metadata.uid ?? "",
    operation: context.operation,
    fence: `${snapshot.identity}.${snapshot.unknowns.get(cluster) ?? 0}`,
  }
  const cached = planPrecache(context, sender, spoke, before)
  const facts = cached.facts
  const rest =
    decision.rollBack.has(cluster) || decision.phase === "RollingBack"
      ? planRollback(context, sender, spoke, facts)
      : planUpgrade(context, sender, spoke, facts)
  const lookAgainAt = [cached.lookAgainAt, rest.lookAgainAt].filter(at => at !== undefined)
  const { lookAgainAt: _, ...plan } = rest
  // Why it ended was said when it ended.
  const [said] = upgrade.status?.conditions ?? []
  const isStill = plan.facts.state === before.state && before.endedAt !== undefined && plan.facts.cause === before.cause
  return {
    ...plan,
    ...(isStill && said && { reason: said.reason, message: said.message }),
    asks: [...cached.asks, ...rest.asks],
    ...(cached.sends && { sends: cached.sends }),
    ...(cached.cleans && { cleans: cached.cleans }),
    ...(lookAgainAt.length > 0 && { lookAgainAt: Math.min(...lookAgainAt) }),
  }
}

const errand = (purpose: Purpose, cluster: string, delivery: Delivery, seen?: string): Errand => ({
  purpose,
  cluster,
  delivery,
  key: hashOf([delivery.run, delivery.objects]),
  ...(seen !== undefined && { seen }),
})

/** The last look at exactly this delivery, and whether another one is due. */
function viewOf({ views, now }: Snapshot, { purpose, cluster, key }: Errand) {
  const found = views.get(viewName(purpose, cluster))
  const view: View | undefined = found?.key === key ? found : undefined
  const againAt = view && !view.observation ? view.at + askAgainMs : undefined
  return { view, isDue: !view || (againAt !== undefined && againAt <= now), againAt }
}

function planUpgrade(context: ClusterContext, sender: Sender, spoke: Spoke, facts: ClusterFacts): ClusterPlan {
  const { snapshot, spec, upgrades, decision } = context
  const { now, doubts, busy } = snapshot
  const cluster = spoke.name
  const deliveryAt = (index: number) => upgradeDelivery(sender, upgrades, index, spoke.mapping)
  const current = errand("Upgrade", cluster, deliveryAt(facts.upgradeIndex))
  const { view, isDue, againAt } = viewOf(snapshot, current)
  const isOpen = openingOf(spoke.windows.upgrade, now).isOpen
  // Nothing is concluded about a cluster that a write may still reach, before a write of ours was answered there.
  const inDoubt = doubts.has(cluster)
  const step = stepCluster({
    facts,
    judgement: inDoubt ? { is: "Absent" } : view?.judgement,
    now,
    mayBegin: decision.begin.has(cluster) && isOpen && !busy.has(cluster),
    mayGoOn: decision.mayGoOn,
    isTimeUp: decision.timedOut.has(cluster),
    mayRejoin: !isOver(decision.phase) && view !== undefined && view.judgement.is !== "Unknown",
    soakMs: upgrades.map(({ soakSeconds }) => soakSeconds * 1000),
  })
  const isLate = facts.state === "TimedOut" && facts.appliedAt === undefined && !isOver(decision.phase)
  const isLookedAt = facts.state === "InProgress" || isLate
  const seen = view?.observation?.version
  const isReleased = facts.releasedAt !== undefined || !spec.actions.afterCompletion.deleteObjects
  const isDone = facts.state === "Completed" && !isReleased
  return {
    cluster,
    facts: step.facts,
    reason: busy.has(cluster) && facts.state === "NotStarted" ? "ClusterBusy" : step.reason,
    message: step.message,
    asks: isLookedAt && isDue && !step.delivers ? [current] : [],
    ...(step.delivers && { sends: errand("Upgrade", cluster, deliveryAt(step.facts.upgradeIndex), seen) }),
    ...(isDone && { releases: current }),
    ...lookAt(step.lookAgainAt, isLookedAt ? againAt : undefined),
  }
}

function planRollback(context: ClusterContext, sender: Sender, spoke: Spoke, facts: ClusterFacts): ClusterPlan {
  const { snapshot, upgrades, decision } = context
  const cluster = spoke.name
  const plain = { cluster, facts, reason: facts.cause ?? "Waiting", message: "", asks: [] } satisfies ClusterPlan
  if (!decision.rollBack.has(cluster)) return plain
  const sent = upgradeDelivery(sender, upgrades, facts.upgradeIndex, spoke.mapping)
  if (!facts.rollback) {
    const before = errand("Upgrade", cluster, sent)
    const { view, isDue, againAt } = viewOf(snapshot, before)
    if (!view?.observation) return { ...plain, reason: "RollingBack", asks: isDue ? [before] : [], ...lookAt(againAt) }
    const rollback = operationsOf(sent, view.observation)
    if (rollback.every(id => id === "")) {
      const message = "nothing that was delivered can be asked to go back; it stays"
      return { ...plain, facts: { ...facts, cause: "NotRolledBack" }, reason: "NotRolledBack", message }
    }
    const begun: ClusterFacts = { ...facts, cause: "RollingBack", rollback }
    const message = "it is asked to go back"
    return { ...plain, facts: begun, reason: "RollingBack", message, lookAgainAt: snapshot.now }
  }
  const back = errand("Rollback", cluster, rollbackDelivery(sent, facts.rollback))
  const { view, isDue, againAt } = viewOf(snapshot, back)
  const seen = view?.observation
  if (seen && hasGoneBack(back.delivery, facts.rollback, seen)) {
    const done: ClusterFacts = {
      ...facts,
      state: "RolledBack",
      cause: "RolledBack",
      endedAt: formatInstant(snapshot.now),
    }
    return { ...plain, facts: done, reason: "RolledBack", message: "what the run changed on it is back" }
  }
  // What is there does not show whether it was asked; asking again changes nothing.
  const isSent = snapshot.sent.has(back.key)
  return {
    ...plain,
    reason: "RollingBack",
    message: "it goes back",
    asks: isDue && isSent ? [back] : [],
    ...(!isSent && { sends: back }),
    ...lookAt(againAt),
  }
}

type CachePlan = Pick<ClusterPlan, "facts" | "asks" | "sends" | "cleans" | "lookAgainAt">

function planPrecache(context: ClusterContext, sender: Sender, spoke: Spoke, facts: ClusterFacts): CachePlan {
  const { snapshot, spec, precache, decision, isAskedAgain } = context
  const { now } = snapshot
  if (!precache || isOver(decision.phase) || decision.phase === "RollingBack") return { facts, asks: [] }
  if (facts.state !== "NotStarted") return { facts, asks: [] }
  const opening = bothOpen(openingOf(spec.windows.preCaching, now), openingOf(spoke.windows.preCaching, now))
  const timeoutSeconds = precache.config.timeoutMinutes * 60
  const left =
    opening.isOpen && opening.closesAt !== undefined ? Math.floor((opening.closesAt - now) / 1000) : undefined
  const state = facts.precache?.state ?? "NotStarted"
  const attempt = facts.precache ?? { attempt: 1, specHash: precache.hash, deadlineSeconds: timeoutSeconds }
  const current = errand("Precache", spoke.name, precacheDelivery(sender, precache, attempt, spoke.mapping))
  const { view, isDue, againAt } = viewOf(snapshot, current)
  const look = facts.precache && view?.observation ? precacheLook(state, view.observation) : undefined
  const stepped = stepPrecache({
    precache: facts.precache,
    look,
    specHash: precache.hash,
    mayBegin: opening.isOpen && !spec.paused,
    deadlineSeconds: Math.min(timeoutSeconds, left ?? timeoutSeconds),
    maxAttempts: precache.config.maxAttempts,
    isAskedAgain,
    now,
  })
  const isGoing = stepped.precache !== undefined && facts.precache !== undefined && !isFinal(state)
  const isDone = stepped.precache?.state === "Succeeded" && state !== "Succeeded"
  const opensAt = opening.isOpen ? undefined : opening.opensAt
  return {
    facts: stepped.precache ? { ...facts, precache: stepped.precache } : facts,
    asks: isGoing && isDue && !stepped.does ? [current] : [],
    ...(stepped.does === "Deliver" && { sends: current }),
    ...((stepped.does === "CleanUp" || isDone) && { cleans: current }),
    ...lookAt(stepped.lookAgainAt, isGoing ? againAt : undefined, opensAt),
  }
}

function lookAt(...times: (Instant | undefined)[]): { lookAgainAt?: Instant } {
  const known = times.filter(at => at !== undefined)
  return known.length > 0 ? { lookAgainAt: Math.min(...known) } : {}
}
