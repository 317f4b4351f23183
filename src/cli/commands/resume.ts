import { retryAnnotation } from "#api/v1alpha1/serviceimage/annotations.ts"
import { connectionOf, type Run } from "../command.ts"
import { parseNamed } from "../kinds.ts"
import { change, courseWords, isUnobserved, operationSentence, type Patch, unobservedSentence } from "../operate.ts"
import { progressLine } from "../render/status.ts"
import { rolloutOf, type Seen } from "../rollout.ts"

type Decision = { patch?: Patch | undefined; isRetry: boolean; wasPaused: boolean }

export const run: Run = async (input, world) => {
  const { name } = parseNamed(input.arguments[0]!)
  const client = await world.connect(connectionOf(input))
  try {
    const { object, ...decision } = await change(
      name,
      before => {
        const decided = decide(before)
        if (decided.isRetry && decided.patch)
          world.say(
            `si/${name}: ${operationSentence(before)}; it is tried again, as a new operation with the same images`,
          )
        return decided
      },
      { client },
    )
    return { text: `${outcome(decision, object)}\n`, exitCode: 0, next: whatIsNext(decision, object, world.program) }
  } finally {
    client.close()
  }
}

function decide({ metadata, spec, status }: Seen): Decision {
  const operation = status?.operation
  const wasPaused = spec.paused === true
  // If the spec asks for other images by now, they start as an operation of their own, and this one's id means nothing.
  const isRetry = operation?.phase === "RolledBack"
  const isAsked = metadata.annotations?.[retryAnnotation] === operation?.id
  const patch: Patch = {
    ...(wasPaused && { spec: { paused: false } }),
    ...(isRetry && !isAsked && { metadata: { annotations: { [retryAnnotation]: operation.id } } }),
  }
  return { patch: Object.keys(patch).length > 0 ? patch : undefined, isRetry, wasPaused }
}

function outcome({ patch, isRetry }: Decision, { metadata, status }: Seen): string {
  const what = `si/${metadata.name}${isRetry ? `, operation ${status!.operation!.id} once more` : ""}`
  if (patch) return `resumed: ${what}`
  return isRetry ? `already resumed: ${what}` : `not paused: ${what}`
}

function whatIsNext({ patch, isRetry, wasPaused }: Decision, object: Seen, program: string): string {
  const rollout = rolloutOf(object)
  const { name } = rollout
  const waiting = rollout.tiers.filter(tier => tier.awaitsApproval)
  if (patch && wasPaused && !isRetry) {
    if (rollout.total > 0 && rollout.upToDate === rollout.total)
      return "There is nothing left to do; new objects are stamped again."
    return courseWords(rollout, object, program)
  }
  if (isRetry)
    return courseWords(
      { ...rollout, tiers: rollout.tiers.map(tier => ({ ...tier, state: "Waiting" })) },
      object,
      program,
    )
  if (isUnobserved(object)) return `${unobservedSentence(object, program)}.`
  if (waiting.length > 0) return `It waits for approval: ${program} approve si/${name}`
  const { state } = rollout
  if (state === "Halted")
    return `${progressLine(rollout)}\nTo go on, mend what fails, set another image (${program} set-image si/${name} …) or take it back (${program} rollback si/${name})`
  return progressLine(rollout)
}
