import { retryAnnotation } from "#api/v1alpha1/serviceimage/annotations.ts"
import { canaryIn, resumeCanary } from "../canary/operate.ts"
import { connectionOf, type Run } from "../command.ts"
import { parseNamed } from "../kinds.ts"
import {
  capital,
  change,
  courseWords,
  doneWords,
  dryRunOf,
  isUnobserved,
  nextWords,
  type Patch,
  unobservedSentence,
} from "../operate.ts"
import { progressLine } from "../render/status.ts"
import { rolloutOf, type Seen } from "../rollout.ts"
import { resumeWorkload } from "../workloads/resume.ts"
import { workloadsIn } from "../workloads/words.ts"

type Decision = { patch?: Patch | undefined; isRetry: boolean }

export const run: Run = async (input, world) => {
  const canary = canaryIn(input.arguments)
  if (canary !== undefined) return resumeCanary(canary, input, world)
  const workloads = workloadsIn(input.arguments)
  if (workloads) return resumeWorkload(input, world, workloads)
  const { name } = parseNamed(input.arguments[0]!)
  const dryRun = dryRunOf(input)
  const client = await world.connect(connectionOf(input))
  try {
    const { object, ...decision } = await change(name, decide, { client, dryRun })
    const next = nextWords(whatIsNext(decision, object, world.program), dryRun)
    return { text: `${doneWords(outcome(decision, object), dryRun)}\n`, exitCode: 0, next }
  } finally {
    client.close()
  }
}

function decide({ metadata, spec, status }: Seen): Decision {
  const operation = status?.operation
  const wasPaused = spec.paused === true
  // If the spec has other images by now, they start a new operation, and the id of this one has no effect.
  const isRetry = operation?.phase === "RolledBack"
  const isAsked = metadata.annotations?.[retryAnnotation] === operation?.id
  const patch: Patch = {
    ...(wasPaused && { spec: { paused: false } }),
    ...(isRetry && !isAsked && { metadata: { annotations: { [retryAnnotation]: operation.id } } }),
  }
  return { patch: Object.keys(patch).length > 0 ? patch : undefined, isRetry }
}

function outcome({ patch, isRetry }: Decision, { metadata, status }: Seen): string {
  const what = `si/${metadata.name}${isRetry ? `, operation ${status!.operation!.id} once more` : ""}`
  if (patch) return `resumed: ${what}`
  return isRetry ? `already resumed: ${what}` : `not paused: ${what}`
}

function whatIsNext({ patch, isRetry }: Decision, object: Seen, program: string): string {
  const rollout = rolloutOf(object)
  const { name, tiers, state } = rollout
  if (isRetry) {
    const anew = { ...rollout, tiers: tiers.map(tier => ({ ...tier, state: "Waiting" as const })) }
    const what = `It was rolled back, and starts again with the same images, as a new operation.`
    return `${what}\n${courseWords(anew, object, program)}`
  }
  if (patch)
    return tiers.every(tier => tier.state === "Complete")
      ? "There is nothing left to do; objects created from now on are stamped again."
      : courseWords(rollout, object, program)
  if (isUnobserved(object)) return capital(unobservedSentence(object, program))
  if (tiers.some(tier => tier.awaitsApproval)) return `It waits for approval: ${program} approve si/${name}`
  if (state === "Halted")
    return `${progressLine(rollout)}\nTo continue, fix the failure, set another image (${program} set-image si/${name} …) or roll it back (${program} rollback si/${name})`
  return progressLine(rollout)
}
