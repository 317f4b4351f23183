import { change } from "#operations/change.ts"
import { pause } from "#operations/pause.ts"
import { canaryIn, pauseCanary } from "../canary/operate.ts"
import { connectionOf, type Run } from "../command.ts"
import { parseNamed } from "../kinds.ts"
import { dryRunOf, told } from "../operate.ts"

export const run: Run = async (input, world) => {
  const canary = canaryIn(input.arguments)
  if (canary !== undefined) return pauseCanary(canary, input, world)
  const { name } = parseNamed(input.arguments[0]!)
  const dryRun = dryRunOf(input)
  const client = await world.connect(connectionOf(input))
  try {
    return told(await change(name, object => pause(object, world.program), { client, dryRun }), dryRun)
  } finally {
    client.close()
  }
}
