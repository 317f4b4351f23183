import type { AlternateImageSource } from "#api/v1alpha1/alternateimagesource/index.ts"
import { closest } from "#lib/closest.ts"
import type { Client } from "#runtime/client/client.ts"
import { isFailure } from "#runtime/client/errors.ts"
import type { KubeObject, Resource } from "#runtime/resource.ts"
import { connectionOf, Failure, type Run, UsageError } from "../command.ts"
import { alternateImageSources, parseReferences, serviceImages, shortOf } from "../kinds.ts"
import { namespaceOf } from "../namespace.ts"
import { machineReadable, rolloutTable, sourceTable } from "../render/table.ts"
import type { Seen } from "../rollout.ts"

export const run: Run = async (input, world) => {
  const { resource, names } = parseReferences(input.arguments, [serviceImages, alternateImageSources])
  const format = input.options.output as "wide" | "name" | "json" | "yaml" | undefined
  const everywhere = input.options.allNamespaces === true
  if (everywhere && names.length > 0)
    throw new UsageError("a name is in one namespace: write -n NAMESPACE instead of -A")
  const namespace = resource.namespaced && !everywhere ? await namespaceOf(input, world) : undefined
  const client = await world.connect(connectionOf(input))
  try {
    const objects = await fetchAll(client, resource, names, namespace)
    if (format && format !== "wide")
      return { text: machineReadable(objects, { format, resource, single: names.length === 1 }), exitCode: 0 }
    if (objects.length === 0) {
      world.say(resource === serviceImages ? noneYet : noSourceYet(namespace))
      return { text: "", exitCode: 0 }
    }
    const how = { view: world.view, now: world.clock.now(), wide: format === "wide" }
    const text =
      resource === serviceImages
        ? rolloutTable(objects, how)
        : sourceTable(objects as unknown as AlternateImageSource[], { ...how, everywhere })
    return { text, exitCode: 0 }
  } finally {
    client.close()
  }
}

export const noneYet = "There is no ServiceImage yet. docs/kinds/serviceimage.md shows how to write one."
const noSourceYet = (namespace: string | undefined) =>
  `There is no AlternateImageSource${namespace === undefined ? "" : ` in namespace ${namespace}`} yet. docs/kinds/alternateimagesource.md shows how to write one.`

/** The objects of these names, or all; every name that is not there is an error with the name that was meant. */
export async function fetchAll<T extends KubeObject = Seen>(
  client: Client,
  resource: Resource,
  names: readonly string[],
  namespace?: string,
): Promise<T[]> {
  if (names.length === 1) {
    const found = await client.get<T>(resource, { name: names[0]!, namespace }).catch(error => {
      if (isFailure(error, "NotFound")) return undefined // the list below tells a missing name from a missing kind
      throw error
    })
    if (found) return [found]
  }
  const all: T[] = []
  for (let token = ""; ; ) {
    const page = await client.list<T>(resource, { namespace, limit: 500, ...(token && { continue: token }) })
    all.push(...page.items)
    token = page.metadata.continue ?? ""
    if (!token) break
  }
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
