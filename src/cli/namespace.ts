import { connectionOf, type Input, type World } from "./command.ts"
import { checkNamespace } from "./names.ts"

/** The namespace of `-n`, or else that of the context, as with kubectl. */
export async function namespaceOf(input: Input, world: World): Promise<string> {
  const given = input.options.namespace as string | undefined
  if (given !== undefined) return checkNamespace(given, "--namespace")
  const { namespace, transport } = await world.reach(connectionOf(input))
  transport.close()
  return namespace
}
