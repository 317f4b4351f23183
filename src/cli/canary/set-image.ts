import type { SeenCanary } from "#operations/canary/progress.ts"
import { parseCanarySettings, setRunImage } from "#operations/canary/set-image.ts"
import { fetchAll } from "#operations/fetch.ts"
import type { KubeObject } from "#runtime/resource.ts"
import { type Answer, connectionOf, type Input, type World } from "../command.ts"
import { timeoutOf, waitUntilOver } from "../commands/wait.ts"
import { canaries } from "../kinds.ts"
import { namespaceOf } from "../namespace.ts"
import { doneWords, dryRunOf, nextWords } from "../operate.ts"
import { runs } from "./wait.ts"

/** `aim set-image canary/NAME`. */
export async function setCanaryImage(name: string, input: Input, world: World): Promise<Answer> {
  const words = input.arguments.slice(1)
  parseCanarySettings(words)
  const dryRun = dryRunOf(input)
  const timeoutMs = timeoutOf(input)
  const namespace = await namespaceOf(input, world)
  const client = await world.connect(connectionOf(input))
  try {
    const [canary] = await fetchAll<SeenCanary & KubeObject>(client, canaries, [name], { namespace })
    const typed = input.arguments.join(" ")
    const supersede = Boolean(input.options.supersede)
    const set = await setRunImage(client, canary!, { words, typed, supersede, program: world.program, dryRun })
    const done = doneWords(set.lines.join("\n"), dryRun)
    const next = nextWords(set.next, dryRun)
    if (!input.options.wait || dryRun) return { text: `${done}\n`, exitCode: 0, ...(next && { next }) }
    await world.write(`${done}\n`)
    if (next) world.say(next)
    return await waitUntilOver([name], { client, world, timeoutMs, of: runs(namespace) })
  } finally {
    client.close()
  }
}
