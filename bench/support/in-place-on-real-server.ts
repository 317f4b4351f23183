import { policyManifests } from "#cli/manifests/policies.ts"
import { deployments } from "#controllers/in-place/resources.ts"
import { heldMark } from "#core/in-place/names.ts"
import { inPlaceHolds } from "#policies/in-place-hold.ts"
import type { Policy } from "#policies/policy.ts"
import { type Client, connect, createClient } from "#runtime/client/index.ts"
import { systemClock } from "#runtime/clock.ts"
import { systemRandom } from "#runtime/random.ts"
import { connectApi, type Json, until } from "#tools/kube/api.ts"
import { type Cluster, startCluster } from "#tools/kube/cluster.ts"
import { restartingPods } from "#tools/kube/kwok-stages.ts"
import { type AimProcess, type Bundled, startController } from "./controller-process.ts"
import { type Figure, percentile, show } from "./figures.ts"
import { answerForAgents } from "./hollow-agents.ts"
import { countFigures, type Floor, namespaces, websOf } from "./in-place-on-cluster-sim.ts"
import { grant, type Update, updateInPlace } from "./in-place-updates.ts"
import { createWeb, imageOf, kindOf, opt, rolledOut, setImage, titleOf, type Web } from "./in-place-workloads.ts"
import { type Cpu, cpuBetween, cpuOf } from "./programs.ts"
import type { Progress } from "./progress.ts"
import { prepare } from "./tenants.ts"

export type HollowCluster = Floor & {
  cluster: Cluster
  /** Writes of the agents that are played. */
  agents: { writes: number }
}

/** A real control plane with hollow nodes whose containers restart, the policies that hold, and the manager. */
export async function withHollowCluster<T>(
  aim: Bundled,
  { nodes, policies = inPlaceHolds }: { nodes: number; policies?: readonly Policy[] },
  progress: Progress,
  measure: (parts: HollowCluster) => Promise<T>,
): Promise<T> {
  progress.begin(`starting a cluster with ${nodes} hollow nodes`)
  const cluster = await startCluster({ kwokNodes: nodes, kwokStages: restartingPods, kubelet: false })
  const { transport } = await connect({ kubeconfig: cluster.kubeconfig })
  const client = createClient({ transport, clock: systemClock, random: systemRandom })
  const ending = new AbortController()
  let manager: AimProcess | undefined
  try {
    await prepare(client)
    for (const namespace of namespaces) await grant(client, namespace)
    await installPolicies(cluster, policies)
    manager = await startController(aim, { kubeconfig: cluster.kubeconfig, leaderElect: false })
    const agents = await answerForAgents(client, nodes, ending.signal)
    return await measure({ cluster, client, manager, agents, nodes, progress })
  } finally {
    ending.abort()
    await manager?.stop()
    client.close()
    progress.begin("stopping the cluster")
    await cluster.stop()
    progress.end()
  }
}

async function installPolicies({ access }: Cluster, policies: readonly Policy[]): Promise<void> {
  const api = connectApi(access)
  for (const manifest of policies.flatMap(policyManifests) as Json[]) {
    const plural = `${manifest.kind.toLowerCase().replace(/y$/, "ie")}s`
    await api.create(`/apis/${manifest.apiVersion}/${plural}`, manifest)
  }
  api.close()
}

export type Native = { seconds: number; cpu: Cpu }
export type Compared = {
  web: Web
  nodes: number
  agentWrites: number
  native: Native[]
  inPlace: (Update & { cpu: Cpu })[]
}

/** The same workload, by its own controller and in place, in turns. The first of both are not measured. */
export async function compareUpdates(parts: HollowCluster, web: Web, rounds: number): Promise<Compared> {
  const { cluster, client, progress } = parts
  progress.begin(`creating ${web.replicas} pods`, web.replicas)
  await createWeb(client, web)
  await rolledOut(client, web, progress)
  await holdIsReady(parts, web)
  const native: Native[] = []
  const inPlace: Compared["inPlace"] = []
  let agentWrites = 0
  for (let round = 0; round <= rounds; round++) {
    progress.begin(`${web.replicas} pods of ${web.name} re-created by its own controller`, web.replicas)
    await opt(client, web, false)
    const cpu = cpuOf(cluster)
    const startedAt = performance.now()
    await setImage(client, web, imageOf(`native-${round}`))
    await rolledOut(client, web)
    const seconds = (performance.now() - startedAt) / 1000
    await settled(client, web)
    if (round > 0) native.push({ seconds, cpu: cpuBetween(cpu, cpuOf(cluster)) })
    await opt(client, web, true)
    const before = { cpu: cpuOf(cluster), agents: parts.agents.writes }
    const update = await updateInPlace(parts, web, `in-place-${round}`)
    if (round === 0) continue
    inPlace.push({ ...update, cpu: cpuBetween(before.cpu, cpuOf(cluster)) })
    agentWrites = Math.max(agentWrites, parts.agents.writes - before.agents)
  }
  return { web, nodes: parts.nodes, agentWrites, native, inPlace }
}

/** In place alone: what it costs the manager at this size. */
export async function repeatUpdates(parts: Floor, web: Web, rounds: number): Promise<Update[]> {
  const { client, progress } = parts
  progress.begin(`creating ${web.replicas} pods`, web.replicas)
  await createWeb(client, web)
  await rolledOut(client, web, progress)
  await holdIsReady(parts, web)
  const updates: Update[] = []
  for (let round = 0; round < rounds; round++) updates.push(await updateInPlace(parts, web, `alone-${round}`))
  return updates
}

