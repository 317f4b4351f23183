import { approveRun, pauseRun, resumeRun, rollbackRun, userOf } from "#operations/canary/operate.ts"
import type { SeenCanary } from "#operations/canary/progress.ts"
import { changeObject, type Decided } from "#operations/change.ts"
import type { Client } from "#runtime/client/client.ts"
import type { KubeObject } from "#runtime/resource.ts"
import { type Answer, connectionOf, type Input, type World } from "../command.ts"
import { canaries, kindNamed, parseNamed } from "../kinds.ts"
import { namespaceOf } from "../namespace.ts"
import { dryRunOf, told } from "../operate.ts"

/** `canary/NAME` as the first word of a command that else is about a ServiceImage. */
export function canaryIn([first = ""]: readonly string[]): string | undefined {
  return kindNamed(first.split("/")[0]!) === canaries ? parseNamed(first, canaries).name : undefined
}

type Decide = (canary: SeenCanary) => Decided<SeenCanary>

async function operate(
  name: string,
  input: Input,
  world: World,
  decideBy: (client: Client) => Promise<Decide> | Decide,
): Promise<Answer> {
  const dryRun = dryRunOf(input)
  const namespace = await namespaceOf(input, world)
  const client = await world.connect(connectionOf(input))
  try {
    const decide = await decideBy(client)
    const decided = await changeObject(
      { resource: canaries, name, namespace },
      (object: SeenCanary & KubeObject) => decide(object),
      { client, dryRun },
    )
    return told<SeenCanary>(decided, dryRun)
  } finally {
    client.close()
  }
}

export const approveCanary = (name: string, input: Input, world: World): Promise<Answer> =>
  operate(name, input, world, async client => {
    const user = await userOf(client)
    return canary => approveRun(canary, user)
  })

export const pauseCanary = (name: string, input: Input, world: World): Promise<Answer> =>
  operate(name, input, world, () => canary => pauseRun(canary, world.program))

export const resumeCanary = (name: string, input: Input, world: World): Promise<Answer> =>
  operate(name, input, world, () => resumeRun)

export const rollbackCanary = (name: string, input: Input, world: World): Promise<Answer> =>
  operate(
    name,
    input,
    world,
    () => canary => rollbackRun(canary, input.options.operation as string | undefined, world.program),
  )
