import { endOfOperation } from "#core/operation.ts"
import { connectionOf, type Run } from "../command.ts"
import { parseNamed, serviceImages } from "../kinds.ts"
import { isUnobserved, unobservedSentence } from "../operate.ts"
import { type Happened, historyTable } from "../render/history.ts"
import { toYaml } from "../render/yaml.ts"
import type { Seen } from "../rollout.ts"
import { fetchAll } from "./get.ts"

export const run: Run = async (input, world) => {
  const { name } = parseNamed(input.arguments[0]!)
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
    const text = historyTable(operations, { view: world.view, now: world.clock.now(), wide: format === "wide" })
    return { text, exitCode: 0 }
  } finally {
    client.close()
  }
}

/** The present or last one first, then the earlier ones as they are recorded, the newest first. */
export function operationsOf({ status }: Seen): Happened[] {
  const { operation, history = [] } = status ?? {}
  if (!operation) return [...history]
  const endedAt = endOfOperation(status!)
  return [{ ...operation, ...(endedAt && { endedAt }) }, ...history]
}