/** StatefulSets and DaemonSets, without and with the gate: what their updates ask of the server. */
export async function setFigures(parts: Floor, pods: number): Promise<Figure[]> {
  const { client, nodes, progress } = parts
  const figures: Figure[] = []
  for (const web of websOf({ pods, nodes }, "team-0")) {
    if (web.kind === "Deployment") continue
    progress.begin(`creating the pods of ${web.name}`, web.replicas)
    await createWeb(client, web)
    await rolledOut(client, web, progress)
    await holdIsReady(parts, web)
    figures.push(...countFigures(await updateInPlace(parts, web, "v1"), web))
    await removeWeb(parts, web)
  }
  return figures
}

export async function removeWeb({ client }: Pick<Floor, "client">, web: Web): Promise<void> {
  await client.delete(kindOf(web).resource, web, { propagationPolicy: "Background" })
}

/** The server takes a moment until a new policy and its parameter apply. A small Deployment shows that they do. */
async function holdIsReady({ client, progress }: Floor, { namespace }: Web): Promise<void> {
  progress.begin("waiting until updates are held")
  const probe: Web = { name: "probe", namespace, replicas: 0 }
  await createWeb(client, probe)
  let attempt = 0
  await until("an update to be held", async () => {
    const found: Json = await setImage(client, probe, imageOf(`probe-${attempt++}`))
    return found.metadata.annotations?.[heldMark] !== undefined
  })
  await rolledOut(client, probe)
  await client.delete(deployments, probe)
}

/** Old pods are gone too: their end is part of what a rollout costs the server. */
async function settled(client: Client, { name, namespace, replicas }: Web): Promise<void> {
  await until("old pods to be gone", async () => {
    const { items } = await client.list(podsResource, { namespace, labelSelector: `app=${name}` })
    return items.length === replicas
  })
}
const podsResource = { group: "", version: "v1", plural: "pods", kind: "Pod", namespaced: true } as const

/** What a cluster pays where no workload has opted in. */
export async function unusedFigures({ manager }: Floor): Promise<Figure[]> {
  const { count, sum } = await manager.scrape()
  const of = (resource: string) => ({ controller: "in-place", resource })
  const around = [
    "pods",
    "replicasets.apps",
    "poddisruptionbudgets.policy",
    `nodeimages.${group}`,
    `imagepulljobs.${group}`,
  ]
  return [
    {
      name: "watches of pods and what surrounds them, none held",
      measured: around.map(resource => count("aim_cache_objects", of(resource))).reduce((total, each) => total + each),
      most: 0,
      note: "one watch by label stays open for each kind of workload",
    },
    {
      name: "workloads in that watch",
      measured: sum("aim_cache_objects", of("deployments.apps")),
      most: 0,
    },
  ]
}

const group = "autoimagemanager.io"

export function updateFigures({ web, nodes, agentWrites, native, inPlace }: Compared): Figure[] {
  const which = titleOf(web)
  // A drain has no native counterpart, and the controller of a set looks at all its pods with each event: docs/benchmarks.md.
  const mostOfNative = web.hasGate || web.kind === "StatefulSet" ? undefined : 1
  const most = (of: (update: Update) => number) => Math.max(...inPlace.map(of))
  const worst = inPlace.reduce((a, b) => (b.writes > a.writes ? b : a))
  const pulls = most(update => update.pullWrites) + agentWrites
  const beside = (of: (of: Native) => number, ours: (of: Update & { cpu: Cpu }) => number) =>
    percentile(
      inPlace.map((update, index) => ours(update) / of(native[index]!)),
      0.5,
    )
  const seconds = inPlace.map(
    (update, index) => `${show(update.seconds, "s")} beside ${show(native[index]!.seconds, "s")}`,
  )
  const cpu = (each: { cpu: Cpu }) =>
    Object.entries(each.cpu)
      .map(([name, value]) => `${name} ${show(value)}`)
      .join(", ")
  return [
    ...countFigures(worst, web),
    {
      name: `${which}: writes of the pull per node, without 8`,
      measured: Math.max(0, pulls - 8) / nodes,
      most: 2,
      note: `${pulls} by manager and agents for ${nodes} nodes`,
    },
    {
      name: `${which}: wall time ÷ native`,
      measured: beside(
        each => each.seconds,
        each => each.seconds,
      ),
      most: mostOfNative,
      note: seconds.join(", "),
    },
    {
      name: `${which}: CPU of the API server ÷ native`,
      measured: beside(
        each => each.cpu["kube-apiserver"],
        each => each.cpu["kube-apiserver"],
      ),
      most: mostOfNative,
      note: `seconds: ${cpu(inPlace[0]!)}; native: ${cpu(native[0]!)}`,
    },
  ]
}

export function scalingFigures(few: readonly Update[], many: readonly Update[], sizes: [number, number]): Figure[] {
  const each = (updates: readonly Update[], size: number) =>
    (percentile(
      updates.map(update => update.cpuSeconds),
      0.5,
    ) *
      1e6) /
    size
  const [small, large] = [each(few, sizes[0]), each(many, sizes[1])]
  return [
    {
      name: "manager's CPU per pod, many ÷ few",
      measured: large / small,
      most: 1.5,
      note: `${small.toFixed(0)} µs at ${sizes[0]}, ${large.toFixed(0)} µs at ${sizes[1]} (${show(many[0]!.seconds, "s")})`,
    },
  ]
}
