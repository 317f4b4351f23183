import { quote } from "../apiserver/refusals.ts"
import type { Attributes } from "./user.ts"

/** One rule of a Role or ClusterRole. */
export type Rule = {
  readonly verbs?: readonly string[] | null
  readonly apiGroups?: readonly string[] | null
  readonly resources?: readonly string[] | null
  readonly resourceNames?: readonly string[] | null
  readonly nonResourceURLs?: readonly string[] | null
}

/** Rules that allow everything. */
export const fullAuthority: readonly Rule[] = [
  { verbs: ["*"], apiGroups: ["*"], resources: ["*"] },
  { verbs: ["*"], nonResourceURLs: ["*"] },
]

const holds = (list: readonly string[] | null | undefined, word: string) => list?.includes(word) ?? false
const holdsOrAll = (list: Rule["verbs"], word: string) => holds(list, "*") || holds(list, word)

/** Whether this rule alone allows the request. */
export function allows(rule: Rule, { verb, group = "", resource = "", subresource, name = "", path }: Attributes) {
  if (!holdsOrAll(rule.verbs, verb)) return false
  if (path !== undefined) return (rule.nonResourceURLs ?? []).some(pattern => coversPath(pattern, path))
  const { resourceNames } = rule
  return (
    holdsOrAll(rule.apiGroups, group) &&
    coversResource(rule.resources, subresource ? `${resource}/${subresource}` : resource) &&
    (!resourceNames?.length || resourceNames.includes(name))
  )
}

/** An asterisk stands for every resource, and before a slash for every one with that subresource. `pods` leaves out `pods/log`. */
function coversResource(list: Rule["resources"], resource: string): boolean {
  if (holdsOrAll(list, resource)) return true
  const slash = resource.indexOf("/")
  return slash >= 0 && holds(list, `*${resource.slice(slash)}`)
}

const coversPath = (pattern: string, path: string) =>
  pattern === path || (pattern.endsWith("*") && path.startsWith(pattern.replace(/\*+$/, "")))

/** The parts of `wanted` that no rule of `held` allows, in the words of a refusal. */
export function missingRights(held: readonly Rule[], wanted: readonly Rule[]): string[] {
  const missing = wanted.flatMap(atoms).filter(atom => !held.some(rule => covers(rule, atom)))
  return [...new Set(compacted(missing).map(worded))].sort()
}

/** Splits a rule into the smallest rules. Each of these is covered by a single other rule, or not at all. */
function atoms({ verbs, apiGroups, resources, resourceNames, nonResourceURLs }: Rule): Rule[] {
  const found: Rule[] = []
  for (const group of apiGroups ?? [])
    for (const resource of resources ?? [])
      for (const verb of verbs ?? []) {
        const atom = { verbs: [verb], apiGroups: [group], resources: [resource] }
        if (resourceNames?.length) for (const name of resourceNames) found.push({ ...atom, resourceNames: [name] })
        else found.push(atom)
      }
  for (const url of nonResourceURLs ?? [])
    for (const verb of verbs ?? []) found.push({ verbs: [verb], nonResourceURLs: [url] })
  return found
}

function covers(rule: Rule, atom: Rule): boolean {
  const verb = atom.verbs?.[0] ?? ""
  if (!holdsOrAll(rule.verbs, verb)) return false
  const url = atom.nonResourceURLs?.[0]
  // A rule that is limited to names covers no path either.
  const names = rule.resourceNames ?? []
  const isNamed = names.length === 0 || (atom.resourceNames?.every(name => names.includes(name)) ?? false)
  if (url !== undefined) return isNamed && (rule.nonResourceURLs ?? []).some(pattern => coversPath(pattern, url))
  return (
    isNamed &&
    holdsOrAll(rule.apiGroups, atom.apiGroups?.[0] ?? "") &&
    coversResource(rule.resources, atom.resources?.[0] ?? "")
  )
}

/** Joins atoms that differ only in their verb. */
function compacted(rules: readonly Rule[]): Rule[] {
  const byTarget = new Map<string, Rule>()
  for (const rule of rules) {
    const { verbs, ...target } = rule
    const key = rule.nonResourceURLs ? JSON.stringify(rule) : JSON.stringify(target)
    const known = byTarget.get(key)
    byTarget.set(key, known ? { ...known, verbs: [...(known.verbs ?? []), ...(verbs ?? [])] } : rule)
  }
  return [...byTarget.values()]
}

/** As Go's %q writes a list. */
export const quotedList = (words: readonly string[]) => `[${words.map(quote).join(" ")}]`

function worded({ apiGroups, resources, nonResourceURLs, resourceNames, verbs }: Rule): string {
  const parts = Object.entries({
    APIGroups: apiGroups,
    Resources: resources,
    NonResourceURLs: nonResourceURLs,
    ResourceNames: resourceNames,
    Verbs: verbs,
  })
  return `{${parts.flatMap(([name, words]) => (words?.length ? [`${name}:${quotedList(words)}`] : [])).join(", ")}}`
}
