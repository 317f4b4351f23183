import { alternateImageSources, pods } from "#controllers/alternateimagesource/resources.ts"
import { surveyNamespace } from "#explain/alternateimagesource/survey.ts"
import { whyPod, whySource } from "#explain/alternateimagesource/why.ts"
import { closest } from "#lib/closest.ts"
import type { Instant } from "#lib/instant.ts"
import { nameSome } from "#lib/text.ts"
import type { Client } from "#runtime/client/client.ts"
import { isFailure } from "#runtime/client/errors.ts"
import type { Resource } from "#runtime/resource.ts"
import { connectionOf, Failure, type Input, UsageError, type World } from "./command.ts"
import { kindNamed } from "./kinds.ts"
import { namespaceOf } from "./namespace.ts"
import type { Answered } from "./render/why.ts"

const isPod = (word: string) => ["pod", "pods", "po"].includes(word.toLowerCase())
const isSource = (word: string) => kindNamed(word)?.kind === alternateImageSources.kind

/** A question about where images are pulled from. */
export const isAboutSources = (word: string) => isPod(word) || isSource(word)

export async function askAboutSources(
  input: Input,
  world: World,
  { word, name, namespace: given }: { word: string; name: string; namespace: string | undefined },
): Promise<{ answer: Answered; now: Instant }> {
  if (input.options.from !== undefined)
    throw new UsageError(
      `--from: a dump has no AlternateImageSources, so ${word}/${name} needs a cluster: leave out --from`,
    )
  const client = await world.connect(connectionOf(input))
  try {
    const resource = isPod(word) ? pods : alternateImageSources
    const namespace = given ?? (await whereIs(client, resource, name)) ?? (await namespaceOf(input, world))
    const survey = await surveyNamespace(client, namespace, world)
    for (const each of survey.unseen) world.say(`Not readable, and left out: ${each}`)
    const source = survey.all.find(({ metadata }) => metadata.name === name)
    if (resource === alternateImageSources && source) return { answer: whySource(survey, source), now: survey.now }
    const pod = survey.pod(name)
    if (resource === pods && pod) return { answer: whyPod(survey, pod), now: survey.now }
    const known = resource === pods ? survey.podNames : survey.all.map(({ metadata }) => metadata.name)
    const meant = closest(name, known)
    throw new Failure(
      `there is no ${resource.kind} ${name} in namespace ${namespace}${meant ? `; did you mean ${meant}?` : ""}`,
    )
  } finally {
    client.close()
  }
}

/** The only namespace with an object of this name; undefined if none has one, or listing is forbidden. */
async function whereIs(client: Client, resource: Resource, name: string): Promise<string | undefined> {
  const found = await client
    .list(resource, { fieldSelector: `metadata.name=${name}`, metadataOnly: true })
    .catch(error => {
      if (isFailure(error, "Forbidden")) return { items: [] }
      throw error
    })
  const spaces = found.items.map(({ metadata }) => metadata.namespace ?? "")
  if (spaces.length > 1)
    throw new Failure(
      `${resource.kind} ${name} is in ${nameSome(spaces.slice(0, 5), spaces.length)}: choose one with -n NAMESPACE`,
    )
  return spaces[0]
}
