import type { AlternateImageSource } from "#api/v1alpha1/alternateimagesource/index.ts"
import type { Instant } from "#lib/instant.ts"
import { columnsOf } from "#operations/columns.ts"
import { fetchAll } from "#operations/fetch.ts"
import type { Seen } from "#operations/rollout.ts"
import type { Client } from "#runtime/client/client.ts"
import type { Resource } from "#runtime/resource.ts"
import { connectionOf, type Run, UsageError, type World } from "../command.ts"
import { follow } from "../follow.ts"
import { alternateImageSources, ours, parseReferences, serviceImages, shortOf } from "../kinds.ts"
import { namespaceOf } from "../namespace.ts"
import { kindTable } from "../render/kind.ts"
import { machineReadable, rolloutTable, sourceTable } from "../render/table.ts"
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
