import { change } from "#operations/change.ts"
import { rollback } from "#operations/rollback.ts"
import type { Rollout } from "#operations/rollout.ts"
import { canaryIn, rollbackCanary } from "../canary/operate.ts"
import { connectionOf, type Run, UsageError } from "../command.ts"
import { parseNamed } from "../kinds.ts"
import { dryRunOf, told } from "../operate.ts"
import { rollbackWorkload } from "../workloads/rollback.ts"
import { workloadsIn } from "../workloads/words.ts"
import { rollouts, timeoutOf, waitUntilOver } from "./wait.ts"

export const run: Run = async (input, world) => {
  const canary = canaryIn(input.arguments)
  if (canary !== undefined) return rollbackCanary(canary, input, world)
  const workloads = workloadsIn(input.arguments)
  if (workloads) return rollbackWorkload(input, world, workloads)
  const { name } = parseNamed(input.arguments[0]!)
  if (input.options.toRevision !== undefined)
    throw new UsageError(
      "--to-revision is for workloads: of a ServiceImage, only the last operation can be rolled back",
    )
  const timeoutMs = timeoutOf(input)
  const wanted = input.options.operation as string | undefined
  const dryRun = dryRunOf(input)
  const client = await world.connect(connectionOf(input))
  try {
    const decided = await change(name, object => rollback(object, wanted, world.program), { client, dryRun })
    const answer = told(decided, dryRun)
    if (!input.options.wait || dryRun) return answer
    await world.write(answer.text)
    world.say(answer.next)
    return await waitUntilOver([name], { client, world, timeoutMs, of: rollouts(isTakenBack(decided.id)) })
  } finally {
    client.close()
  }
}

/** The phase is old until the controller has read the annotation: only RolledBack or another operation ends the wait. */
const isTakenBack =
  (id: string) =>
  ({ operation }: Rollout) => {
    if (operation?.id !== id) return "failed"
    return operation.phase === "RolledBack" ? "complete" : undefined
  }
