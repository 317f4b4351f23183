import type { ClusterGroupUpgrade } from "#api/v1alpha1/clustergroupupgrade/index.ts"
import type { ClusterUpgrade } from "#api/v1alpha1/clusterupgrade/index.ts"
import type { PreCachingConfig } from "#api/v1alpha1/precachingconfig/index.ts"
import type { SpokeCluster } from "#api/v1alpha1/spokecluster/index.ts"
import type { OtherRun } from "#core/cluster-fleet/blockers.ts"
import type { WatchedCache } from "#runtime/cache/cache.ts"
import type { Held, Look } from "#runtime/kind-controller.ts"
import { type KubeObject, keyOf } from "#runtime/resource.ts"
import type { Memory } from "./memory.ts"
import { overridesName } from "./resources.ts"
import type { FrozenPlan, Snapshot, Spoke } from "./snapshot.ts"

export type Revision = KubeObject & { data?: FrozenPlan; revision?: number }
export type ConfigMap = KubeObject & { data?: Record<string, string> }

export type Caches = {
  identity: string
  runs: WatchedCache<Held<ClusterGroupUpgrade>>
  upgrades: WatchedCache<Held<ClusterUpgrade>>
  spokes: WatchedCache<Held<SpokeCluster>>
  configs: WatchedCache<Held<PreCachingConfig>>
  revisions: WatchedCache<Held<Revision>>
  overrides: WatchedCache<Held<ConfigMap>>
}

export const ownerUid = ({ metadata }: KubeObject) => metadata.ownerReferences?.find(each => each.controller)?.uid ?? ""

/** Everything that the plan is made from. */
export function observe(caches: Caches, { object: run, memory, now }: Look<ClusterGroupUpgrade, Memory>): Snapshot {
  const { namespace, uid = "" } = run.metadata
  // Another process led: what it had declared may still arrive.
  if (run.status && run.status.electionID !== caches.identity)
    for (const cluster of run.status.inflight) memory.doubts.add(cluster)
  const objectsOf = <O>(cache: WatchedCache<Held<O>>, index: string, value: string) =>
    [...cache.keysBy(index, value)].flatMap(key => cache.get(key)?.object ?? [])
  const upgrades = objectsOf(caches.upgrades, "owner", uid)
  const clusters = new Set(upgrades.map(({ spec }) => spec.cluster))
  const busy = [...clusters].filter(cluster =>
    objectsOf(caches.upgrades, "cluster", cluster).some(
      each => ownerUid(each as KubeObject) !== uid && each.status?.state === "InProgress",
    ),
  )
  const ref = run.spec.preCachingConfigRef
  const overrides = caches.overrides.get(keyOf({ namespace, name: overridesName }))?.object.data
  return {
    run,
    now,
    identity: caches.identity,
    known: new Map([...caches.spokes.entries()].map(([name, { object }]) => [name, spokeOf(object)])),
    others: othersOf(caches, run),
    busy: new Set(busy),
    config: ref && (caches.configs.get(keyOf({ namespace, name: ref.name }))?.object.spec ?? "Missing"),
    overrides,
    frozen: new Map(
      objectsOf(caches.revisions, "owner", uid).flatMap(({ metadata, data }) => (data ? [[metadata.name, data]] : [])),
    ),
    upgrades,
    views: memory.views,
    doubts: memory.doubts,
    sent: memory.sent,
    unknowns: memory.unknowns,
    reportedAt: memory.reportedAt,
  }
}

const spokeOf = ({ metadata, spec }: SpokeCluster): Spoke => ({
  name: metadata.name,
  labels: metadata.labels ?? {},
  annotations: metadata.annotations ?? {},
  windows: spec.windows,
  mapping: spec.imageMapping,
})

/** Other runs of the namespace, as far as this one waits for them. */
function othersOf({ runs, upgrades }: Caches, run: ClusterGroupUpgrade): ReadonlyMap<string, OtherRun> {
  const { namespace = "", name } = run.metadata
  const others = new Map<string, OtherRun>()
  if (run.spec.blockingCRs.length === 0) return others
  for (const key of runs.keysBy("namespace", namespace)) {
    const other = runs.get(key)?.object
    if (!other || other.metadata.name === name) continue
    const isKnown = other.status?.observedGeneration === other.metadata.generation
    const phase = isKnown ? other.status?.operation?.phase : undefined
    const outcome =
      phase === "Complete"
        ? "Succeeded"
        : phase === "Partial"
          ? "Partial"
          : phase === "Failed" || phase === "RolledBack"
            ? "Failed"
            : "Running"
    const completed = [...upgrades.keysBy("owner", other.metadata.uid ?? "")]
      .flatMap(each => upgrades.get(each)?.object ?? [])
      .filter(({ status }) => status?.state === "Completed")
      .map(({ spec }) => spec.cluster)
    others.set(other.metadata.name, { outcome, completed, blockers: other.spec.blockingCRs.map(each => each.name) })
  }
  return others
}
