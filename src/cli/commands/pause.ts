import { canaryIn, pauseCanary } from "../canary/operate.ts"
import { connectionOf, type Run } from "../command.ts"
import { parseNamed } from "../kinds.ts"
import { change, doneWords, dryRunOf, nextWords, underWay, underWayWords } from "../operate.ts"
import { rolloutOf, type Seen } from "../rollout.ts"

export const run: Run = async (input, world) => {
  const canary = canaryIn(input.arguments)
  if (canary !== undefined) return pauseCanary(canary, input, world)
  const { name } = parseNamed(input.arguments[0]!)
  const dryRun = dryRunOf(input)
  const client = await world.connect(connectionOf(input))
  try {
    const decide = ({ spec }: Seen) => ({ patch: spec.paused ? undefined : { spec: { paused: true } } })
    const { patch, object } = await change(name, decide, { client, dryRun })
    const text = doneWords(`${patch ? "paused" : "already paused"}: si/${name}`, dryRun)
    return { text: `${text}\n`, exitCode: 0, next: nextWords(whatIsNext(object, world.program), dryRun) }
  } finally {
    client.close()
  }
}

/** A pause does not stop objects that were stamped already; no other starts. */
function whatIsNext(object: Seen, program: string): string {
  const rollout = rolloutOf(object)
  const onTheirWay = underWay(rollout)
  const resume = `${program} resume si/${rollout.name}`
  if (onTheirWay.length > 0)
    return `Still finishing: ${underWayWords(onTheirWay)}. Nothing else is stamped until ${resume}`
  const rest = rollout.upToDate < rollout.total ? rollout.total - rollout.upToDate : 0
  return rest > 0
    ? `No object is under way. ${rest === 1 ? "The remaining one keeps its image" : `The remaining ${rest} keep their images`} until ${resume}`
    : `No object is under way. Objects created or changed from now on wait until ${resume}`
}
