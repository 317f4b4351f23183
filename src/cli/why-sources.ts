import { alternateImageSources, pods } from "#controllers/alternateimagesource/resources.ts"
import { readSources } from "#explain/alternateimagesource/reading.ts"
import { survey } from "#explain/alternateimagesource/survey.ts"
import { whyPod, whySource } from "#explain/alternateimagesource/why.ts"
import { whyPodProven } from "#explain/canary/pod.ts"
import { kindOf } from "#explain/inventory.ts"
import { whyPodChanged } from "#explain/workloads/why.ts"
import type { Instant } from "#lib/instant.ts"
import type { Resource } from "#runtime/resource.ts"
import { Failure, type Input, type World } from "./command.ts"
import { kindNamed } from "./kinds.ts"
import { type Found, lookFor, notThere, type Question } from "./question.ts"
import type { Answered } from "./render/why.ts"

const isPod = (word: string) => ["pod", "pods", "po"].includes(word.toLowerCase())

/** The kind of a question about where images are pulled from; undefined for any other question. */
export function sourceKind(word: string): Resource | undefined {
  if (isPod(word)) return pods
  return kindNamed(word)?.kind === alternateImageSources.kind ? alternateImageSources : undefined
}

/** What a question about sources or pods needs. */
export const lookAtSources = (input: Input, world: World, question: Question): Promise<Found> =>
  lookFor(input, world, question, namespace => readSources({ namespace, isAboutPod: question.resource === pods }))

export async function askAboutSources(
  input: Input,
  world: World,
  question: Question & { name: string },
): Promise<{ answer: Answered; now: Instant }> {
  const { resource, name } = question
  const { inventory, now, namespace } = await lookAtSources(input, world, question)
  const isDumped = input.options.from !== undefined
  if (isDumped && resource === pods && inventory.of(kindOf(alternateImageSources)).size === 0)
    throw new Failure(`the dump has no pods to explain ${name} by: the cluster had no AlternateImageSource`)
  if (namespace === undefined) throw notThere(inventory, question)
  const seen = survey(inventory, namespace, now)
  if (resource === pods) {
    const pod = seen.pod(name)
    if (pod) {
      const answer = whyPod(seen, pod)
      const more = [...whyPodChanged(pod), ...whyPodProven(inventory, pod)]
      return { answer: { ...answer, sentences: [...answer.sentences, ...more] }, now }
    }
  } else {
    const source = seen.all.find(({ metadata }) => metadata.name === name)
    if (source) return { answer: whySource(seen, source), now }
  }
  throw notThere(inventory, { ...question, namespace })
}
