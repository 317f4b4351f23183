import type { AlternateImageSource } from "#api/v1alpha1/alternateimagesource/index.ts"
import { closest } from "#lib/closest.ts"
import type { Instant } from "#lib/instant.ts"
import type { Client } from "#runtime/client/client.ts"
import { isFailure } from "#runtime/client/errors.ts"
import { listAll } from "#runtime/client/list-all.ts"
import type { KubeObject, Resource } from "#runtime/resource.ts"
import { connectionOf, Failure, type Run, UsageError, type World } from "../command.ts"
import { follow } from "../follow.ts"
import { alternateImageSources, ours, parseReferences, serviceImages, shortOf } from "../kinds.ts"
import { namespaceOf } from "../namespace.ts"
import { columnsOf } from "../render/columns.ts"
import { kindTable } from "../render/kind.ts"
import { machineReadable, rolloutTable, sourceTable } from "../render/table.ts"
import type { Seen } from "../rollout.ts"
import { serverNow } from "../server-now.ts"

export const run: Run = async (input, world) => {
  const { resource, names } = parseReferences(input.arguments, ours)
  const format = input.options.output as "wide" | "name" | "json" | "yaml" | undefined
  const everywhere = input.options.allNamespaces === true
  const labelSelector = input.options.selector as string | undefined
  if (everywhere && names.length > 0)
    throw new UsageError("a name is in one namespace: write -n NAMESPACE instead of -A")
  if (labelSelector !== undefined && names.length > 0)
    throw new UsageError("names and --selector cannot be combined: leave one of them out")
  if (input.options.watch && format && format !== "wide")
    throw new UsageError(`--watch prints a table, and -o ${format} is for programs: leave one of them out`)
  const namespace = resource.namespaced && !everywhere ? await namespaceOf(input, world) : undefined
  const client = await world.connect(connectionOf(input))
  try {
    const objects = await fetchAll(client, resource, names, { namespace, labelSelector })
    if (format && format !== "wide")
      return { text: machineReadable(objects, { format, resource, single: names.length === 1 }), exitCode: 0 }
    const table = tableFor(resource, world, { wide: format === "wide", everywhere })
    if (input.options.watch) {
      await watch(client, table, world, { resource, names, namespace, labelSelector })
      return { text: "", exitCode: 0 }
    }
    if (objects.length > 0) return { text: table(objects, serverNow(client, world)), exitCode: 0 }
    world.say(noneYet(resource, namespace))
    return { text: "", exitCode: 0 }
  } finally {
    client.close()
  }
}

type Table = (objects: readonly Seen[], now: Instant, widths?: number[]) => string

const tableFor =
  (resource: Resource, { view }: World, { wide, everywhere }: { wide: boolean; everywhere: boolean }): Table =>
  (objects, now, widths = []) =>
    tableOf(resource, objects, { view, now, wide, widths, everywhere })

/** The table of a kind: its own one, or what its conditions tell. */
export function tableOf(resource: Resource, objects: readonly Seen[], how: Parameters<typeof kindTable>[1]): string {
  if (resource === serviceImages) return rolloutTable(objects, how)
  if (resource === alternateImageSources) return sourceTable(objects as unknown as AlternateImageSource[], how)
  return kindTable(objects, how, columnsOf(resource.kind))
}

type Chosen = {
  resource: Resource
  names: readonly string[]
  namespace: string | undefined
  labelSelector: string | undefined
}

/** Like kubectl: the table, then a line for each object whose line changes, until Ctrl-C. */
async function watch(client: Client, table: Table, world: World, chosen: Chosen): Promise<void> {
  const { clock, random, signal } = world
  const { names, ...of } = chosen
  const told = new Map<string, string>()
  const widths: number[] = []
  const name = names.length === 1 ? names[0] : undefined
  const onTrouble = () => world.say("lost the connection to the cluster, reconnecting")
  // While it watches, the cluster does not say what time it is.
  const aheadMs = serverNow(client, world) - clock.now()
  let isFirst = true
  for await (const objects of follow<Seen>({ client, ...of, name, clock, random, signal, onTrouble })) {
    const changed: Seen[] = []
    for (const [key, object] of objects) {
      if (names.length > 0 && !names.includes(object.metadata.name)) continue
      const line = table([object], 0) // without its age, which changes by itself
      if (told.get(key) !== line) changed.push(object)
      told.set(key, line)
    }
    const gone = [...told.keys()].filter(key => !objects.has(key))
    for (const key of gone) told.delete(key)
    const lines = changed.length > 0 ? table(changed, clock.now() + aheadMs, widths) : ""
    const rows = isFirst ? lines : lines.slice(lines.indexOf("\n") + 1)
    if (lines) isFirst = false
    const text = rows + gone.map(key => `${shortOf(chosen.resource)}/${key} deleted\n`).join("")
    if (text) await world.write(text)
  }
}

export const noneYet = ({ kind }: Resource, namespace?: string) =>
  `There is no ${kind}${namespace === undefined ? "" : ` in namespace ${namespace}`} yet. docs/kinds/${kind.toLowerCase()}.md shows how to write one.`

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
