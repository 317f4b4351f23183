import { askAs, keyringsOf } from "#controllers/alternateimagesource/ask.ts"
import { parseImageReference } from "#core/image/reference.ts"
import { type Finding, isWell, type Use, usesOf, verify } from "#explain/alternateimagesource/equivalence.ts"
import { readSources } from "#explain/alternateimagesource/reading.ts"
import { survey } from "#explain/alternateimagesource/survey.ts"
import { forEachLimited } from "#lib/batch.ts"
import { closest } from "#lib/closest.ts"
import { printable } from "#lib/text.ts"
import { createRegistryClient, parseAllowed } from "#registry/index.ts"
import { connectionOf, Failure, type Run, UsageError } from "../command.ts"
import { alternateImageSources, parseNamed } from "../kinds.ts"
import { lookAt } from "../look.ts"
import { namespaceOf } from "../namespace.ts"
import { verifyTable } from "../render/verify.ts"
import { toYaml } from "../render/yaml.ts"

/** One image, and what its repositories have. */
export type Verified = {
  image: string
  /** The expected digest; absent where it is not known. */
  digest?: string
  workloads: readonly string[]
  repositories: Finding[]
}

const imagesAtOnce = 4
const progressMs = 2000

export const run: Run = async (input, world) => {
  const { name } = parseNamed(input.arguments[0]!, alternateImageSources)
  const format = input.options.output as "json" | "yaml" | undefined
  const given = (input.options.allowRegistry as string[] | undefined) ?? []
  for (const text of given) {
    const parsed = parseAllowed(text)
    if (!parsed.ok) throw new UsageError(`--allow-registry: ${parsed.error}`)
  }
  const namespace = await namespaceOf(input, world)
  const client = await world.connect(connectionOf(input))
  try {
    const { clock, random, signal } = world
    const { inventory, serverNow } = await lookAt(client, world, readSources({ namespace, asks: true }))
    const seen = survey(inventory, namespace, serverNow)
    const source = seen.all.find(({ metadata }) => metadata.name === name)
    if (!source) {
      const meant = closest(
        name,
        seen.all.map(({ metadata }) => metadata.name),
      )
      throw new Failure(
        `there is no AlternateImageSource ${name} in namespace ${namespace}${meant ? `; did you mean ais/${meant}?` : ""}`,
      )
    }
    const uses = usesOf(seen, source)
    if (uses.length === 0) world.say(`No workload of namespace ${namespace} has an image that ais/${name} is about.`)
    // As for a controller: a tenant writes the spec, and the spec must not choose a private address.
    const registry = createRegistryClient({ clock, random, allow: given })
    const unread = new Set<string>()
    const found = new Map<Use, Verified>()
    let [saidAt, asked] = [clock.now(), 0]
    await forEachLimited(uses, imagesAtOnce, async use => {
      const keyrings = await keyringsOf(client, use.asker, { onUnread: secret => unread.add(secret) })
      const { digest, findings } = await verify(use, (image, { platforms }) => {
        const parsed = parseImageReference(image)
        if (!parsed.ok) throw new Failure(`${image}: ${parsed.error}`)
        return askAs(registry, parsed.reference, keyrings, { platforms, signal })
      })
      found.set(use, {
        image: use.image,
        ...(digest && { digest }),
        workloads: use.workloads,
        repositories: findings,
      })
      asked++
      if (clock.now() - saidAt < progressMs || asked === uses.length) return
      saidAt = clock.now()
      world.say(`${asked} of ${uses.length} images compared`)
    })
    for (const secret of unread) world.say(printable(`You may not read ${secret}; the registry was asked without it.`))
    const images = uses.map(use => found.get(use)!)
    const findings = images.flatMap(({ repositories }) => repositories)
    const bad = findings.filter(finding => !isWell(finding)).length
    const exitCode = bad > 0 ? 1 : 0
    if (format) {
      const whole = { namespace, name, images }
      return { text: format === "json" ? `${JSON.stringify(whole, null, 2)}\n` : toYaml(whole), exitCode }
    }
    const next = bad > 0 ? `${bad} of ${findings.length} cannot replace the others.` : ""
    return { text: images.length > 0 ? verifyTable(images, world.view) : "", exitCode, ...(next && { next }) }
  } finally {
    client.close()
  }
}
