import { workloadKinds } from "#core/workloads/kinds.ts"
import { closest } from "#lib/closest.ts"
import type { Client } from "#runtime/client/client.ts"
import { isFailure } from "#runtime/client/errors.ts"
import { core, type KubeObject, type Resource, resourceOf } from "#runtime/resource.ts"
import { Failure, UsageError } from "../command.ts"
import { splitReference } from "../stamped-kinds.ts"

export const pods = core("pods", "Pod")
export const replicaSets = resourceOf(workloadKinds.find(({ kind }) => kind === "ReplicaSet")!)

/** What can be restarted: pods, and kinds whose pods are always started again. */
export const restartable: readonly { words: readonly string[]; resource: Resource }[] = [
  { words: ["pod", "pods", "po"], resource: pods },
  ...workloadKinds
    .filter(({ group }) => group === "apps")
    .map(kind => ({ words: [kind.name, kind.plural, ...kind.shortNames], resource: resourceOf(kind) })),
]

export type Target = {
  resource: Resource
  name: string
  namespace: string
  /** As it was typed: `deploy/web`. */
  title: string
}

export const isPod = ({ resource }: Pick<Target, "resource">) => resource === pods

export function parseTarget(text: string): Omit<Target, "namespace"> {
  const { word, name } = splitReference(text)
  const found = restartable.find(({ words }) => words.includes(word.toLowerCase().split(".")[0]!))
  if (found) return { resource: found.resource, name, title: text }
  const known = restartable.map(({ words }) => words[0]!)
  const meant = closest(word.toLowerCase(), known)
  throw new UsageError(
    `${word || '""'} cannot be restarted: write ${known.join("/, ")}/${meant ? ` (did you mean ${meant}/${name}?)` : ""}`,
  )
}

/** The pod or the workload itself. A missing one is an error that names the closest. */
export async function fetchTarget(client: Client, { resource, name, namespace, title }: Target): Promise<KubeObject> {
  try {
    return await client.get(resource, { name, namespace })
  } catch (error) {
    if (!isFailure(error, "NotFound")) throw error
  }
  const { items } = await client.list(resource, { namespace, metadataOnly: true })
  const meant = closest(
    name,
    items.map(({ metadata }) => metadata.name),
  )
  const hint = meant ? `; did you mean ${title.split("/")[0]}/${meant}?` : ""
  throw new Failure(`there is no ${resource.kind} ${name} in namespace ${namespace}${hint}`)
}
