import { change } from "#operations/change.ts"
import { setImage, type Wanted } from "#operations/set-image.ts"
import { parseSettings } from "#operations/settings.ts"
import { canaryIn } from "../canary/operate.ts"
import { connectionOf, type Run } from "../command.ts"
import { parseNamed } from "../kinds.ts"
import { dryRunOf, told } from "../operate.ts"
import { timeoutOf, waitUntilOver } from "./wait.ts"

export const run: Run = async (input, world) => {
  const canary = canaryIn(input.arguments)
  if (canary !== undefined) return (await import("../canary/set-image.ts")).setCanaryImage(canary, input, world)
  const [first, ...words] = input.arguments
  const { name } = parseNamed(first!)
  const wanted: Wanted = { settings: parseSettings(words), supersede: Boolean(input.options.supersede), words }
  const dryRun = dryRunOf(input)
  const timeoutMs = timeoutOf(input)
  const client = await world.connect(connectionOf(input))
  try {
    const decided = await change(name, object => setImage(object, wanted, world.program), { client, dryRun })
    const { next, ...answer } = told(decided, dryRun)
    if (!input.options.wait || dryRun) return { ...answer, ...(next && { next }) }
    await world.write(answer.text)
    if (next) world.say(next)
    return await waitUntilOver([name], { client, world, timeoutMs })
  } finally {
    client.close()
  }
}
