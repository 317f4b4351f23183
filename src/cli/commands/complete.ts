import type { Client } from "#runtime/client/client.ts"
import { core, type Resource } from "#runtime/resource.ts"
import { connectionOf, type Run } from "../command.ts"
import { alternateImageSources, serviceImages, shortOf } from "../kinds.ts"
import { namespaceOf } from "../namespace.ts"
import { imagesIn, type Seen } from "../rollout.ts"

const namespaces = core("namespaces", "Namespace", false)
const resources: Record<string, readonly Resource[]> = {
  serviceimages: [serviceImages],
  alternateimagesources: [alternateImageSources],
  ours: [serviceImages, alternateImageSources],
  tiers: [serviceImages],
  namespaces: [namespaces],
}

/** Behind a Tab key: quick, silent, and never an error. */
export const run: Run = async (input, world) => {
  const [what = "", prefix = "", of = ""] = input.arguments
  const asked = Object.hasOwn(resources, what) ? resources[what]! : []
  const answers = await Promise.all(asked.map(resource => namesOf(resource).catch(() => [])))
  const names = answers.flat().filter(name => name.startsWith(prefix))
  return { text: names.map(name => `${name}\n`).join(""), exitCode: 0 }

  async function namesOf(resource: Resource): Promise<string[]> {
    const namespace = resource.namespaced ? await namespaceOf(input, world) : undefined
    const client = await world.connect(connectionOf(input))
    try {
      const items = await listed(client, resource, namespace)
      return items.flatMap(({ metadata, spec }) => {
        if (resource === namespaces) return [metadata.name]
        if (what !== "tiers") return [`${shortOf(resource)}/${metadata.name}`]
        // Only rollouts have tiers; the one without a name cannot be completed.
        return of.endsWith(`/${metadata.name}`) ? imagesIn(spec).tiers.flatMap(tier => tier.upgradeTier || []) : []
      })
    } finally {
      client.close()
    }
  }

  async function listed(client: Client, resource: Resource, namespace: string | undefined): Promise<Seen[]> {
    const tooLong = new AbortController()
    const cancel = world.clock.after(2000, () => tooLong.abort())
    try {
      return (await client.list<Seen>(resource, { namespace, limit: 500 }, tooLong.signal)).items
    } finally {
      cancel()
    }
  }
}
