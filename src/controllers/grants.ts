import { grantName } from "#core/grant.ts"
import type { Permission, Wiring } from "#runtime/controller.ts"
import { type KubeObject, nameOf, type Resource } from "#runtime/resource.ts"

const rbac = { group: "rbac.authorization.k8s.io", version: "v1" }
export const roleBindings: Resource = { ...rbac, plural: "rolebindings", kind: "RoleBinding", namespaced: true }
export const clusterRoleBindings: Resource = {
  ...rbac,
  plural: "clusterrolebindings",
  kind: "ClusterRoleBinding",
  namespaced: false,
}

export const grantPermissions: readonly Permission[] = [roleBindings, clusterRoleBindings].map(resource => ({
  resource,
  names: [grantName],
  verbs: ["list", "watch"],
}))

/**
 * Calls back with the namespace whose grant has changed, or undefined for all namespaces. Without this, a grant would
 * take effect only at the next attempt, which may be minutes away.
 */
export function watchGrants(wiring: Wiring, onGrant: (namespace: string | undefined) => void): void {
  const grants = { project: readVersion, fieldSelector: `metadata.name=${grantName}` }
  wiring.watch(roleBindings, grants).subscribe(({ key }) => onGrant(nameOf(key).namespace))
  wiring.watch(clusterRoleBindings, grants).subscribe(() => onGrant(undefined))
}

const readVersion = ({ metadata }: KubeObject) => ({ resourceVersion: metadata.resourceVersion ?? "" })
