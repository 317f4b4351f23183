import { parseImageReference } from "#core/image/reference.ts"
import { type Input, type Run, UsageError } from "../command.ts"
import { socketPath, usualSocket } from "../manifests/agent.ts"
import { manifests, type Section, type Wanted } from "../manifests/all.ts"
import type { DashboardWanted } from "../manifests/dashboard.ts"
import { parseForeignKind } from "../manifests/rbac.ts"
import { sources } from "../manifests/sources.ts"
import { checkBasePath, checkHost, checkNamespace, isObjectName } from "../names.ts"
import { toDocuments } from "../render/yaml.ts"

export const run: Run = async (input, world) => {
  const printed = manifests(read(input, world.version), sources())
  return { text: toDocuments(printed), exitCode: 0 }
}

function read({ arguments: [section = "all"], options }: Input, version: string): Wanted {
  const given = (options.for ?? []) as string[]
  if (given.length > 0 && section !== "rbac" && section !== "all")
    throw new UsageError(`--for adds roles, and ${section} has none: write rbac --for ${given[0]}`)
  const foreign = given.map(text => {
    const parsed = parseForeignKind(text)
    if ("wrong" in parsed) throw new UsageError(`--for: ${parsed.wrong}`)
    return parsed
  })
  return {
    section: section as Section,
    foreign: foreign.filter((kind, i) => given.indexOf(`${kind.plural}.${kind.group}`) === i),
    namespace: checkNamespace(options.namespace as string, "--namespace"),
    criSocket: readSocket(options, section),
    dashboard: readDashboard(options, section),
    image: checkImage((options.image as string | undefined) ?? `autoimagemanager/aim:${version}`),
  }
}

/** Undefined: another section is wanted, which takes none of its flags. */
function readDashboard(options: Input["options"], section: string): DashboardWanted | undefined {
  const { host, basePath, tlsSecret, operate } = options as Record<string, string | undefined>
  if (section !== "dashboard") {
    const flags = { "--host": host, "--base-path": basePath, "--tls-secret": tlsSecret, "--operate": operate }
    for (const [flag, value] of Object.entries(flags))
      if (value !== undefined)
        throw new UsageError(`${flag} is for the dashboard, and ${section} has none: write manifests dashboard`)
    return undefined
  }
  if (tlsSecret !== undefined && !isObjectName(tlsSecret))
    throw new UsageError(
      `--tls-secret: ${tlsSecret} is not the name of a Secret: write lower-case letters, digits and '-'`,
    )
  return { host: checkHost(host), basePath: checkBasePath(basePath ?? ""), operates: operate !== undefined, tlsSecret }
}

/** As the node has it: the DaemonSet mounts this one file. Undefined: no agents are wanted. */
function readSocket({ criSocket, agent }: Input["options"], section: string): string | undefined {
  const hasAgents = section === "agent" || section === "all"
  const path = (criSocket as string | undefined) ?? usualSocket
  if (criSocket !== undefined && !hasAgents)
    throw new UsageError(`--cri-socket is for the agents, and ${section} has none: write agent --cri-socket ${path}`)
  if (agent !== false) return hasAgents ? checkSocket(path) : undefined
  if (section !== "all") throw new UsageError(`--no-agent leaves the agents out of all: leave it out of ${section}`)
  if (criSocket !== undefined)
    throw new UsageError("--no-agent leaves the agents out, and --cri-socket is for them: write one of the two")
  return undefined
}

function checkSocket(path: string): string {
  if (socketPath.pattern.test(path) && !socketPath.not.test(path)) return path
  throw new UsageError(`--cri-socket: ${path} is not the path of a socket: write one such as ${usualSocket}`)
}

function checkImage(image: string): string {
  const parsed = parseImageReference(image)
  if (!parsed.ok) throw new UsageError(`--image ${image}: ${parsed.error}`)
  return image
}
