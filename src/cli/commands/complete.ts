import { core } from "#runtime/resource.ts"
import { connectionOf, type Run } from "../command.ts"
import { serviceImages } from "../kinds.ts"

/** Behind a Tab key: quick, silent, and never an error. */
export const run: Run = async (input, world) => {
  const [what, prefix = ""] = input.arguments
  const resource = { serviceimages: serviceImages, namespaces: core("namespaces", "Namespace", false) }[what ?? ""]
  if (!resource) return { text: "", exitCode: 0 }
  try {
    const client = await world.connect(connectionOf(input))
    try {
      const tooLong = new AbortController()
      const cancel = world.clock.after(2000, () => tooLong.abort())
      const { items } = await client.list(resource, { limit: 500 }, tooLong.signal)
      cancel()
      const names = items.map(({ metadata }) => (resource === serviceImages ? `si/${metadata.name}` : metadata.name))
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
