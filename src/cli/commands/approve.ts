import { approval } from "#operations/approve.ts"
import { change } from "#operations/change.ts"
import { tierNamed } from "#operations/words.ts"
import { approveCanary, canaryIn } from "../canary/operate.ts"
import { connectionOf, type Run } from "../command.ts"
import { parseNamed } from "../kinds.ts"
import { dryRunOf, told } from "../operate.ts"

export const run: Run = async (input, world) => {
  const canary = canaryIn(input.arguments)
  if (canary !== undefined) return approveCanary(canary, input, world)
  const [first, ...words] = input.arguments
  const { name } = parseNamed(first!)
  const named = [...new Set(words.map(tierNamed))]
  const dryRun = dryRunOf(input)
  const client = await world.connect(connectionOf(input))
  try {
    return told(await change(name, object => approval(object, named, world.program), { client, dryRun }), dryRun)
  } finally {
    client.close()
  }
}
