import { change } from "#operations/change.ts"
import { resume } from "#operations/resume.ts"
import { canaryIn, resumeCanary } from "../canary/operate.ts"
import { connectionOf, type Run } from "../command.ts"
import { parseNamed } from "../kinds.ts"
import { dryRunOf, told } from "../operate.ts"
import { resumeWorkload } from "../workloads/resume.ts"
import { workloadsIn } from "../workloads/words.ts"

export const run: Run = async (input, world) => {
  const canary = canaryIn(input.arguments)
  if (canary !== undefined) return resumeCanary(canary, input, world)
  const workloads = workloadsIn(input.arguments)
  if (workloads) return resumeWorkload(input, world, workloads)
  const { name } = parseNamed(input.arguments[0]!)
  const dryRun = dryRunOf(input)
  const client = await world.connect(connectionOf(input))
  try {
    return told(await change(name, object => resume(object, world.program), { client, dryRun }), dryRun)
  } finally {
    client.close()
  }
}
