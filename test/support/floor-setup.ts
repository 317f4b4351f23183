import { rmSync } from "node:fs"
import { join } from "node:path"
import type { TestProject } from "vitest/node"
import { startCluster } from "#tools/kube/cluster.ts"
import { repository } from "#tools/kube/folders.ts"
import type {} from "./floor.ts"

/**
 * Vitest's globalSetup for tests on a real Kubernetes: one cluster for the run, with a real node and three of kwok's.
 * The programs' logs are kept when a test failed.
 */
export default async function setUpFloor(project: TestProject): Promise<() => Promise<void>> {
  const logsFolder = join(repository, ".logs", "floor")
  rmSync(logsFolder, { recursive: true, force: true })
  const say = (line: string) => process.stderr.write(`floor: ${line}\n`)
  // Vitest ends by itself on a signal, without waiting for us; the cluster then ends with it.
  const cluster = await startCluster({ kwokNodes: 3, kubelet: true, say, logsFolder })
  const { folder, kubeconfig, access, kubectl, pid, registry = "", containerdSocket = "" } = cluster
  project.provide("floor", { folder, kubeconfig, access, kubectl, pid, registry, containerdSocket })
  return async () => {
    if (project.vitest.state.getCountOfFailedTests() > 0) say(`logs of the cluster: ${cluster.keepLogs(logsFolder)}`)
    await cluster.stop()
  }
}
