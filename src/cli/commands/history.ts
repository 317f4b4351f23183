import type { AlternateImageSource } from "#api/v1alpha1/alternateimagesource/index.ts"
import { endOfOperation } from "#core/fleet/rollout-state.ts"
import { progressOf, type SeenCanary } from "#operations/canary/progress.ts"
import { fetchAll } from "#operations/fetch.ts"
import type { Seen } from "#operations/rollout.ts"
import { sourceOf } from "#operations/source.ts"
import { isUnobserved, unobservedSentence } from "#operations/words.ts"
import type { KubeObject } from "#runtime/resource.ts"
import { type Answer, connectionOf, type Input, type Run, UsageError, type World } from "../command.ts"
import { alternateImageSources, canaries, parseReferences, serviceImages, shortOf } from "../kinds.ts"
import { namespaceOf } from "../namespace.ts"
import { runTable } from "../render/canary.ts"
import { type Happened, historyTable } from "../render/history.ts"
import { switchTable } from "../render/source.ts"
import { toYaml } from "../render/yaml.ts"
import { serverNow } from "../server-now.ts"
import { historyOfWorkload } from "../workloads/history.ts"
import { workloadsIn } from "../workloads/words.ts"

export const run: Run = async (input, world) => {
  const workloads = workloadsIn(input.arguments)
  if (workloads) return historyOfWorkload(input, world, workloads)
  const { resource, names } = parseReferences(input.arguments, [serviceImages, alternateImageSources, canaries])
  const [name] = names
  if (name === undefined) throw new UsageError(`which one? Write ${shortOf(resource)}/NAME`)
  if (names.length > 1) throw new UsageError("history shows one object: write one name")
  if (resource === alternateImageSources) return historyOfSource(name, input, world)
  if (resource === canaries) return historyOfCanary(name, input, world)
  const format = input.options.output as "wide" | "json" | "yaml" | undefined
  const client = await world.connect(connectionOf(input))
  try {
    const [object] = await fetchAll(client, serviceImages, [name])
    const operations = operationsOf(object!)
    if (format === "json") return { text: `${JSON.stringify(operations, null, 2)}\n`, exitCode: 0 }
    if (format === "yaml") return { text: toYaml(operations), exitCode: 0 }
    if (isUnobserved(object!)) world.say(unobservedSentence(object!, world.program))
    if (operations.length === 0) {
      world.say(`si/${name} has had no operation yet.`)
      return { text: "", exitCode: 0 }
    }
    const text = historyTable(operations, { view: world.view, now: serverNow(client, world), wide: format === "wide" })
    return { text, exitCode: 0 }
  } finally {
    client.close()
  }
}

/** The run that is under way, and the last ten that have ended. */
async function historyOfCanary(name: string, input: Input, world: World): Promise<Answer> {
  const format = input.options.output as "wide" | "json" | "yaml" | undefined
  const namespace = await namespaceOf(input, world)
  const client = await world.connect(connectionOf(input))
  try {
    const [object] = await fetchAll<KubeObject>(client, canaries, [name], { namespace })
    const progress = progressOf(object as unknown as SeenCanary)
    if (format === "json") return { text: `${JSON.stringify(progress.history, null, 2)}\n`, exitCode: 0 }
    if (format === "yaml") return { text: toYaml(progress.history), exitCode: 0 }
    if (!progress.run && progress.history.length === 0) {
      world.say(`canary/${name} has had no run yet.`)
      return { text: "", exitCode: 0 }
    }
    const how = { view: world.view, now: serverNow(client, world), wide: format === "wide" }
    return { text: runTable(progress, how), exitCode: 0 }
  } finally {
    client.close()
  }
}

/** The switches that the status still holds. */
async function historyOfSource(name: string, input: Input, world: World): Promise<Answer> {
  const format = input.options.output as "wide" | "json" | "yaml" | undefined
  const namespace = await namespaceOf(input, world)
  const client = await world.connect(connectionOf(input))
  try {
    const [object] = await fetchAll<AlternateImageSource & KubeObject>(client, alternateImageSources, [name], {
      namespace,
    })
    const { switches } = sourceOf(object!)
    if (format === "json") return { text: `${JSON.stringify(switches, null, 2)}\n`, exitCode: 0 }
    if (format === "yaml") return { text: toYaml(switches), exitCode: 0 }
    if (switches.length === 0) world.say(`ais/${name} has switched nothing yet.`)
    const how = { now: serverNow(client, world), wide: format === "wide" }
    return { text: switches.length > 0 ? switchTable(switches, how) : "", exitCode: 0 }
  } finally {
    client.close()
  }
}

/** The current or last one first, then the recorded earlier ones, the newest first. */
export function operationsOf({ status }: Seen): Happened[] {
  const { operation, history = [] } = status ?? {}
  if (!operation) return [...history]
  const endedAt = endOfOperation(status!)
  return [{ ...operation, ...(endedAt && { endedAt }) }, ...history]
}
