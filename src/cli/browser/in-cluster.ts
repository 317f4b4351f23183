import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { userOf } from "#operations/canary/operate.ts"
import { httpsTransport } from "#runtime/client/https-transport.ts"
import { inClusterServer } from "#runtime/client/in-cluster.ts"
import { createClient } from "#runtime/client/index.ts"
import { bearer, fixedCredentials, type ServerConfig } from "#runtime/client/server-config.ts"
import type { DashboardOptions } from "#web/server.ts"
import type { Viewers } from "#web/sign-in.ts"
import { Failure, type Input, UsageError, type World } from "../command.ts"
import { mounts } from "../manifests/dashboard.ts"
import { checkBasePath, checkHost } from "../names.ts"

/** The dashboard as a workload. It has no rights of its own: each viewer's token is passed on to the API server. */

type InCluster = Pick<DashboardOptions, "viewers" | "hosts" | "basePath" | "tls" | "listen" | "cluster">

/** Options of which each needs --in-cluster. */
const own = {
  host: "--host",
  basePath: "--base-path",
  tlsCert: "--tls-cert",
  tlsKey: "--tls-key",
  certificateAuthority: "--certificate-authority",
} as const

export function refuseOwnOptions({ options }: Input): void {
  for (const [name, flag] of Object.entries(own))
    if (options[name] !== undefined)
      throw new UsageError(`${flag} is for the dashboard of a cluster: write it together with --in-cluster`)
}

export async function inClusterDashboard({ options }: Input, world: World): Promise<InCluster> {
  for (const [name, flag] of [
    ["kubeconfig", "--kubeconfig"],
    ["context", "--context"],
  ] as const)
    if (options[name] !== undefined)
      throw new UsageError(`${flag}: with --in-cluster each viewer brings a token, and no kubeconfig is read`)
  const hosts = [checkHost(options.host as string | undefined)]
  const basePath = checkBasePath((options.basePath as string | undefined) ?? "")
  const server = inClusterServer(world.variables)
  const authority = (options.certificateAuthority as string | undefined) ?? join(mounts.authority, "ca.crt")
  const ca = await contentOf(authority, "mount the ConfigMap kube-root-ca.crt there")
  const tls = await readTls(options)
  const viewers = viewersByToken({ server, tls: { ca, verify: true } }, world)
  return { hosts, basePath, tls, viewers, cluster: server, listen: undefined }
}

/** Each viewer has connections of its own: one that asks for much delays no other. */
const viewersByToken = (
  server: Pick<ServerConfig, "server" | "tls">,
  { clock, random, version }: Pick<World, "clock" | "random" | "version">,
): Viewers => ({
  by: "Token",
  async viewerOf(token) {
    const credentials = fixedCredentials({ authorization: bearer(token) })
    const transport = httpsTransport({ ...server, credentials, namespace: "default", headers: {} })
    const client = createClient({ transport, clock, random, userAgent: `aim-dashboard/${version}` })
    try {
      const user = await userOf(client)
      return { viewer: { client, namespace: homeOf(user) }, user }
    } catch (error) {
      client.close()
      throw error
    }
  },
})

/** A service account has its rights in its own namespace, most often. */
const homeOf = (user: string) => /^system:serviceaccount:([^:]+):/.exec(user)?.[1] ?? "default"

async function readTls({ tlsCert, tlsKey }: Input["options"]) {
  if (tlsCert === undefined && tlsKey === undefined) return undefined
  if (tlsCert === undefined || tlsKey === undefined)
    throw new UsageError("--tls-cert and --tls-key belong together: write both, or neither")
  const read = (path: unknown, flag: string) => contentOf(String(path), `name a PEM file with ${flag}`)
  return { cert: await read(tlsCert, "--tls-cert"), key: await read(tlsKey, "--tls-key") }
}

const contentOf = (path: string, remedy: string) =>
  readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    throw new Failure(`${path}: cannot read it (${error.code}): ${remedy}`)
  })
