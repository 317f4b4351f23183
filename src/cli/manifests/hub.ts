import { group } from "#api/v1alpha1/group.ts"
import { hubPolicies } from "#policies/hub.ts"
import { controllerName, controllerSubject, type Manifest, partOf } from "./names.ts"
import { policyManifests } from "./policies.ts"

const rbac = "rbac.authorization.k8s.io/v1"
const deliverRole = "aim-hub-deliver"
const kubeconfigsRole = "aim-hub-kubeconfigs"
const readRole = "aim-hub"
const authorRole = "aim-hub-author"

const bound = (kind: "ClusterRole" | "Role", name: string, namespace: string, place?: string): Manifest => ({
  ...{ apiVersion: rbac, kind: place === undefined ? "ClusterRoleBinding" : "RoleBinding" },
  metadata: { name, labels: partOf, ...(place !== undefined && { namespace: place }) },
  roleRef: { apiGroup: "rbac.authorization.k8s.io", kind, name },
  subjects: [controllerSubject(namespace)],
})

/**
 * What only a hub has, beside `aim manifests all`: to read OCM's clusters, placements and works; to read kubeconfigs in its
 * own namespace, by name; the verb that the author of a run needs. ManifestWorks are written where a cluster was granted.
 */
export const hubManifests = (namespace: string): Manifest[] => [
  {
    ...{ apiVersion: rbac, kind: "ClusterRole", metadata: { name: readRole, labels: partOf } },
    rules: [
      {
        apiGroups: ["cluster.open-cluster-management.io"],
        resources: ["managedclusters", "placements", "placementdecisions"],
        verbs: ["get", "list", "watch"],
      },
      {
        ...{
          apiGroups: ["work.open-cluster-management.io"],
          resources: ["manifestworks"],
          verbs: ["get", "list", "watch"],
        },
      },
    ],
  },
  bound("ClusterRole", readRole, namespace),
  {
    ...{ apiVersion: rbac, kind: "ClusterRole", metadata: { name: deliverRole, labels: partOf } },
    rules: [
      {
        apiGroups: ["work.open-cluster-management.io"],
        resources: ["manifestworks"],
        verbs: ["create", "patch", "delete"],
      },
    ],
  },
  {
    ...{ apiVersion: rbac, kind: "Role", metadata: { name: kubeconfigsRole, namespace, labels: partOf } },
    rules: [{ apiGroups: [""], resources: ["secrets"], verbs: ["get"] }],
  },
  bound("Role", kubeconfigsRole, namespace, namespace),
  {
    ...{ apiVersion: rbac, kind: "ClusterRole", metadata: { name: authorRole, labels: partOf } },
    rules: [{ apiGroups: [group], resources: ["spokeclusters"], verbs: ["upgrade"] }],
  },
  ...hubPolicies(`system:serviceaccount:${namespace}:${controllerName}`).flatMap(policyManifests),
]

/** Lets the hub write ManifestWorks in the namespace of one cluster. */
export const clusterGrant = (cluster: string, namespace: string): Manifest =>
  bound("ClusterRole", deliverRole, namespace, cluster)
