import { type ChildProcess, spawn } from "node:child_process"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll } from "vitest"
import { parse } from "yaml"
import { createOcmTransport, holdCluster, holdWork, managedClusters, manifestWorks } from "#hub/index.ts"
import { createCache } from "#runtime/cache/index.ts"
import { httpsTransport } from "#runtime/client/https-transport.ts"
import { type Client, createClient } from "#runtime/client/index.ts"
import { bearer, fixedCredentials } from "#runtime/client/server-config.ts"
import { sleep, systemClock } from "#runtime/clock.ts"
import { seededRandom } from "#runtime/random.ts"
import { core, type Resource } from "#runtime/resource.ts"
import { floor } from "#test/support/floor.ts"
import { unusedPort } from "#test/support/ports.ts"
import { handsOn, laxDefinition } from "#test/support/transport/spoke.ts"
import { type TransportWorld, transportSuite } from "#test/support/transport/suite.ts"
import { until } from "#tools/kube/api.ts"
import { prepareOcm } from "#tools/kube/binaries.ts"

// The suite of transports with OCM's own work agent, on a real API server that is hub and cluster at once.

const definitions: Resource = {
  ...{ group: "apiextensions.k8s.io", version: "v1", plural: "customresourcedefinitions" },
  ...{ kind: "CustomResourceDefinition", namespaced: false },
}
const rbac = (plural: string, kind: string): Resource => ({
  ...{ group: "rbac.authorization.k8s.io", version: "v1", plural, kind, namespaced: false },
})
const namespaces = core("namespaces", "Namespace", false)

let client: Client
let agent: ChildProcess
let output = ""
const made: (() => Promise<unknown>)[] = []

async function make(resource: Resource, object: object) {
  const { metadata } = object as { metadata: { name: string } }
  await client.create(resource, object as never)
  made.push(() => client.delete(resource, metadata))
}

beforeAll(async () => {
  const { access, kubeconfig } = floor()
  const { server, certificateAuthority: ca, token } = access
  const credentials = fixedCredentials({ authorization: bearer(token) })
  const transport = httpsTransport({
    server,
    namespace: "default",
    tls: { verify: true, ca },
    credentials,
    headers: {},
  })
  client = createClient({ transport, clock: systemClock, random: seededRandom(1) })
  const folder = await prepareOcm(line => process.stderr.write(`${line}\n`))
  for (const group of ["work/v1", "cluster/v1"])
    for (const file of readdirSync(join(folder, "crds", group)).filter(each => each.endsWith(".yaml"))) {
      const definition = parse(readFileSync(join(folder, "crds", group, file), "utf8"))
      if (definition?.kind === "CustomResourceDefinition") await make(definitions, definition)
    }
  await make(definitions, laxDefinition("alternateimagesources", "AlternateImageSource", true) as object)
  for (const name of ["north", "aim-hub", "open-cluster-management-agent"])
    await make(namespaces, { metadata: { name } })
  await make(rbac("clusterrolebindings", "ClusterRoleBinding"), {
    metadata: { name: "ocm-test-executor" },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "cluster-admin" },
    subjects: [{ kind: "ServiceAccount", name: "aim-executor", namespace: "aim-hub" }],
  })
  await until("the kinds of OCM are served", () =>
    client.create(managedClusters, { metadata: { name: "north" }, spec: { hubAcceptsClient: true } } as never).then(
      () => true,
      () => undefined,
    ),
  )
  await setAvailable(true)
  const port = await unusedPort()
  agent = spawn(
    join(folder, "bin", "work"),
    [
      ...["agent", "--spoke-cluster-name=north", "--agent-id=test", `--kubeconfig=${kubeconfig}`],
      ...["--namespace=open-cluster-management-agent", "--disable-leader-election", "--workload-source-driver=kube"],
      ...[`--workload-source-config=${kubeconfig}`, `--listen=127.0.0.1:${port}`, "--status-sync-interval=5s"],
    ],
    { stdio: ["ignore", "pipe", "pipe"] },
  )
  for (const stream of [agent.stdout, agent.stderr])
    stream?.setEncoding("utf8").on("data", text => {
      output = (output + text).slice(-20_000)
    })
})

afterAll(async () => {
  agent?.kill("SIGCONT")
  agent?.kill("SIGTERM")
  for (const undo of made.toReversed()) await undo().catch(() => undefined)
  client?.close()
})

async function setAvailable(isAvailable: boolean) {
  const condition = (type: string, status: string) => ({
    ...{ type, status, reason: "Test", message: "", lastTransitionTime: new Date().toISOString() },
  })
  const conditions = [
    condition("HubAcceptedManagedCluster", "True"),
    condition("ManagedClusterConditionAvailable", isAvailable ? "True" : "Unknown"),
  ]
  const body = { status: { conditions, version: { kubernetes: "v1.36.3" } } }
  await client.patch(managedClusters, { name: "north" }, { type: "merge", body }, { subresource: "status" })
}

async function makeTransport(ends: (() => void)[]) {
  const deps = { client, clock: systemClock, random: seededRandom(4) }
  const works = createCache(deps, manifestWorks, { project: holdWork })
  const clusters = createCache(deps, managedClusters, { project: holdCluster })
  const end = new AbortController()
  for (const cache of [works, clusters]) void cache.run(end.signal)
  await Promise.all([works.synced(), clusters.synced()])
  const transport = createOcmTransport({ clock: systemClock, client, works, clusters, hubId: "one" })
  ends.push(() => {
    transport.close()
    end.abort()
  })
  return transport
}

async function open(): Promise<TransportWorld> {
  if (agent.exitCode !== null) throw new Error(`the agent has ended: ${output}`)
  const ends: (() => void)[] = []
  return {
    transport: await makeTransport(ends),
    cluster: "north",
    pass: () => sleep(systemClock, 250),
    spoke: handsOn(client),
    async setAway(isAway) {
      agent.kill(isAway ? "SIGSTOP" : "SIGCONT")
      await setAvailable(!isAway)
    },
    restarted: () => makeTransport(ends),
    async close() {
      agent.kill("SIGCONT")
      for (const end of ends) end()
      await setAvailable(true)
      await client.delete(manifestWorks, { name: "aim-run-one", namespace: "north" }).catch(() => undefined)
      await until("the work is gone", async () => {
        const { items } = await client.list(manifestWorks, { namespace: "north" })
        return items.length === 0 || undefined
      }).catch(error => {
        throw new Error(`${(error as Error).message}\n${output}`)
      })
      const place = { name: "web", namespace: "default" }
      const sources = { group: "autoimagemanager.io", version: "v1alpha1", plural: "alternateimagesources" }
      await client.delete({ ...sources, kind: "", namespaced: true }, place).catch(() => undefined)
    },
  }
}

transportSuite({ open })
