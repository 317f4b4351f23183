import { clusterRoleBindings, roleBindings } from "#controllers/grants.ts"
import { grantName } from "#core/grant.ts"
import { apiVersionOf } from "#runtime/resource.ts"
import type { Inventory } from "../inventory.ts"

/** The kinds of binding that `aim grant` writes, and the field selector for them. */
export const grants = [roleBindings, clusterRoleBindings] as const
export const grantFields = `metadata.name=${grantName}`

const [inNamespaces, everywhere] = grants.map(resource => ({ apiVersion: apiVersionOf(resource), kind: resource.kind }))

/** No grant to change objects of this namespace was found; false where bindings could not be read. */
export function isUngranted(inventory: Inventory, namespace: string): boolean {
  if (inventory.whyMissing(inNamespaces!) !== undefined || inventory.whyMissing(everywhere!) !== undefined) return false
  if (inventory.of(everywhere!).size > 0) return false
  const bound = [...inventory.of(inNamespaces!).values()]
  return !bound.some(({ metadata }) => metadata.namespace === namespace)
}

/** The same, where grants are in use at all: controllers with an administrator's rights need none. */
export const lacksGrant = (inventory: Inventory, namespace: string): boolean =>
  inventory.of(inNamespaces!).size > 0 && isUngranted(inventory, namespace)
