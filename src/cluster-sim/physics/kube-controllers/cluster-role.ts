import { selects } from "#lib/label-selector.ts"
import type { Json, Obj } from "../../object.ts"
import type { Part, PhysicsWorld } from "../world.ts"
import { keyOf, loop, nameOf, servedKind } from "./loop.ts"
import { same } from "./same.ts"

/** The rules of all roles that an aggregation rule selects, each once, in the order of the roles' names. */
function aggregatedRules(role: Obj, roles: readonly Obj[]): Json[] {
  const rules: Json[] = []
  for (const selector of role.aggregationRule.clusterRoleSelectors ?? []) {
    const chosen = roles.filter(
      ({ metadata }) => metadata.name !== role.metadata.name && selects(selector, metadata.labels),
    )
    for (const { rules: some } of chosen.sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1)))
      for (const rule of some ?? []) if (!rules.some(known => same(known, rule))) rules.push(rule)
  }
  return rules
}

/** Fills the rules of aggregated ClusterRoles. Reads and writes ClusterRoles. */
export function clusterRoleAggregation(world: PhysicsWorld): Part {
  const { storage } = world
  const clusterRoles = servedKind(storage, "rbac.authorization.k8s.io/v1", "ClusterRole")
  return loop(world, {
    name: "clusterrole-aggregation-controller",
    watches: [
      {
        apiVersion: "rbac.authorization.k8s.io/v1",
        kind: "ClusterRole",
        keys: () =>
          storage
            .list(clusterRoles)
            .items.filter(role => role.aggregationRule)
            .map(keyOf),
      },
    ],
    reconcile(key) {
      const role = storage.find(clusterRoles, nameOf(key))
      if (!role?.aggregationRule) return undefined
      const rules = aggregatedRules(role, storage.list(clusterRoles).items)
      if (!same(rules, role.rules ?? []))
        storage.update(clusterRoles, { ...role, rules }, { fieldManager: "clusterrole-aggregation-controller" })
      return undefined
    },
  })
}
