import { rollbackAnnotation } from "#api/v1alpha1/serviceimage/annotations.ts"
import { printable } from "#lib/text.ts"
import type { Decided, Patch } from "./change.ts"
import { Failure } from "./refusal.ts"
import { rolloutOf, type Seen } from "./rollout.ts"
import { setImageWords } from "./settings.ts"
import { isUnobserved, objects, unobservedSentence } from "./words.ts"

type Outcome = "rolling back" | "already rolling back" | "already rolled back"
type Decision = { patch?: Patch; id: string; outcome: Outcome }

/** Takes the last operation back; `wanted` must name it, where it is given. */
export function rollback(object: Seen, wanted: string | undefined, program: string): Decided & { id: string } {
  const { patch, id, outcome } = decide(object, wanted, program)
  return {
    patch,
    id,
    done: `${outcome}: operation ${id} of si/${object.metadata.name}`,
    next: after => whatIsNext({ id, outcome }, after, program),
  }
}

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

function whatIsNext({ id, outcome }: Pick<Decision, "id" | "outcome">, object: Seen, program: string): string {
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
