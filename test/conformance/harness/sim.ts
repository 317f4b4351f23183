import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createAuthority } from "#lib/certificate.ts"
import { systemClock } from "#runtime/clock.ts"
import { kubeconfig as kubeconfigOf } from "#tools/kube/components.ts"
import { createCluster, everyPart, serveHttp } from "../../../src/cluster-sim/index.ts"
import { floor } from "../../support/floor.ts"
import type { Ground } from "./floor.ts"
import { faults, images } from "./images.ts"

const host = "registry.sim:5000"
const faulty = "faulty.sim:5000"

/** cluster-sim with nodes like the real floor's, in this process; kubectl reaches it over HTTP. Its time is ours. */
export async function simGround(): Promise<Ground> {
  const tagged = <T>(content: T) => ({ "1": content })
  const registries = () => [
    { host, latencyMs: 5, images: Object.fromEntries(images.map(({ name, simulated }) => [name, tagged(simulated)])) },
    {
      host: faulty,
      latencyMs: 5,
      images: Object.fromEntries(
        Object.entries(faults).map(([name, { simulated }]) => [name, tagged({ fault: simulated })]),
      ),
    },
    { host: "127.0.0.1:9", fault: { kind: "refused" as const } },
  ]
  const large = { cpu: "32", memory: "256Gi", pods: "1000" }
  const taints = [{ key: "kwok.x-k8s.io/node", value: "fake", effect: "NoSchedule" as const }]
  const nodes = [
    { name: "real-0", labels: { type: "real" } },
    ...[0, 1, 2].map(index => ({ name: `kwok-${index}`, ...large, taints, labels: { type: "kwok" } })),
  ]
  const token = "secret-of-the-administrator"
  const cluster = createCluster({
    clock: systemClock,
    parts: everyPart({ nodes, registries }),
    users: { [token]: { name: "admin", uid: "admin", groups: ["system:masters"] } },
    hasDefaultRoles: true,
  })
  const transport = cluster.front()
  cluster.start()
  const authority = createAuthority({ name: "cluster-sim", now: Date.now(), days: 1 })
  const serving = await serveHttp(transport, { tls: authority.forServer({ name: "cluster-sim" }, ["127.0.0.1"]) })
  const home = mkdtempSync(join(tmpdir(), "aim-conformance-"))
  const kubeconfig = join(home, "kubeconfig")
  writeFileSync(kubeconfig, kubeconfigOf({ server: serving.url, certificateAuthority: authority.cert, token }))
  return {
    name: "sim",
    kubectl: floor().kubectl,
    kubeconfig,
    home,
    registry: host,
    faulty,
    patienceMs: 150_000,
    words: [
      [serving.url, "SERVER"],
      [serving.url.replace("https://", ""), "SERVER"],
      [host, "REGISTRY"],
      [faulty, "FAULTY"],
    ],
    send: ({ body, headers, ...request }) =>
      transport.send({
        ...request,
        method: request.method as Method,
        headers: { authorization: `Bearer ${token}`, ...headers },
        body,
      }),
    async close() {
      cluster.stop()
      await serving.close()
      transport.close()
      rmSync(home, { recursive: true, force: true })
    },
  }
}

type Method = Parameters<Awaited<ReturnType<typeof createCluster>>["transport"]["send"]>[0]["method"]
