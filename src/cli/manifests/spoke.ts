import { group } from "#api/v1alpha1/group.ts"
import { spokeNames, upgradeKinds } from "#core/cluster-fleet/deliverable.ts"
import { type Manifest, partOf } from "./names.ts"

const rbac = "rbac.authorization.k8s.io/v1"
const { hubNamespace, hubAccount, executor, lease, preCacheNamespace } = spokeNames
const roleName = "aim-hub"

/** By their names, also where they do not exist yet: an apply that creates an object asks for `create` with its name. */
const written = ["get", "create", "update", "patch", "delete"]

/**
 * What a run needs on a cluster, and nothing else: no Secrets, pods, workloads or nodes. The verb `deliver` stands in for the
 * rights on workloads that the author policies ask for.
 */
const clusterRules = [
  {
    ...{ apiGroups: [group], resources: upgradeKinds.map(({ plural }) => plural) },
    verbs: ["get", "list", "watch", "create", "update", "patch", "delete", "deliver"],
  },
  { apiGroups: [""], resources: ["namespaces"], resourceNames: [preCacheNamespace], verbs: [...written, "watch"] },
  { apiGroups: [""], resources: ["configmaps"], resourceNames: ["pre-cache-spec"], verbs: [...written, "watch"] },
]
const leaseRules = [
  { apiGroups: ["coordination.k8s.io"], resources: ["leases"], resourceNames: [lease], verbs: [...written, "watch"] },
]

const serviceAccount = (name: string): Manifest => ({
  ...{ apiVersion: "v1", kind: "ServiceAccount", metadata: { name, namespace: hubNamespace, labels: partOf } },
  automountServiceAccountToken: false,
})

const subject = (name: string) => ({ kind: "ServiceAccount", name, namespace: hubNamespace })
const roleRef = (kind: string) => ({ apiGroup: "rbac.authorization.k8s.io", kind, name: roleName })

/** What a cluster gives to its hub. With `ocm` it is OCM's agent that writes, after it asked for the executor's rights. */
export function spokeManifests({ ocm }: { ocm: boolean }): Manifest[] {
  const account = ocm ? executor : hubAccount
  return [
    { apiVersion: "v1", kind: "Namespace", metadata: { name: hubNamespace, labels: partOf } },
    serviceAccount(account),
    {
      apiVersion: rbac,
      kind: "ClusterRole",
      metadata: {
        name: roleName,
        labels: { ...partOf, ...(ocm && { "open-cluster-management.io/aggregate-to-work": "true" }) },
      },
      rules: ocm ? [...clusterRules, ...leaseRules] : clusterRules,
    },
    {
      ...{ apiVersion: rbac, kind: "ClusterRoleBinding", metadata: { name: roleName, labels: partOf } },
      ...{ roleRef: roleRef("ClusterRole"), subjects: [subject(account)] },
    },
    ...(ocm
      ? []
      : [
          {
            ...{ apiVersion: rbac, kind: "Role" },
            ...{ metadata: { name: roleName, namespace: hubNamespace, labels: partOf }, rules: leaseRules },
          },
          {
            ...{ apiVersion: rbac, kind: "RoleBinding" },
            metadata: { name: roleName, namespace: hubNamespace, labels: partOf },
            ...{ roleRef: roleRef("Role"), subjects: [subject(account)] },
          },
        ]),
  ]
}
