import { explanations } from "#explain/all.generated.ts"
import type { Explained } from "#explain/explained.ts"
import { type Inventory, kindOf } from "#explain/inventory.ts"
import { plainly } from "#explain/plain.ts"
import type { Reading } from "#explain/reading.ts"
import { closest } from "#lib/closest.ts"
import type { Instant } from "#lib/instant.ts"
import { nameSome } from "#lib/text.ts"
import type { Client } from "#runtime/client/client.ts"
import { isFailure } from "#runtime/client/errors.ts"
import type { KubeObject, Resource } from "#runtime/resource.ts"
import { Failure, type Input, type World } from "./command.ts"
import { demand, look } from "./look.ts"
import { namespaceOf } from "./namespace.ts"

/** A question about the objects of one kind. */
export type Question = {
  resource: Resource
  /** Without a name, every object of the kind. */
  name?: string | undefined
  namespace: string | undefined
}

/** How to explain a kind of ours: by its own explanation, or by its conditions alone. */
export const explainedOf = async (resource: Resource): Promise<Explained> =>
  (await explanations[resource.kind]?.()) ?? plainly(resource)

export type Found = { inventory: Inventory; now: Instant; namespace: string | undefined }

/** What a question needs, from the cluster or a dump. Of a dump, all namespaces may be meant. */
export async function lookFor(
  input: Input,
  world: World,
  { resource, name, namespace: given }: Question,
  readingIn: (namespace: string | undefined) => Reading,
): Promise<Found> {
  let namespace = resource.namespaced ? given : undefined
  let reading = readingIn(namespace)
  const { inventory, serverNow: now } = await look(input, world, async client => {
    if (resource.namespaced)
      namespace ??= (name && (await whereIs(client, resource, name))) || (await namespaceOf(input, world))
    reading = readingIn(namespace)
    return reading
  })
  demand(inventory, reading.own.resource)
  if (!resource.namespaced) return { inventory, now, namespace }
  const named = [...inventory.of(kindOf(resource)).values()].filter(({ metadata }) => metadata.name === name)
  return { inventory, now, namespace: namespace ?? onlySpace(resource, name ?? "", named) }
}

/** With the name that was probably meant. */
export function notThere(inventory: Inventory, { resource, name = "", namespace }: Question): Failure {
  const all = [...inventory.of(kindOf(resource)).values()].map(({ metadata }) => metadata)
  const here = all.filter(each => namespace === undefined || each.namespace === namespace)
  const meant = closest(
    name,
    here.map(each => each.name),
  )
  const where = namespace === undefined ? "" : ` in namespace ${namespace}`
  return new Failure(`there is no ${resource.kind} ${name}${where}${meant ? `; did you mean ${meant}?` : ""}`)
}

/** The only namespace with an object of this name; undefined if none has one, or listing is forbidden. */
async function whereIs(client: Client, resource: Resource, name: string): Promise<string | undefined> {
  const found = await client
    .list(resource, { fieldSelector: `metadata.name=${name}`, metadataOnly: true })
    .catch(error => {
      if (isFailure(error, "Forbidden")) return { items: [] }
      throw error
    })
  return onlySpace(resource, name, found.items)
}

function onlySpace(resource: Resource, name: string, found: readonly KubeObject[]): string | undefined {
  const spaces = found.map(({ metadata }) => metadata.namespace ?? "")
  if (spaces.length > 1)
    throw new Failure(
      `${resource.kind} ${name} is in ${nameSome(spaces.slice(0, 5), spaces.length)}: choose one with -n NAMESPACE`,
    )
  return spaces[0]
}
