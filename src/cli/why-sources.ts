import { alternateImageSources, pods } from "#controllers/alternateimagesource/resources.ts"
import { survey } from "#explain/alternateimagesource/survey.ts"
import { whyPod, whySource } from "#explain/alternateimagesource/why.ts"
import { type Inventory, kindOf } from "#explain/inventory.ts"
import { closest } from "#lib/closest.ts"
import type { Instant } from "#lib/instant.ts"
import { nameSome } from "#lib/text.ts"
import type { Client } from "#runtime/client/client.ts"
import { isFailure } from "#runtime/client/errors.ts"
import type { KubeObject, Resource } from "#runtime/resource.ts"
import { Failure, type Input, type World } from "./command.ts"
import { kindNamed } from "./kinds.ts"
import { demand, look } from "./look.ts"
import { namespaceOf } from "./namespace.ts"
import type { Answered } from "./render/why.ts"

const isPod = (word: string) => ["pod", "pods", "po"].includes(word.toLowerCase())

/** The kind of a question about where images are pulled from; undefined for any other question. */
export function sourceKind(word: string): Resource | undefined {
  if (isPod(word)) return pods
  return kindNamed(word)?.kind === alternateImageSources.kind ? alternateImageSources : undefined
}

export type Question = {
  resource: Resource
  /** Without a name, every object of the kind. */
  name?: string | undefined
  namespace: string | undefined
}

/** What a question about sources needs, from the cluster or a dump. Of a dump, all namespaces may be meant. */
export async function lookAtSources(
  input: Input,
  world: World,
  { resource, name, namespace: given }: Question,
): Promise<{ inventory: Inventory; now: Instant; namespace: string | undefined }> {
  let namespace = given
  const { inventory, serverNow: now } = await look(input, world, async client => {
    namespace ??= (name && (await whereIs(client, resource, name))) || (await namespaceOf(input, world))
    return { sources: { namespace, isAboutPod: resource === pods } }
  })
  demand(inventory, alternateImageSources)
  const named = [...inventory.of(kindOf(resource)).values()].filter(({ metadata }) => metadata.name === name)
  return { inventory, now, namespace: namespace ?? onlySpace(resource, name ?? "", named) }
}

export async function askAboutSources(
  input: Input,
  world: World,
  question: Question & { name: string },
): Promise<{ answer: Answered; now: Instant }> {
  const { resource, name } = question
  const { inventory, now, namespace } = await lookAtSources(input, world, question)
  const isDumped = input.options.from !== undefined
  if (isDumped && resource === pods && inventory.of(kindOf(alternateImageSources)).size === 0)
    throw new Failure(`the dump has no pods to explain ${name} by: the cluster had no AlternateImageSource`)
  if (namespace === undefined) throw notThere(inventory, question)
  const seen = survey(inventory, namespace, now)
  if (resource === pods) {
    const pod = seen.pod(name)
    if (pod) return { answer: whyPod(seen, pod), now }
  } else {
    const source = seen.all.find(({ metadata }) => metadata.name === name)
    if (source) return { answer: whySource(seen, source), now }
  }
  throw notThere(inventory, { ...question, namespace })
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
