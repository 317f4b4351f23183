import { ClusterGroupUpgrade } from "#api/v1alpha1/clustergroupupgrade/index.ts"
import { ClusterUpgrade } from "#api/v1alpha1/clusterupgrade/index.ts"
import { PreCachingConfig } from "#api/v1alpha1/precachingconfig/index.ts"
import { SpokeCluster } from "#api/v1alpha1/spokecluster/index.ts"
import type { Permission } from "#runtime/controller.ts"
import { controllerRevisions, core, resourceOf } from "#runtime/resource.ts"

export const clusterGroupUpgrades = resourceOf(ClusterGroupUpgrade)
export const clusterUpgrades = resourceOf(ClusterUpgrade)
export const preCachingConfigs = resourceOf(PreCachingConfig)
export const spokeClusters = resourceOf(SpokeCluster)
export const configMaps = core("configmaps", "ConfigMap")

/** The ConfigMap of the original beside a run. */
export const overridesName = "cluster-group-upgrade-overrides"
/** On the ControllerRevisions of runs, which alone are watched. */
export const planLabel = "autoimagemanager.io/cluster-group-upgrade"

export const permissions: readonly Permission[] = [
  { resource: clusterGroupUpgrades, verbs: ["list", "watch"] },
  { resource: clusterGroupUpgrades, subresource: "status", verbs: ["update"] },
  { resource: clusterUpgrades, verbs: ["list", "watch", "create", "delete"] },
  { resource: clusterUpgrades, subresource: "status", verbs: ["update"] },
  { resource: preCachingConfigs, verbs: ["list", "watch"] },
  { resource: spokeClusters, verbs: ["list", "watch", "patch"] },
  { resource: controllerRevisions, verbs: ["list", "watch", "create", "delete"] },
  { resource: configMaps, names: [overridesName], verbs: ["list", "watch"] },
]
