import { maxInflight, type Operation, type Phase } from "#api/v1alpha1/clustergroupupgrade/index.ts"
import type { ClusterUpgrade, ClusterUpgradeSpec } from "#api/v1alpha1/clusterupgrade/index.ts"
import { approvedAnnotation, retryAnnotation, rollbackAnnotation } from "#api/v1alpha1/serviceimage/index.ts"
import { planBatches } from "#core/cluster-fleet/batches.ts"
import { type Blocked, blockedBy } from "#core/cluster-fleet/blockers.ts"
import { hashOf, type PrecacheSpec } from "#core/cluster-fleet/deliveries.ts"
import { type Forecasted, forecast } from "#core/cluster-fleet/forecast.ts"
import { precacheImages } from "#core/cluster-fleet/precache-images.ts"
import { decideRun, isOver, type RunDecision } from "#core/cluster-fleet/run.ts"
import { type Selection, selectClusters } from "#core/cluster-fleet/select.ts"
import { openingOf } from "#core/cluster-fleet/windows.ts"
import { parseApproval } from "#core/fleet/approval.ts"
import { formatInstant, type Instant, parseInstant } from "#lib/instant.ts"
import { type ClusterPlan, factsOf, planCluster } from "./cluster-plan.ts"
import type { FrozenPlan, Snapshot } from "./snapshot.ts"
import { type Problem, problemIn } from "./validate.ts"

export type Planned = {
  operation: Operation
  frozen: FrozenPlan
  decision: RunDecision
  forecast: Forecasted
  clusters: readonly ClusterPlan[]
  precache: (PrecacheSpec & { hash: string }) | undefined
  workedMs: number
  nextWindow: Instant | undefined
}

export type Plan = {
  /** What is wrong with the spec, if something is. Nothing begins then. */
  selected: Selection
  problem: Problem | undefined
  precacheProblem: Problem | undefined
  /** Another process led before: it is taken over first. */
  takesOver: boolean
  /** A new operation begins, and this is its frozen plan. */
  freezes?: { operation: Operation; plan: FrozenPlan; isFirst: boolean }
  creates: readonly { name: string; spec: ClusterUpgradeSpec }[]
  /** ClusterUpgrades of earlier operations. */
  drops: readonly ClusterUpgrade[]
  planned?: Planned
  /** Writes to clusters, which the status declares first. */
  sends: readonly NonNullable<ClusterPlan["sends"]>[]
  lookAgainAt?: Instant
}

const nothing = { creates: [], drops: [], sends: [], takesOver: false, problem: undefined, precacheProblem: undefined }

/** Decides the next step of one run. The same snapshot always gives the same plan. */
export function plan(snapshot: Snapshot): Plan {
  const { run, known, now, identity } = snapshot
  const { spec, status } = run
  const selected = selectClusters(spec, known, spec.placementRef ? undefined : [])
  const problem = selected.ok ? problemIn(spec, selected.clusters, now) : undefined
  const precache = spec.preCaching ? precacheOf(snapshot) : undefined
  const precacheProblem = precache && "reason" in precache ? precache : undefined
  const checked = { ...nothing, selected, problem, precacheProblem }
  if (status && status.electionID !== identity) return { ...checked, takesOver: true, lookAgainAt: now }

  const recorded = status?.operation
  const wanted = hashOf([spec.upgrades, spec.resolveDigest])
  const annotations = run.metadata.annotations ?? {}
  const isRetried = recorded !== undefined && isOver(recorded.phase) && annotations[retryAnnotation] === recorded.id
  const isCurrent = recorded?.plan === wanted && !isRetried
  const isRefused = !selected.ok || problem !== undefined || precacheProblem !== undefined
  // A run that has begun goes on with what was frozen, whatever is selected now.
  if (!isCurrent && isRefused) return checked
  const frozen = isCurrent ? snapshot.frozen.get(recorded.revision ?? "") : undefined
  if (!recorded || !isCurrent || !frozen) {
    if (!selected.ok) return checked
    return { ...checked, freezes: freeze(snapshot, selected.clusters, wanted, isCurrent ? recorded : undefined) }
  }
  const { creates, drops, mine } = upgradesOf(snapshot, recorded, frozen)
  if (creates.length > 0) return { ...checked, creates, drops, lookAgainAt: now }
  const planned = planOperation(
    snapshot,
    recorded,
    frozen,
    mine,
    precache && "images" in precache ? precache : undefined,
  )
  const sends = planned.clusters.flatMap(({ sends }) => sends ?? []).slice(0, maxInflight)
  const times = [
    planned.decision.lookAgainAt,
    planned.nextWindow,
    ...planned.clusters.map(({ lookAgainAt }) => lookAgainAt),
  ]
  const later = times.filter(at => at !== undefined)
  return { ...checked, drops, planned, sends, ...(later.length > 0 && { lookAgainAt: Math.min(...later) }) }
}

