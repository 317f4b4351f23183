import type { ClusterGroupUpgrade, ClusterGroupUpgradeSpec } from "#api/v1alpha1/clustergroupupgrade/index.ts"
import type { ClusterUpgrade, ClusterUpgradeStatus, Condition } from "#api/v1alpha1/clusterupgrade/index.ts"
import { judgeObservation, judgeTrouble } from "#core/cluster-fleet/judge.ts"
import type { FleetTransport } from "#core/cluster-fleet/transport.ts"
import { forEachLimited } from "#lib/batch.ts"
import { formatInstant, type Instant } from "#lib/instant.ts"
import { clip } from "#lib/text.ts"
import type { Client } from "#runtime/client/client.ts"
import { orGone, orThere, outcomeOf } from "#runtime/client/outcome.ts"
import type { Clock } from "#runtime/clock.ts"
import { conditionWriter } from "#runtime/conditions.ts"
import type { Look } from "#runtime/kind-controller.ts"
import { apiVersionOf, controlledBy, controllerRevisions, keyOf } from "#runtime/resource.ts"
import { type ClusterPlan, type Errand, factsOf } from "./cluster-plan.ts"
import type { Memory } from "./memory.ts"
import type { Plan } from "./plan.ts"
import { dueReport } from "./report.ts"
import { clusterGroupUpgrades, clusterUpgrades, planLabel, spokeClusters } from "./resources.ts"
import { type Snapshot, viewName } from "./snapshot.ts"

export type Done = { lookAgainAt?: Instant }
export type Hands = { client: Client; clock: Clock; transport: FleetTransport; changed(key: string): void }

/** How many requests are under way at once, to the hub and to clusters. */
const atOnce = 32

/** Carries a plan out: what is recorded comes before what is sent. */
export async function apply(
  hands: Hands,
  snapshot: Snapshot,
  plan: Plan,
  { key, object: run, memory }: Look<ClusterGroupUpgrade, Memory>,
): Promise<Done> {
  const { client, clock } = hands
  const { namespace } = run.metadata
  const owner = controlledBy(clusterGroupUpgrades, run.metadata)
  const now = () => clock.now()
  if (plan.freezes) {
    const { operation, plan: data } = plan.freezes
    const metadata = {
      name: operation.revision!,
      ...(namespace && { namespace }),
      labels: { [planLabel]: "plan" },
      ownerReferences: [owner],
    }
    const revision = { apiVersion: "apps/v1", kind: "ControllerRevision", metadata, data, revision: 1 }
    await orThere(client.create(controllerRevisions, revision))
    return { lookAgainAt: now() + soonMs }
  }
  for (const { metadata } of plan.drops)
    await orGone(client.delete(clusterUpgrades, metadata, { uid: metadata.uid ?? "" }))
  if (plan.creates.length > 0) {
    await forEachLimited(plan.creates, atOnce, async ({ name, spec }) => {
      const metadata = { name, ...(namespace && { namespace }), ownerReferences: [owner] }
      await orThere(
        client.create(clusterUpgrades, {
          apiVersion: apiVersionOf(clusterUpgrades),
          kind: "ClusterUpgrade",
          metadata,
          spec,
        }),
      )
    })
    return { lookAgainAt: now() + soonMs }
  }
  if (!plan.planned) return {}
  const upgrades = new Map(snapshot.upgrades.map(each => [each.spec.cluster, each]))
  const { clusters, operation } = plan.planned
  const mine = clusters.filter(({ cluster }) => upgrades.get(cluster)?.spec.operation === operation.id)
  attend(hands, memory, mine, key)
  // A cluster whose record could not be written gets nothing: the next look decides again.
  const unwritten = new Set<string>()
  await forEachLimited(mine, atOnce, async each => {
    const upgrade = upgrades.get(each.cluster)!
    const isWritten = await record(client, upgrade, each, now())
    if (!isWritten) unwritten.add(each.cluster)
  })
  let hasActed = false
  const errands = plan.sends.filter(({ cluster }) => !unwritten.has(cluster))
  await forEachLimited(errands, atOnce, async each => {
    hasActed = true
    await send(hands, memory, each)
  })
  const sending = new Set(plan.sends.map(({ purpose, cluster }) => viewName(purpose, cluster)))
  await forEachLimited(mine, atOnce, async each => {
    if (unwritten.has(each.cluster)) return
    if (each.cleans) {
      hasActed = true
      await clean(hands, memory, each.cleans)
    }
    for (const ask of each.asks) {
      if (sending.has(viewName(ask.purpose, ask.cluster))) continue
      hasActed = true
      await look(hands, memory, ask)
    }
    if (each.releases && (await release(hands, run.spec, snapshot, each.releases)))
      hasActed =
        (await record(
          client,
          upgrades.get(each.cluster)!,
          { ...each, facts: { ...each.facts, releasedAt: formatInstant(now()) } },
          now(),
        )) || hasActed
  })
  if (unwritten.size > 0) return { lookAgainAt: now() + soonMs }
  if (hasActed) return { lookAgainAt: now() }
  const due = dueReport(snapshot, plan, now())
  return due && due.at > now() ? { lookAgainAt: due.at } : {}
}

/** Our cache shows our own writes a moment later. */
const soonMs = 100

