import type { ClusterGroupUpgrade, Upgrade, Windows } from "#api/v1alpha1/clustergroupupgrade/index.ts"
import type { ClusterUpgrade } from "#api/v1alpha1/clusterupgrade/index.ts"
import type { PreCachingConfigSpec } from "#api/v1alpha1/precachingconfig/index.ts"
import type { PlannedBatch } from "#core/cluster-fleet/batches.ts"
import type { OtherRun } from "#core/cluster-fleet/blockers.ts"
import type { Judgement } from "#core/cluster-fleet/judge.ts"
import type { ImageMapping } from "#core/cluster-fleet/precache-images.ts"
import type { KnownCluster } from "#core/cluster-fleet/select.ts"
import type { Observation } from "#core/cluster-fleet/transport.ts"
import type { Instant } from "#lib/instant.ts"

/** A cluster that the hub knows, with what a person wrote about it. */
export type Spoke = KnownCluster & {
  annotations: Readonly<Record<string, string>>
  windows: Pick<Windows, "preCaching" | "upgrade">
  mapping: ImageMapping
}

/** What the last look at a delivery on a cluster showed. */
export type View = {
  /** Of the delivery that was looked at. */
  key: string
  at: Instant
  judgement: Judgement
  observation?: Observation
}

/** What is frozen when an operation starts. */
export type FrozenPlan = {
  batches: readonly PlannedBatch[]
  /** Clusters that had everything already. */
  skipped: readonly string[]
  upgrades: readonly Upgrade[]
}

export type Purpose = "Upgrade" | "Precache" | "Rollback"
export const viewName = (purpose: Purpose, cluster: string) => `${purpose}/${cluster}`

/** Everything that a plan is made from. */
export type Snapshot = {
  run: ClusterGroupUpgrade
  now: Instant
  identity: string
  known: ReadonlyMap<string, Spoke>
  /** Other runs of the namespace, by name. */
  others: ReadonlyMap<string, OtherRun>
  /** Clusters that another run works on. */
  busy: ReadonlySet<string>
  config: PreCachingConfigSpec | "Missing" | undefined
  overrides: Readonly<Record<string, string>> | undefined
  /** Frozen plans of this run, by the name of their ControllerRevision. */
  frozen: ReadonlyMap<string, FrozenPlan>
  /** Every ClusterUpgrade of this run. */
  upgrades: readonly ClusterUpgrade[]
  views: ReadonlyMap<string, View>
  /** Clusters that a write may still reach. */
  doubts: ReadonlySet<string>
  /** Deliveries that this process has sent, by key. */
  sent: ReadonlySet<string>
  /** How often the outcome of a write to a cluster stayed unknown, for its next fence. */
  unknowns: ReadonlyMap<string, number>
  reportedAt: Instant | undefined
}
