import { agentDefinitions, hubDefinitions } from "#cluster-sim/ocm/definitions.ts"
import { createWorkAgent } from "#cluster-sim/ocm/work-agent.ts"
import { testCluster } from "#cluster-sim/test-cluster.ts"
import { createOcmTransport, holdCluster, holdWork, managedClusters, manifestWorks } from "#hub/index.ts"
import { formatInstant } from "#lib/instant.ts"
import { createCache } from "#runtime/cache/index.ts"
import { createClient } from "#runtime/client/index.ts"
import { seededRandom } from "#runtime/random.ts"
import { core, type Resource } from "#runtime/resource.ts"
import { openSpoke } from "./spoke.ts"
import type { TransportWorld } from "./suite.ts"

const definitions: Resource = {
  ...{ group: "apiextensions.k8s.io", version: "v1", plural: "customresourcedefinitions" },
  ...{ kind: "CustomResourceDefinition", namespaced: false },
}
const bindings: Resource = {
  ...{ group: "rbac.authorization.k8s.io", version: "v1", plural: "clusterrolebindings" },
  ...{ kind: "ClusterRoleBinding", namespaced: false },
}

/** A hub and a cluster of it, with a simulated work agent between them, in virtual time. */
export async function openOcm() {
  const { clock, client: hub } = testCluster()
  const { spoke, client, cluster: server } = await openSpoke(clock)
  for (const each of hubDefinitions) await hub.create(definitions, each as never)
  for (const each of agentDefinitions) await client.create(definitions, each as never)
  await hub.create(core("namespaces", "Namespace", false), { metadata: { name: "north" } })
  await hub.create(managedClusters, { metadata: { name: "north" }, spec: { hubAcceptsClient: true } } as never)
  // Any right: what the named account may do is another test's matter.
  await client.create(bindings, {
    metadata: { name: "executor" },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "executor" },
    subjects: [{ kind: "ServiceAccount", name: "aim-executor", namespace: "aim-hub" }],
  } as never)
  const roles: Resource = { ...bindings, plural: "clusterroles", kind: "ClusterRole" }
  const allow = (resources: readonly string[], verbs: readonly string[] = ["*"]) => ({
    ...{ metadata: { name: "executor" }, rules: [{ apiGroups: ["*"], resources, verbs }] },
  })
  await client.create(roles, allow(["*"]) as never)

  const setAvailable = async (isAvailable: boolean) => {
    const condition = (type: string, status: string) => ({
      ...{ type, status, reason: "Test", message: "", lastTransitionTime: formatInstant(clock.now()) },
    })
    const conditions = [
      condition("HubAcceptedManagedCluster", "True"),
      condition("ManagedClusterConditionAvailable", isAvailable ? "True" : "Unknown"),
    ]
    const body = { status: { conditions, version: { kubernetes: "v1.36.3" } } }
    await hub.patch(managedClusters, { name: "north" }, { type: "merge", body }, { subresource: "status" })
  }
  await setAvailable(true)

  const makeAgent = () => createWorkAgent({ cluster: "north", hub, spoke: client, clock })
  let stop = makeAgent().start()
  let isAway = false
  const ends: (() => void)[] = []
  const makeTransport = async () => {
    const deps = { client: hub, clock, random: seededRandom(4) }
    const works = createCache(deps, manifestWorks, { project: holdWork })
    const clusters = createCache(deps, managedClusters, { project: holdCluster })
    const end = new AbortController()
    for (const cache of [works, clusters]) void cache.run(end.signal)
    await Promise.all([works.synced(), clusters.synced()])
    const transport = createOcmTransport({ clock, client: hub, works, clusters, hubId: "one" })
    ends.push(() => {
      transport.close()
      end.abort()
    })
    return transport
  }
  const world: TransportWorld = {
    transport: await makeTransport(),
    cluster: "north",
    pass: () => clock.advance(1_000),
    spoke,
    async setAway(away) {
      if (away !== isAway) stop()
      if (!away && isAway) stop = makeAgent().start()
      isAway = away
      await setAvailable(!away)
      await clock.advance(1_000)
    },
    restarted: makeTransport,
    async close() {
      stop()
      for (const end of ends) end()
    },
  }
  return {
    world,
    ...{ hub, client, clock, server },
    /** What the executor may do from now on. */
    allowExecutor: (resources: readonly string[], verbs?: readonly string[]) =>
      client.patch(roles, { name: "executor" }, { type: "merge", body: allow(resources, verbs) }),
    restartAgent() {
      stop()
      stop = makeAgent().start()
    },
    /** The agent's own credential writes to its work on the hub. */
    forge: (body: object, subresource?: "status") =>
      hub.patch(
        manifestWorks,
        { name: "aim-run-one", namespace: "north" },
        { type: "merge", body },
        subresource ? { subresource } : {},
      ),
    asUser: (token: string) =>
      createClient({
        transport: withToken(server.front(), token),
        ...{ clock, random: seededRandom(8) },
      }),
  }
}

const withToken = (
  transport: ReturnType<Awaited<ReturnType<typeof openSpoke>>["cluster"]["front"]>,
  token: string,
) => ({
  ...transport,
  send: (request: Parameters<typeof transport.send>[0]) =>
    transport.send({ ...request, headers: { ...request.headers, authorization: `Bearer ${token}` } }),
})
