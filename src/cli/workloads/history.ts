import { imagesOf } from "#core/in-place/template.ts"
import { type Revision, readWorkload, revisionsOf, typed } from "#explain/workloads/facts.ts"
import { type Answer, connectionOf, type Input, UsageError, type World } from "../command.ts"
import { shortOf } from "../kinds.ts"
import { namespaceOf } from "../namespace.ts"
import { imageWords, revisionTable } from "../render/workload.ts"
import { toYaml } from "../render/yaml.ts"
import { lookAtWorkload } from "./look.ts"
import type { Workloads } from "./words.ts"

/** `aim history deploy/web`: the revisions that its own controller keeps. */
export async function historyOfWorkload(input: Input, world: World, { resource, names }: Workloads): Promise<Answer> {
  const [name] = names
  if (name === undefined) throw new UsageError(`which one? Write ${shortOf(resource)}/NAME`)
  if (names.length > 1) throw new UsageError("history shows one object: write one name")
  const format = input.options.output as "wide" | "json" | "yaml" | undefined
  const namespace = await namespaceOf(input, world)
  const client = await world.connect(connectionOf(input))
  try {
    const sight = await lookAtWorkload(client, world, { resource, name, namespace }, false)
    const revisions = revisionsOf(sight)
    if (format === "json" || format === "yaml") {
      const all = revisions.map(plain)
      return { text: format === "json" ? `${JSON.stringify(all, null, 2)}\n` : toYaml(all), exitCode: 0 }
    }
    if (revisions.length === 0) {
      world.say(`${typed({ kind: resource.kind, name })} has no revision yet.`)
      return { text: "", exitCode: 0 }
    }
    if (!revisions.some(({ isPresent }) => isPresent))
      world.say(
        `The present template (${imageWords(imagesOf(readWorkload(sight.workload).template), false)}) is no revision yet.`,
      )
    return {
      text: revisionTable(revisions, { wide: format === "wide", view: world.view }),
      exitCode: 0,
    }
  } finally {
    client.close()
  }
}

const plain = ({ number, name, template, pods, isPresent, cause }: Revision) => ({
  revision: number,
  name,
  isPresent,
  images: Object.fromEntries(imagesOf(template)),
  pods,
  ...(cause !== "" && { cause }),
})
