import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { systemClock } from "#runtime/clock.ts"
import { kubeconfig as kubeconfigOf } from "#tools/kube/components.ts"
import { createCluster, serveHttp } from "../../../src/cluster-sim/index.ts"
import { controllerManager } from "../../../src/cluster-sim/physics/controllers/index.ts"
import { addNodes, createRegistries, nodes, scheduler } from "../../../src/cluster-sim/physics/node/index.ts"
import { floor } from "../../support/floor.ts"
import type { Ground } from "./floor.ts"
import { faults, images } from "./images.ts"

const host = "registry.sim:5000"
const faulty = "faulty.sim:5000"

/** cluster-sim with nodes like the real floor's, in this process; kubectl reaches it over HTTP. Its time is ours. */
export async function simGround(): Promise<Ground> {
  const registries = createRegistries([
    { host, latencyMs: 5, images: Object.fromEntries(images.map(({ name, simulated }) => [name, { "1": simulated }])) },
    { host: faulty, images: {} },
  ])
  for (const [name, { simulated }] of Object.entries(faults)) registries.setFault(`${faulty}/${name}`, simulated)
  const { transport, registry, random, ...cluster } = createCluster({
    clock: systemClock,
    parts: [...controllerManager(), world => scheduler(world), world => nodes(world, { registries })],
  })
  cluster.start()
  const large = { cpu: "32", memory: "256Gi", pods: "1000" }
  const taints = [{ key: "kwok.x-k8s.io/node", value: "fake", effect: "NoSchedule" as const }]
  addNodes({ registry, clock: systemClock, random }, [
    { name: "real-0", labels: { type: "real" } },
    ...[0, 1, 2].map(index => ({ name: `kwok-${index}`, ...large, taints, labels: { type: "kwok" } })),
  ])
  const serving = await serveHttp(transport)
  const home = mkdtempSync(join(tmpdir(), "aim-conformance-"))
  const kubeconfig = join(home, "kubeconfig")
  writeFileSync(kubeconfig, kubeconfigOf({ server: serving.url, certificateAuthority: "", token: "none" }))
  return {
    name: "sim",
    kubectl: floor().kubectl,
    kubeconfig,
    home,
    registry: host,
    faulty,
    patienceMs: 15_000,
    words: [
      [serving.url, "SERVER"],
      [serving.url.replace("http://", ""), "SERVER"],
      [host, "REGISTRY"],
      [faulty, "FAULTY"],
    ],
    send: ({ body, ...request }) => transport.send({ ...request, method: request.method as Method, body }),
    async close() {
      cluster.stop()
      await serving.close()
      transport.close()
      rmSync(home, { recursive: true, force: true })
    },
  }
}

type Method = Parameters<Awaited<ReturnType<typeof createCluster>>["transport"]["send"]>[0]["method"]
