import { mkdtempSync, rmSync } from "node:fs"
import { createServer } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { ProvidedContext } from "vitest"
import type { TestProject } from "vitest/node"
import { type Cluster, startCluster } from "#tools/kube/cluster.ts"
import { repository } from "#tools/kube/folders.ts"
import type { FloorInfo } from "./floor.ts"

/**
 * Vitest's globalSetup for tests on a real Kubernetes: a cluster for each worker and containerd, with a real node and
 * three of kwok's, started when the worker first asks for it. The programs' logs are kept when a test failed.
 */
export default async function setUpFloors({ vitest, provide }: TestProject): Promise<() => Promise<void>> {
  const logsFolder = join(repository, ".logs", "floor")
  const say = (line: string) => process.stderr.write(`floor: ${line}\n`)
  const floors = new Map<string, Promise<Cluster>>()
  const start = (name: string) => {
    // `openFloor` makes the name: WORKER-CONTAINERD.
    const [, containerd] = name.split("-") as [string, ProvidedContext["containerd"]]
    const logs = join(logsFolder, name)
    rmSync(logs, { recursive: true, force: true })
    // Vitest ends by itself on a signal, without waiting for us; the cluster then ends with it.
    return startCluster({ kwokNodes: 3, kubelet: true, containerd, say, logsFolder: logs })
  }

  const folder = mkdtempSync(join(tmpdir(), "aim-floors-"))
  const socket = join(folder, "floors.sock")
  const server = createServer((request, response) => {
    const name = request.url!.slice(1)
    if (!floors.has(name)) floors.set(name, start(name))
    floors.get(name)!.then(
      cluster => response.end(JSON.stringify(infoOf(cluster))),
      error => response.writeHead(500).end(String(error)),
    )
  })
  await new Promise<void>(resolve => server.listen(socket, resolve))
  provide("floors", socket)

  return async () => {
    server.close()
    rmSync(folder, { recursive: true, force: true })
    for (const [name, starting] of floors) {
      const cluster = await starting.catch(() => undefined) // the test that asked for it has failed
      const hasFailed = vitest.state.getCountOfFailedTests() > 0
      if (cluster && hasFailed) say(`logs of the cluster: ${cluster.keepLogs(join(logsFolder, name))}`)
      await cluster?.stop()
    }
  }
}

function infoOf(cluster: Cluster): FloorInfo {
  const { folder, kubeconfig, access, kubectl, pid, registry = "", containerdSocket = "" } = cluster
  return { folder, kubeconfig, access, kubectl, pid, registry, containerdSocket }
}
