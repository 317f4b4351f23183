import type { ClusterGroupUpgrade } from "#api/v1alpha1/clustergroupupgrade/index.ts"
import type { ClusterUpgrade } from "#api/v1alpha1/clusterupgrade/index.ts"
import type { PreCachingConfig } from "#api/v1alpha1/precachingconfig/index.ts"
import type { SpokeCluster } from "#api/v1alpha1/spokecluster/index.ts"
import type { FleetTransport } from "#core/cluster-fleet/transport.ts"
import type { Controller, Wiring } from "#runtime/controller.ts"
import { type Held, holdPlain, kindController } from "#runtime/kind-controller.ts"
import { controllerRevisions, nameOf } from "#runtime/resource.ts"
import { apply, type Done, type Hands, runKey } from "./apply.ts"
import { type Memory, newMemory } from "./memory.ts"
import { type Caches, type ConfigMap, observe, ownerUid, type Revision } from "./observe.ts"
import { type Plan, plan } from "./plan.ts"
import { report } from "./report.ts"
import {
  clusterGroupUpgrades,
  clusterUpgrades,
  configMaps,
  overridesName,
  permissions,
  planLabel,
  preCachingConfigs,
  spokeClusters,
} from "./resources.ts"
import type { Snapshot } from "./snapshot.ts"

type World = Caches & { hands: Hands }

/**
 * Brings objects of ours to a fleet of clusters, batch by batch. Reads ClusterGroupUpgrades, SpokeClusters,
 * PreCachingConfigs and their ConfigMap; writes ClusterUpgrades, the frozen plan as a ControllerRevision, the run's status,
 * labels of SpokeClusters that the run asks for, and through the transport what clusters get.
 */
export const createClusterGroupUpgradeController = (transportIn: (wiring: Wiring) => FleetTransport): Controller =>
  kindController<ClusterGroupUpgrade, World, Memory, Snapshot, Plan, Done>({
    name: "clustergroupupgrade",
    resource: clusterGroupUpgrades,
    permissions,
    concurrency: 4,
    turns: { of: key => nameOf(key).namespace ?? "", most: 2 },
    indexes: { namespace: ({ object }) => [object.metadata.namespace ?? ""] },
    open(wiring, runs) {
      const everyRun = () => {
        for (const [key] of runs.entries()) wiring.enqueue(key)
      }
      const upgrades = wiring.watch<Held<ClusterUpgrade>>(clusterUpgrades, {
        project: holdPlain,
        indexes: { owner: ({ object }) => [ownerUid(object)], cluster: ({ object }) => [object.spec.cluster] },
      })
      upgrades.subscribe(({ before, after }) => wiring.enqueue(runKey((after ?? before)!.object)))
      const spokes = wiring.watch<Held<SpokeCluster>>(spokeClusters, { project: holdPlain })
      spokes.subscribe(everyRun)
      const configs = wiring.watch<Held<PreCachingConfig>>(preCachingConfigs, { project: holdPlain })
      configs.subscribe(everyRun)
      const revisions = wiring.watch<Held<Revision>>(controllerRevisions, {
        project: holdPlain,
        labelSelector: planLabel,
        indexes: { owner: ({ object }) => [ownerUid(object)] },
      })
      revisions.subscribe(everyRun)
      const overrides = wiring.watch<Held<ConfigMap>>(configMaps, {
        project: holdPlain,
        fieldSelector: `metadata.name=${overridesName}`,
      })
      overrides.subscribe(everyRun)
      const { client, clock, identity } = wiring
      const hands = { client, clock, transport: transportIn(wiring), changed: (key: string) => wiring.enqueue(key) }
      return { identity, runs, upgrades, spokes, configs, revisions, overrides, hands }
    },
    remember: newMemory,
    async prepare({ upgrades, revisions }) {
      if (!upgrades.isCurrent) await upgrades.current()
      if (!revisions.isCurrent) await revisions.current()
      return true
    },
    observe,
    plan,
    apply: ({ hands }, snapshot, decided, look) => apply(hands, snapshot, decided, look),
    reports: "before",
    declares: ({ sends }) => sends.length > 0,
    report: (snapshot, decided, _, now) => report(snapshot, decided, now),
    onReported: ({ hands }, { memory }) => {
      memory.reportedAt = hands.clock.now()
    },
  })
