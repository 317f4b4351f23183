import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { type Cluster, type ClusterOptions, createCluster, serveHttp } from "#cluster-sim/index.ts"
import { type Client, createClient, type Transport } from "#runtime/client/index.ts"
import { systemClock } from "#runtime/clock.ts"
import { seededRandom } from "#runtime/random.ts"

/** A cluster in this process that other processes reach over HTTP, as any other cluster. */
export type ServedCluster = {
  cluster: Cluster
  /** An administrator's. */
  client: Client
  /** The path of a kubeconfig. */
  kubeconfig: string
  close(): Promise<void>
}

/** `through`: what stands between the processes and the cluster, to count or to delay. */
export async function serveCluster(
  options: Omit<ClusterOptions, "clock"> = {},
  through: (transport: Transport) => Transport = transport => transport,
): Promise<ServedCluster> {
  const cluster = createCluster({ seed: 1, ...options, clock: systemClock })
  const client = createClient({ transport: cluster.transport, clock: systemClock, random: seededRandom(1) })
  const serving = await serveHttp(through(cluster.transport))
  const folder = mkdtempSync(join(tmpdir(), "aim-bench-"))
  const kubeconfig = join(folder, "kubeconfig")
  writeFileSync(kubeconfig, kubeconfigFor(serving.url), { mode: 0o600 })
  return {
    cluster,
    client,
    kubeconfig,
    async close() {
      await serving.close()
      client.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

const kubeconfigFor = (server: string) => `apiVersion: v1
kind: Config
clusters: [{name: bench, cluster: {server: "${server}"}}]
users: [{name: bench, user: {}}]
contexts: [{name: bench, context: {cluster: bench, user: bench}}]
current-context: bench
`
