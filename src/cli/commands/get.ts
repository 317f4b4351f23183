import { closest } from "#lib/closest.ts"
import type { Client } from "#runtime/client/client.ts"
import { isFailure } from "#runtime/client/errors.ts"
import type { Resource } from "#runtime/resource.ts"
import { connectionOf, Failure, type Run } from "../command.ts"
import { parseReferences } from "../kinds.ts"
import { machineReadable, rolloutTable } from "../render/table.ts"
import type { Seen } from "../rollout.ts"

export const run: Run = async (input, world) => {
  const { resource, names } = parseReferences(input.arguments)
  const format = input.options.output as "wide" | "name" | "json" | "yaml" | undefined
  const client = await world.connect(connectionOf(input))
  try {
    const objects = await fetchAll(client, resource, names)
    if (format && format !== "wide")
      return { text: machineReadable(objects, { format, resource, single: names.length === 1 }), exitCode: 0 }
    if (objects.length === 0) {
      world.say(noneYet)
      return { text: "", exitCode: 0 }
    }
    const text = rolloutTable(objects, { view: world.view, now: world.clock.now(), wide: format === "wide" })
    return { text, exitCode: 0 }
  } finally {
    client.close()
  }
}

export const noneYet = "There is no ServiceImage yet. docs/kinds/serviceimage.md shows how to write one."

/** The objects of these names, or all; every name that is not there is an error with the name that was meant. */
export async function fetchAll(client: Client, resource: Resource, names: readonly string[]): Promise<Seen[]> {
  if (names.length === 1) {
    const found = await client.get<Seen>(resource, { name: names[0]! }).catch(error => {
      if (isFailure(error, "NotFound")) return undefined // the list below tells a missing name from a missing kind
      throw error
    })
    if (found) return [found]
  }
  const all: Seen[] = []
  for (let token = ""; ; ) {
    const page = await client.list<Seen>(resource, { limit: 500, ...(token && { continue: token }) })
    all.push(...page.items)
    token = page.metadata.continue ?? ""
    if (!token) break
  }
  const found = all.filter(({ metadata }) => names.length === 0 || names.includes(metadata.name))
  const missing = names.filter(name => !found.some(({ metadata }) => metadata.name === name))
  if (missing.length > 0) throw new Failure(missing.map(name => missingMessage(name, resource, all)).join("\n"))
  return found
}

function missingMessage(name: string, { kind }: Resource, all: readonly Seen[]): string {
  const meant = closest(
    name,
    all.map(({ metadata }) => metadata.name),
  )
  return `there is no ${kind} ${name}${meant ? `; did you mean si/${meant}?` : ""}`
}
