import type { Permission } from "#runtime/controller.ts"

export type Rule = { apiGroups: string[]; resources: string[]; verbs: string[] }

const verbOrder: readonly string[] = ["get", "list", "watch", "create", "update", "patch", "delete"]

/** RBAC rules for what was declared, and nothing more: same group and verbs share a rule, everything sorted. */
export function rulesFor(permissions: readonly Permission[]): Rule[] {
  const verbsBy = new Map<string, { group: string; resource: string; verbs: Set<string> }>()
  for (const { resource, subresource, verbs } of permissions) {
    const name = subresource ? `${resource.plural}/${subresource}` : resource.plural
    const entry = verbsBy.get(`${resource.group} ${name}`) ?? {
      group: resource.group,
      resource: name,
      verbs: new Set(),
    }
    for (const verb of verbs) entry.verbs.add(verb)
    verbsBy.set(`${resource.group} ${name}`, entry)
  }
  const rules = new Map<string, Rule>()
  for (const { group, resource, verbs } of verbsBy.values()) {
    if (verbs.size === 0) continue
    const sorted = verbOrder.filter(verb => verbs.has(verb))
    const id = `${group} ${sorted}`
    const rule = rules.get(id) ?? { apiGroups: [group], resources: [], verbs: sorted }
    rule.resources.push(resource)
    rules.set(id, rule)
  }
  return [...rules.entries()]
    .sort(([left], [right]) => (left < right ? -1 : 1))
    .map(([, rule]) => ({ ...rule, resources: rule.resources.sort() }))
}