function freeze({ run, upgrades, now }: Snapshot, clusters: readonly string[], wanted: string, recorded?: Operation) {
  const { spec, status, metadata } = run
  const before = status?.operation
  const used = new Set([before, ...(status?.history ?? [])].map(entry => entry?.id))
  let id = `g${metadata.generation ?? 0}`
  for (let attempt = 2; used.has(id); attempt++) id = `g${metadata.generation ?? 0}_${attempt}`
  // The same upgrades again: what is complete is not done twice.
  const isSame = before?.plan === wanted
  const done = new Set(
    upgrades
      .filter(each => isSame && each.spec.operation === before.id && each.status?.state === "Completed")
      .map(each => each.spec.cluster),
  )
  const { canaries, maxConcurrency } = spec.remediationStrategy
  const batches = planBatches({ clusters, canaries, maxConcurrency, isUpToDate: name => done.has(name) })
  const plan: FrozenPlan = { batches, skipped: clusters.filter(name => done.has(name)), upgrades: spec.upgrades }
  const fresh: Operation = {
    id,
    plan: wanted,
    phase: "Pending",
    startedAt: formatInstant(now),
    total: clusters.length,
    completed: done.size,
    failed: 0,
    rolledBack: 0,
  }
  const named = recorded ?? fresh
  const revision =
    named.revision ?? `${metadata.name.slice(0, 180)}-${named.id.replace("_", "-")}-${hashOf([metadata.uid, named.id])}`
  return { operation: { ...named, revision }, plan, isFirst: recorded === undefined }
}

/** One for each cluster of the frozen plan; those of other operations go. */
function upgradesOf({ run, upgrades }: Snapshot, { id }: Operation, { batches }: FrozenPlan) {
  const mine = new Map(upgrades.filter(({ spec }) => spec.operation === id).map(each => [each.spec.cluster, each]))
  const creates = batches.flatMap(({ clusters, isCanary }, index) =>
    clusters
      .filter(cluster => !mine.has(cluster))
      .map(cluster => ({
        name: `${run.metadata.name.slice(0, 150)}-${id.replace("_", "-")}-${cluster}`,
        spec: { run: run.metadata.name, operation: id, cluster, batch: index + 1, isCanary },
      })),
  )
  return { creates, drops: upgrades.filter(({ spec }) => spec.operation !== id), mine }
}

function planOperation(
  snapshot: Snapshot,
  recorded: Operation,
  frozen: FrozenPlan,
  mine: ReadonlyMap<string, ClusterUpgrade>,
  precache: (PrecacheSpec & { hash: string }) | undefined,
): Planned {
  const { run, now } = snapshot
  const { spec, status, metadata } = run
  const annotations = metadata.annotations ?? {}
  const isTakenBack = annotations[rollbackAnnotation] === recorded.id && recorded.phase !== "RolledBack"
  const phase: Phase = isTakenBack ? "RollingBack" : recorded.phase
  const cause = isTakenBack ? (recorded.cause ?? "requested by aim rollback") : recorded.cause
  const clusters = new Map([...mine].map(([name, upgrade]) => [name, factsOf(upgrade)]))
  const blocked: Blocked = blockedBy(metadata.name, spec.blockingCRs, snapshot.others)
  const onlyThese = blocked.is === "Free" ? blocked.onlyThese : undefined
  const batches = onlyThese
    ? frozen.batches.map(batch => ({ ...batch, clusters: batch.clusters.filter(name => onlyThese.has(name)) }))
    : frozen.batches
  const counted = onlyThese ? new Map([...clusters].filter(([name]) => onlyThese.has(name))) : clusters
  const opening = openingOf(spec.windows.upgrade, now)
  const workedMs = workedUntil(snapshot)
  const foreseen = foresee(snapshot, frozen, counted)
  const approval = parseApproval(annotations[approvedAnnotation])
  const approved = approval?.operation === recorded.id ? approval.tiers.map(Number).filter(Number.isInteger) : []
  const { currentBatch = 0, workedBeforeBatchSeconds = 0 } = status?.status ?? {}
  const decision = decideRun({
    spec,
    phase,
    cause,
    batches,
    clusters: counted,
    blocked,
    opening,
    graceMs: spec.windows.graceMinutes * 60_000,
    approved: new Set(approved),
    workedMs,
    batch: { number: currentBatch, workedBeforeMs: workedBeforeBatchSeconds * 1000 },
    fits: foreseen.fits,
    now,
  })
  const isAskedAgain = annotations[retryAnnotation] === recorded.id
  const context = {
    snapshot,
    spec,
    operation: recorded.id,
    upgrades: frozen.upgrades,
    decision,
    precache,
    isAskedAgain,
  }
  const plans = [...mine.values()].map(upgrade => planCluster(context, upgrade))
  const after = [...plans.values()].map(({ facts }) => facts.state)
  const count = (...states: string[]) => after.filter(state => states.includes(state)).length
  const stopped = ["Failed", "RollingBack"].includes(decision.phase) && phase !== decision.phase
  const isEnded = isOver(decision.phase)
  const operation: Operation = {
    ...recorded,
    phase: decision.phase,
    completed: count("Completed") + frozen.skipped.length,
    failed: count("Failed", "TimedOut"),
    rolledBack: count("RolledBack"),
    ...(decision.phase === "InProgress" && !recorded.enabledAt && { enabledAt: formatInstant(now) }),
    ...(isEnded && !recorded.endedAt && { endedAt: formatInstant(now) }),
    ...(cause !== undefined && { cause }),
    ...(stopped && { cause: plain(decision.message) }),
  }
  const nextWindow = opening.isOpen || isEnded ? undefined : opening.opensAt
  return { operation, frozen, decision, forecast: foreseen, clusters: plans, precache, workedMs, nextWindow }
}

