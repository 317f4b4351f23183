import { workloadKinds } from "#core/workloads/kinds.ts"
import { type Resource, resourceOf } from "#runtime/resource.ts"
import { UsageError } from "../command.ts"
import { isObjectName } from "../names.ts"

/** Deployments, StatefulSets and DaemonSets, which can be updated in place. */
export const updatable: readonly { words: readonly string[]; resource: Resource }[] = workloadKinds
  .filter(({ isTarget }) => isTarget)
  .map(kind => ({ words: [...kind.shortNames, kind.name, kind.plural], resource: resourceOf(kind) }))

export type Workloads = { resource: Resource; names: string[] }

/** `deploy`, `deploy/A deploy/B`, `deploy A B`, `deployments.apps/A`; undefined where the first word is another kind. */
export function workloadsIn(words: readonly string[]): Workloads | undefined {
  const [first = "", ...rest] = words
  const resource = kindOf(first)
  if (!resource) return undefined
  const named = first.includes("/") ? words : rest.map(name => (name.includes("/") ? name : `${first}/${name}`))
  return { resource, names: named.map(word => nameIn(word, resource, first)) }
}

function nameIn(word: string, resource: Resource, first: string): string {
  if (kindOf(word) !== resource)
    throw new UsageError(`${word} is not of kind ${resource.kind}, as ${first} is: one kind at a time`)
  const name = word.slice(word.indexOf("/") + 1)
  if (!isObjectName(name))
    throw new UsageError(
      `${name || '""'} is not the name of an object: write ${word.split("/")[0]}/NAME, in lower case`,
    )
  return name
}

function kindOf(word: string): Resource | undefined {
  const [kind = "", ...group] = word.split("/")[0]!.toLowerCase().split(".")
  if (!["", "apps", "v1.apps"].includes(group.join("."))) return undefined
  return updatable.find(({ words }) => words.includes(kind))?.resource
}