/** Clusters that are worked on are listened to, the others are not. */
function attend({ transport, changed }: Hands, memory: Memory, clusters: readonly ClusterPlan[], key: string): void {
  const isWorked = ({ facts, asks, sends }: ClusterPlan) =>
    facts.state === "InProgress" ||
    facts.cause === "RollingBack" ||
    asks.length > 0 ||
    sends !== undefined ||
    isCaching(facts)
  for (const each of clusters) {
    const { cluster } = each
    const isWatched = memory.watched.has(cluster)
    if (isWorked(each) && !isWatched) {
      const stop = transport.subscribe(cluster, () => {
        for (const purpose of ["Upgrade", "Precache", "Rollback"] as const)
          memory.views.delete(viewName(purpose, cluster))
        changed(key)
      })
      memory.watched.set(cluster, stop)
    } else if (!isWorked(each) && isWatched) {
      memory.watched.get(cluster)?.()
      memory.watched.delete(cluster)
    }
  }
}

const isCaching = ({ precache }: ClusterPlan["facts"]) =>
  precache !== undefined && ["NotStarted", "PreparingToStart", "Starting", "Active"].includes(precache.state)

/** Writes what is known of a cluster, if a person or the next process would miss it. False: it could not be written. */
async function record(client: Client, upgrade: ClusterUpgrade, plan: ClusterPlan, now: Instant): Promise<boolean> {
  if (!isWorthWriting(upgrade, plan)) return true
  const { facts, reason, message } = plan
  const isReady = facts.state === "Completed"
  const state = conditionWriter<Condition>(upgrade.metadata.generation ?? 0, now)
  const status: ClusterUpgradeStatus = {
    ...facts,
    observedGeneration: upgrade.metadata.generation ?? 0,
    conditions: [state(upgrade.status?.conditions, "Ready", isReady, reason, clip(message, 512))],
  }
  const outcome = await outcomeOf(client.replace(clusterUpgrades, { ...upgrade, status }, { subresource: "status" }))
  return outcome.is === "Written"
}

/** What was just seen, and changes with every look, is not. */
function isWorthWriting(upgrade: ClusterUpgrade, { facts }: ClusterPlan): boolean {
  const pick = ({
    state,
    attempt,
    upgradeIndex,
    cause,
    firstReadyAt,
    releasedAt,
    rollback,
    precache,
    unreachableSince,
  }: ClusterPlan["facts"]) =>
    JSON.stringify([
      ...[state, attempt, upgradeIndex, cause, firstReadyAt, releasedAt, rollback, unreachableSince],
      precache && [precache.state, precache.attempt, precache.specHash],
    ])
  return pick(factsOf(upgrade)) !== pick(facts)
}

async function send({ transport, clock }: Hands, memory: Memory, errand: Errand): Promise<void> {
  const { cluster, delivery, purpose, key, seen } = errand
  const answer = await transport.apply(cluster, delivery, seen === undefined ? {} : { seen })
  const view = viewName(purpose, cluster)
  if (answer.ok) {
    memory.doubts.delete(cluster)
    memory.sent.add(key)
    memory.views.delete(view)
    return
  }
  if (answer.trouble.is === "UnknownOutcome") {
    memory.doubts.add(cluster)
    memory.unknowns.set(cluster, (memory.unknowns.get(cluster) ?? 0) + 1)
  }
  if (answer.trouble.is === "Conflict") memory.views.delete(view)
  else memory.views.set(view, { key, at: clock.now(), judgement: judgeTrouble(answer.trouble) })
}

async function look(
  { transport, clock }: Hands,
  memory: Memory,
  { cluster, delivery, purpose, key }: Errand,
): Promise<void> {
  const answer = await transport.observe(cluster, delivery)
  memory.views.set(
    viewName(purpose, cluster),
    answer.ok
      ? { key, at: clock.now(), judgement: judgeObservation(answer.value, delivery.objects), observation: answer.value }
      : { key, at: clock.now(), judgement: judgeTrouble(answer.trouble) },
  )
}

async function clean({ transport }: Hands, memory: Memory, { cluster, delivery, purpose }: Errand): Promise<void> {
  await transport.remove(cluster, delivery)
  memory.views.delete(viewName(purpose, cluster))
}

/** Helper objects go, what was delivered stays, and the cluster's object gets its labels. Repeated until it is answered. */
async function release(
  { transport, client }: Hands,
  { actions }: ClusterGroupUpgradeSpec,
  { known }: Snapshot,
  { cluster, delivery }: Errand,
): Promise<boolean> {
  const answer = await transport.remove(cluster, delivery)
  if (!answer.ok) return false
  const { addClusterLabels, removeClusterLabels, addClusterAnnotations, removeClusterAnnotations } =
    actions.afterCompletion
  const labels = changeOf(known.get(cluster)?.labels ?? {}, addClusterLabels, removeClusterLabels)
  const annotations = changeOf(known.get(cluster)?.annotations ?? {}, addClusterAnnotations, removeClusterAnnotations)
  if (!labels && !annotations) return true
  const body = { metadata: { ...(labels && { labels }), ...(annotations && { annotations }) } }
  await outcomeOf(client.patch(spokeClusters, { name: cluster }, { type: "merge", body }))
  return true
}

/** A merge patch; undefined where nothing would change. */
function changeOf(
  before: Readonly<Record<string, string>>,
  adds: Readonly<Record<string, string>> | undefined,
  removes: readonly string[],
): Record<string, string | null> | undefined {
  const change = Object.fromEntries([
    ...removes.filter(key => Object.hasOwn(before, key)).map(key => [key, null]),
    ...Object.entries(adds ?? {}).filter(([key, value]) => before[key] !== value),
  ])
  return Object.keys(change).length > 0 ? change : undefined
}

export const runKey = ({ metadata, spec }: ClusterUpgrade) => keyOf({ namespace: metadata.namespace, name: spec.run })
