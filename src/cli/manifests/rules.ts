import type { Permission } from "#runtime/controller.ts"

export type Rule = { apiGroups: string[]; resources: string[]; resourceNames?: string[]; verbs: string[] }

const verbOrder: readonly string[] = ["get", "list", "watch", "create", "update", "patch", "delete"]

/** RBAC rules for what was declared, and nothing more: same group, names and verbs share a rule, everything sorted. */
export function rulesFor(permissions: readonly Permission[]): Rule[] {
  const verbsBy = new Map<string, { group: string; resource: string; names: string[]; verbs: Set<string> }>()
  for (const {
    resource: { group, plural },
    subresource,
    names: only = [],
    verbs,
  } of permissions) {
    const resource = subresource ? `${plural}/${subresource}` : plural
    const names = [...only].sort()
    const id = `${group} ${resource} ${names}`
    const entry = verbsBy.get(id) ?? { group, resource, names, verbs: new Set() }
    for (const verb of verbs) entry.verbs.add(verb)
    verbsBy.set(id, entry)
  }
  const rules = new Map<string, Rule>()
  for (const { group, resource, names, verbs } of verbsBy.values()) {
    if (verbs.size === 0) continue
    const sorted = verbOrder.filter(verb => verbs.has(verb))
    const id = `${group} ${names} ${sorted}`
    const only = names.length > 0 ? { resourceNames: names } : {}
    const rule = rules.get(id) ?? { apiGroups: [group], resources: [], ...only, verbs: sorted }
    rule.resources.push(resource)
    rules.set(id, rule)
  }
  return [...rules.entries()]
    .sort(([left], [right]) => (left < right ? -1 : 1))
    .map(([, rule]) => ({ ...rule, resources: rule.resources.sort() }))
}
