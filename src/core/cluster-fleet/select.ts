import type { ClusterGroupUpgradeSpec } from "#api/v1alpha1/clustergroupupgrade/index.ts"
import { maxClusters } from "#api/v1alpha1/clustergroupupgrade/index.ts"
import { type LabelSelector, selects } from "#lib/label-selector.ts"
import { nameSome } from "#lib/text.ts"

/** A cluster that the hub knows. */
export type KnownCluster = { name: string; labels: Readonly<Record<string, string>> }

/** What a Placement has decided: names of clusters, by the index of their group. */
export type PlacementDecisions = readonly { group: number; clusters: readonly string[] }[]

export type Selection =
  | { ok: true; clusters: readonly string[] }
  | {
      ok: false
      reason: "ClusterNotFound" | "NoClusters" | "TooManyClusters" | "PlacementNotFound"
      message: string
    }

type Selectors = Pick<ClusterGroupUpgradeSpec, "clusters" | "clusterLabelSelectors" | "placementRef">

/**
 * The clusters of a run in their order, each once: those by name as they are written, then those that a selector finds by
 * name, then those of the Placement by group and name.
 */
export function selectClusters(
  { clusters, clusterLabelSelectors, placementRef }: Selectors,
  known: ReadonlyMap<string, KnownCluster>,
  decisions: PlacementDecisions | undefined,
): Selection {
  const missing = clusters.filter(name => !known.has(name))
  if (missing.length > 0) {
    const names = nameSome(missing.slice(0, 3), missing.length)
    const message = `spec.clusters: the hub does not know ${names}; add it with \`aim cluster add\`, or take it off the list`
    return { ok: false, reason: "ClusterNotFound", message }
  }
  if (placementRef && !decisions) {
    const message = `spec.placementRef: no decision of a Placement ${placementRef.name} is in this namespace`
    return { ok: false, reason: "PlacementNotFound", message }
  }
  const bySelector = [...known.values()]
    .filter(({ labels }) => clusterLabelSelectors.some(selector => selects(selector as LabelSelector, labels)))
    .map(({ name }) => name)
    .sort()
  const byPlacement = [...(decisions ?? [])]
    .sort((a, b) => a.group - b.group)
    .flatMap(({ clusters }) => [...clusters].sort())
    // A Placement may decide for a cluster that is leaving.
    .filter(name => known.has(name))
  const all = [...new Set([...clusters, ...bySelector, ...byPlacement])]
  if (all.length === 0)
    return {
      ok: false,
      reason: "NoClusters",
      message: "spec.clusterLabelSelectors and spec.placementRef give no cluster",
    }
  if (all.length > maxClusters) {
    const message = `${all.length} clusters are selected, and a run may have ${maxClusters}: narrow the selectors`
    return { ok: false, reason: "TooManyClusters", message }
  }
  return { ok: true, clusters: all }
}
