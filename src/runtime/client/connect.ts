import { access } from "node:fs/promises"
import { type Clock, systemClock } from "../clock.ts"
import { httpsTransport } from "./https-transport.ts"
import { inClusterConfig, runsInCluster } from "./in-cluster.ts"
import { kubeconfigFiles, loadKubeconfig } from "./kubeconfig.ts"
import { ConfigError, type ServerConfig } from "./server-config.ts"
import type { Transport } from "./transport.ts"

export type ConnectOptions = {
  /** A kubeconfig file instead of `KUBECONFIG` and `~/.kube/config`. */
  kubeconfig?: string | undefined
  context?: string | undefined
  /** Whether a program named in the kubeconfig may be run for credentials. Only for a person's command line. */
  allowExec?: boolean | undefined
  env?: Record<string, string | undefined>
  clock?: Clock
}

export type Connected = {
  transport: Transport
  /** The default namespace of the user. */
  namespace: string
  /** The server's URL, to show. */
  describe: string
}

/** Finds the API server as kubectl does: the file named, `KUBECONFIG`, `~/.kube/config`, else the pod we run in. */
export async function connect(options: ConnectOptions = {}): Promise<Connected> {
  const config = await findServer(options)
  return { transport: httpsTransport(config), namespace: config.namespace, describe: config.server }
}

async function findServer({
  kubeconfig,
  env = process.env,
  clock = systemClock,
  ...options
}: ConnectOptions): Promise<ServerConfig> {
  const wanted = { ...options, file: kubeconfig, env, clock }
  if (kubeconfig !== undefined || options.context !== undefined) return loadKubeconfig(wanted)
  const { files } = kubeconfigFiles(wanted)
  const present = await Promise.all(
    files.map(file =>
      access(file).then(
        () => true,
        () => false,
      ),
    ),
  )
  if (present.includes(true)) return loadKubeconfig(wanted)
  if (runsInCluster(env)) return inClusterConfig({ env, clock })
  throw new ConfigError(
    `no cluster: ${files.join(", ")} ${files.length > 1 ? "do" : "does"} not exist, and this is not a pod; name a file with --kubeconfig or in KUBECONFIG`,
  )
}
