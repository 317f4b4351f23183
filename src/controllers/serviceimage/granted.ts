import type { Resource } from "#runtime/resource.ts"
import type { Inventory } from "./inventory.ts"

const rbac = { group: "rbac.authorization.k8s.io", version: "v1" }
const binding = { name: "aim-target", apiVersion: "rbac.authorization.k8s.io/v1" }

/** Where `aim grant` leaves its bindings, and which of their objects these are. */
export const grants: readonly Resource[] = [
  { ...rbac, plural: "rolebindings", kind: "RoleBinding", namespaced: true },
  { ...rbac, plural: "clusterrolebindings", kind: "ClusterRoleBinding", namespaced: false },
]
export const grantFields = `metadata.name=${binding.name}`

/** Nobody has granted us to change objects of this namespace, as far as could be seen. */
export function isUngranted(inventory: Inventory, namespace: string): boolean {
  const [inNamespaces, everywhere] = grants.map(({ kind }) => ({ apiVersion: binding.apiVersion, kind }))
  if (inventory.whyMissing(inNamespaces!) !== undefined || inventory.whyMissing(everywhere!) !== undefined) return false
  if (inventory.of(everywhere!).size > 0) return false
  const bound = [...inventory.of(inNamespaces!).values()]
  return !bound.some(({ metadata }) => metadata.namespace === namespace)
}

/** The same where grants are in use at all: controllers of an administrator's need none. */
export const lacksGrant = (inventory: Inventory, namespace: string): boolean =>
  isUngranted(inventory, namespace) &&
  grants.some(({ kind }) => inventory.of({ apiVersion: binding.apiVersion, kind }).size > 0)
