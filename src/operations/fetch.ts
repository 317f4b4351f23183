import { closest } from "#lib/closest.ts"
import type { Client } from "#runtime/client/client.ts"
import { isFailure } from "#runtime/client/errors.ts"
import { listAll } from "#runtime/client/list-all.ts"
import type { KubeObject, Resource } from "#runtime/resource.ts"
import { shortOf } from "./kinds.ts"
import { Failure } from "./refusal.ts"
import type { Seen } from "./rollout.ts"

/** The objects of these names, or all; a missing name is an error that suggests the closest one. */
export async function fetchAll<T extends KubeObject = Seen>(
  client: Client,
  resource: Resource,
  names: readonly string[],
  { namespace, labelSelector }: { namespace?: string | undefined; labelSelector?: string | undefined } = {},
): Promise<T[]> {
  if (names.length === 1) {
    const found = await client.get<T>(resource, { name: names[0]!, namespace }).catch(error => {
      if (isFailure(error, "NotFound")) return undefined // the list below tells whether the name or the kind is missing
      throw error
    })
    if (found) return [found]
  }
  const selected = labelSelector === undefined ? {} : { labelSelector }
  const { items: all } = await listAll<T>(client, resource, { namespace, ...selected })
  const found = all.filter(({ metadata }) => names.length === 0 || names.includes(metadata.name))
  const missing = names.filter(name => !found.some(({ metadata }) => metadata.name === name))
  const where = namespace === undefined ? "" : ` in namespace ${namespace}`
  if (missing.length > 0) throw new Failure(missing.map(name => missingMessage(name, where, resource, all)).join("\n"))
  return found
}

function missingMessage(name: string, where: string, resource: Resource, all: readonly KubeObject[]): string {
  const meant = closest(
    name,
    all.map(({ metadata }) => metadata.name),
  )
  return `there is no ${resource.kind} ${name}${where}${meant ? `; did you mean ${shortOf(resource)}/${meant}?` : ""}`
}
