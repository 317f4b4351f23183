import { kindNames } from "#api/names.ts"
import { group, version } from "#api/v1alpha1/group.ts"

/** What a hub may bring to a cluster, and what that is called in a path. */
export type DeliverableKind = {
  apiVersion: string
  kind: string
  group: string
  version: string
  plural: string
  namespaced: boolean
}

/** Names that hub and clusters agree on. */
export const spokeNames = {
  /** The namespace that `aim manifests spoke` makes: the accounts of a hub, and the Lease of a run. */
  hubNamespace: "aim-hub",
  /** The account that a hub reaches a cluster with directly. */
  hubAccount: "aim-hub",
  /** The account whose rights OCM's agent asks for before it writes. */
  executor: "aim-executor",
  /** In the namespace above: its holder is the run that works on the cluster. */
  lease: "aim-run",
  preCacheNamespace: "aim-pre-cache",
} as const

/** On every object that a hub delivers: which run sent it. */
export const runAnnotation = `${group}/run`
/** On what a hub writes: changes when another process begins to lead, so that earlier writes fail. */
export const fenceAnnotation = `${group}/fence`

/**
 * NodeImages are written by the controllers of a cluster alone. Of a hub's own kinds none is brought to a cluster: a hub
 * that is a cluster of another hub is no engine of that one.
 */
const notDelivered = ["NodeImage", "ClusterGroupUpgrade", "PreCachingConfig", "SpokeCluster", "ClusterUpgrade"]

/** Our kinds that an upgrade may list. */
export const upgradeKinds: readonly DeliverableKind[] = kindNames
  .filter(({ kind }) => !notDelivered.includes(kind))
  .map(({ kind, plural, scope }) => ({
    ...{ apiVersion: `${group}/${version}`, kind, group, version, plural, namespaced: scope === "Namespaced" },
  }))

/** What a run itself needs on a cluster. */
const helperKinds: readonly DeliverableKind[] = [
  { apiVersion: "v1", kind: "Namespace", group: "", version: "v1", plural: "namespaces", namespaced: false },
  { apiVersion: "v1", kind: "ConfigMap", group: "", version: "v1", plural: "configmaps", namespaced: true },
  {
    ...{ apiVersion: "coordination.k8s.io/v1", kind: "Lease", group: "coordination.k8s.io", version: "v1" },
    ...{ plural: "leases", namespaced: true },
  },
]

export const deliverableKinds: readonly DeliverableKind[] = [...upgradeKinds, ...helperKinds]

export const deliverableKindOf = ({ apiVersion, kind }: { apiVersion: string; kind: string }) =>
  deliverableKinds.find(each => each.apiVersion === apiVersion && each.kind === kind)
