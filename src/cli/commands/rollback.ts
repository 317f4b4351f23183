import { rollbackAnnotation } from "#api/v1alpha1/serviceimage/annotations.ts"
import { canaryIn, rollbackCanary } from "../canary/operate.ts"
import { connectionOf, Failure, type Run, UsageError } from "../command.ts"
import { parseNamed } from "../kinds.ts"
import {
  change,
  doneWords,
  dryRunOf,
  isUnobserved,
  nextWords,
  objects,
  type Patch,
  unobservedSentence,
} from "../operate.ts"
import { printable } from "../render/paint.ts"
import { type Rollout, rolloutOf, type Seen } from "../rollout.ts"
import { setImageWords } from "../set-image.ts"
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
    const decided = await change(name, object => decide(object, wanted, world.program), { client, dryRun })
    const { id, outcome, object } = decided
    const done = doneWords(`${outcome}: operation ${id} of si/${name}`, dryRun)
    const next = nextWords(whatIsNext(decided, object, world.program), dryRun)
    if (!input.options.wait || dryRun) return { text: `${done}\n`, exitCode: 0, next }
    await world.write(`${done}\n`)
    world.say(next)
    return await waitUntilOver([name], { client, world, timeoutMs, of: rollouts(isTakenBack(id)) })
  } finally {
    client.close()
  }
}

type Decision = { patch?: Patch; id: string; outcome: "rolling back" | "already rolling back" | "already rolled back" }

function decide(object: Seen, wanted: string | undefined, program: string): Decision {
  const { metadata, status } = object
  const operation = status?.operation
  if (wanted !== undefined && wanted !== operation?.id) throw new Failure(notThatOne(object, wanted, program))
  if (isUnobserved(object)) throw new Failure(unobservedSentence(object, program))
  if (!operation) throw new Failure(`si/${metadata.name} has had no operation yet, so there is nothing to roll back`)
  const { id, phase } = operation
  if (phase === "RolledBack") return { id, outcome: "already rolled back" }
  const isAsked = phase === "RollingBack" || metadata.annotations?.[rollbackAnnotation] === id
  if (isAsked) return { id, outcome: "already rolling back" }
  return { id, outcome: "rolling back", patch: { metadata: { annotations: { [rollbackAnnotation]: id } } } }
}

/** Later operations have changed the same objects, so an older one cannot be undone; its images can be set again. */
function notThatOne(object: Seen, wanted: string, program: string): string {
  const { name } = object.metadata
  const { operation, history = [] } = object.status ?? {}
  const found = history.find(({ id }) => id === wanted)
  const list = `${program} history si/${name} lists earlier operations`
  if (!found) return `si/${name} has no operation ${printable(wanted)}: ${list}`
  const current = operation ? `, which is ${operation.id}` : ""
  const words = setImageWords(object.spec, found.images ?? {})
  const instead =
    words === undefined
      ? `its images are no longer recorded: ${list}`
      : words.length === 0
        ? "its images are the current ones"
        : `to set its images: ${program} set-image si/${name} ${words.join(" ")}`
  return `operation ${printable(wanted)} of si/${name} is over; only the last one can be rolled back${current}\n${instead}`
}

/** The phase is old until the controller has read the annotation: only RolledBack or another operation ends the wait. */
const isTakenBack =
  (id: string) =>
  ({ operation }: Rollout) => {
    if (operation?.id !== id) return "failed"
    return operation.phase === "RolledBack" ? "complete" : undefined
  }

function whatIsNext({ id, outcome }: Decision, object: Seen, program: string): string {
  const rollout = rolloutOf(object)
  const { name } = object.metadata
  const { history = [] } = object.status ?? {}
  const before = history.find(({ phase }) => phase === "Complete") ?? history[0]
  const words = before && setImageWords(object.spec, before.images ?? {})
  const former = words && words.length > 0 ? words.join(" ") : "IMAGE"
  const afterwards = `the spec still names the new images: set the images to keep (${program} set-image si/${name} ${former}), or try again (${program} resume si/${name}).`
  if (outcome === "already rolled back")
    return `The objects that it changed are back on their former images, and ${afterwards}`
  const changed = rollout.tiers.reduce((sum, tier) => sum + tier.updated, 0)
  const pause = object.spec.paused ? ` spec.paused is true and stops this too, until ${program} resume si/${name}.` : ""
  return `Only objects that ${id} changed return to their former image (${objects(changed)} at most), the lowest priority first.${pause}\nAfterwards ${afterwards}`
}
