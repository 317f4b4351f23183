import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { type Clock, systemClock } from "../clock.ts"
import { ConfigError, type ServerConfig, tokenFileCredentials } from "./server-config.ts"

type Environment = Record<string, string | undefined>
export type InClusterOptions = { clock?: Clock; env?: Environment; directory?: string }

const mountedAt = "/var/run/secrets/kubernetes.io/serviceaccount"

export const runsInCluster = (env: Environment = process.env) =>
  Boolean(env.KUBERNETES_SERVICE_HOST && env.KUBERNETES_SERVICE_PORT)

/** The address of the API server, which every pod has in its environment. */
export function inClusterServer(env: Environment = process.env): string {
  const host = env.KUBERNETES_SERVICE_HOST
  const port = env.KUBERNETES_SERVICE_PORT
  if (!host || !port)
    throw new ConfigError("not in a pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set")
  return `https://${host.includes(":") ? `[${host}]` : host}:${port}`
}

/** What every pod with a service account has: the address in its environment, token and CA in a volume. */
export async function inClusterConfig(options: InClusterOptions = {}): Promise<ServerConfig> {
  const { clock = systemClock, env = process.env, directory = mountedAt } = options
  const server = inClusterServer(env)
  const credentials = tokenFileCredentials(join(directory, "token"), clock)
  await credentials.current() // a pod without a token must fail at its start, not with its first request
  return {
    server,
    namespace: (await mounted(directory, "namespace").catch(() => "")).trim() || "default",
    tls: { ca: await mounted(directory, "ca.crt"), verify: true },
    credentials,
    headers: {},
  }
}

async function mounted(directory: string, file: string): Promise<string> {
  const path = join(directory, file)
  return await readFile(path, "utf8").catch(cause => {
    throw new ConfigError(`${path}: cannot read it; set automountServiceAccountToken: true on the pod`, { cause })
  })
}