/** Text of others in a field that takes plain characters only. */
export const plain = (text: string) => text.replaceAll(/[^ !#-%'-;=?-[\]-~]/g, "?").slice(0, 160)

/** How long the run has worked. What counts since a process that is gone looked last does not. */
function workedUntil({ run: { status }, now }: Snapshot): number {
  const workedMs = (status?.workedSeconds ?? 0) * 1000
  const since = parseInstant(status?.workedAt)
  return since === undefined ? workedMs : workedMs + Math.max(0, now - since)
}

function foresee(
  { run, now }: Snapshot,
  { batches }: FrozenPlan,
  clusters: ReadonlyMap<string, ReturnType<typeof factsOf>>,
) {
  const took = batches.flatMap(({ clusters: names }) => {
    const times = names.flatMap(name => {
      const { state, startedAt, endedAt } = clusters.get(name) ?? {}
      const [from, to] = [parseInstant(startedAt), parseInstant(endedAt)]
      return state === "Completed" && from !== undefined && to !== undefined ? [to - from] : []
    })
    return times.length > 0 ? [Math.max(...times)] : []
  })
  const isLeft = (name: string) => ["NotStarted", "InProgress"].includes(clusters.get(name)?.state ?? "")
  const left = batches.filter(({ clusters: names }) => names.some(isLeft))
  const opening = openingOf(run.spec.windows.upgrade, now)
  const leftMs = opening.isOpen && opening.closesAt !== undefined ? opening.closesAt - now : undefined
  const clustersLeft = [...clusters.keys()].filter(isLeft).length
  const windowMs = Math.max(0, ...run.spec.windows.upgrade.map(({ durationMinutes }) => durationMinutes * 60_000))
  return forecast({ batchMs: took, batchesLeft: left.length, clustersLeft, leftMs, windowMs })
}

function precacheOf({ run, config, overrides }: Snapshot): (PrecacheSpec & { hash: string }) | Problem {
  if (config === "Missing") {
    const name = run.spec.preCachingConfigRef?.name ?? ""
    const message = `spec.preCachingConfigRef: there is no PreCachingConfig ${name} in this namespace`
    return { reason: "PrecacheSpecIncomplete", message }
  }
  const found = precacheImages(run.spec.upgrades, { config, overrides })
  if (!found.ok) return found
  const { images, spaceRequiredGiB } = found
  const defaults = { parallelism: "10%", timeoutMinutes: 240, maxAttempts: 3 } as const
  const { nodeSelector, parallelism, timeoutMinutes, maxAttempts } = { nodeSelector: undefined, ...defaults, ...config }
  const settings = { parallelism, timeoutMinutes, maxAttempts, ...(nodeSelector && { nodeSelector }) }
  return {
    images,
    ...(spaceRequiredGiB !== undefined && { spaceRequiredGiB }),
    config: settings,
    hash: hashOf([images, spaceRequiredGiB, nodeSelector]),
  }
}
