import { retryAnnotation } from "#api/v1alpha1/serviceimage/annotations.ts"
import type { Decided, Patch } from "./change.ts"
import { rolloutOf, type Seen } from "./rollout.ts"
import { capital, courseWords, isUnobserved, progressLine, unobservedSentence } from "./words.ts"

/** Ends a pause. What was rolled back is tried once more. */
export function resume(object: Seen, program: string): Decided {
  const decision = decide(object)
  return {
    patch: decision.patch,
    done: outcome(decision, object),
    next: after => whatIsNext(decision, after, program),
  }
}

type Decision = { patch?: Patch | undefined; isRetry: boolean }

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
