import { core } from "#runtime/resource.ts"
import { connectionOf, type Run } from "../command.ts"
import { serviceImages } from "../kinds.ts"
import { imagesIn, type Seen } from "../rollout.ts"

/** Behind a Tab key: quick, silent, and never an error. */
export const run: Run = async (input, world) => {
  const [what, prefix = "", of = ""] = input.arguments
  const namespaces = core("namespaces", "Namespace", false)
  const resource = { serviceimages: serviceImages, tiers: serviceImages, namespaces }[what ?? ""]
  if (!resource) return { text: "", exitCode: 0 }
  try {
    const client = await world.connect(connectionOf(input))
    try {
      const tooLong = new AbortController()
      const cancel = world.clock.after(2000, () => tooLong.abort())
      const { items } = await client.list<Seen>(resource, { limit: 500 }, tooLong.signal)
      cancel()
      const names = items.flatMap(({ metadata, spec }) => {
        if (what === "namespaces") return [metadata.name]
        if (what === "serviceimages") return [`si/${metadata.name}`]
        // Only rollouts have tiers; the one without a name cannot be completed.
        return of.endsWith(`/${metadata.name}`) ? imagesIn(spec).tiers.flatMap(tier => tier.upgradeTier || []) : []
      })
      return {
        text: names
          .filter(name => name.startsWith(prefix))
          .map(name => `${name}\n`)
          .join(""),
        exitCode: 0,
      }
    } finally {
      client.close()
    }
  } catch {
    return { text: "", exitCode: 0 }
  }
}
