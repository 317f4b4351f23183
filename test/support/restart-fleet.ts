import { agentControllers } from "#agent/index.ts"
import { crdOf } from "#api/crd.ts"
import { ContainerRecreateRequest } from "#api/v1alpha1/containerrecreaterequest/index.ts"
import { everyPart, type Json } from "#cluster-sim/index.ts"
import { createContainerRecreateRequestController } from "#controllers/containerrecreaterequest/controller.ts"
import { core, resourceOf } from "#runtime/resource.ts"
import { scenario, type World } from "./scenario.ts"
import { type Typed, typeInto } from "./typed.ts"

// A Deployment on simulated nodes with kubelets and container runtimes, our controller, and an agent on each node.

const pods = core("pods", "Pod")
const requests = resourceOf(ContainerRecreateRequest)
const nodeNames = ["node-0", "node-1", "node-2"]

export type RestartFleet = World & {
  pods(): Promise<Json[]>
  requests(): Promise<Json[]>
  /** How often the containers of each pod were restarted, in the order of their names. */
  restarts(): Promise<number[][]>
  /** Types a command line, without waiting for its end. */
  type(line: string): Promise<Typed>
  /** The largest number of pods that were not ready at the same time since the fleet was ready. */
  mostDown(): number
}

type Options = { replicas?: number; hasAgents?: boolean }

export async function restartFleet({ replicas = 3, hasAgents = true }: Options = {}): Promise<RestartFleet> {
  const world = await scenario({ seed: 5, parts: everyPart({ nodes: nodeNames.length }) })
  await world.apply(crdOf(ContainerRecreateRequest) as Json, {
    apiVersion: "v1",
    kind: "Namespace",
    metadata: { name: "shop" },
  })
  await world.apply({
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "web", namespace: "shop" },
    spec: {
      replicas,
      selector: { matchLabels: { app: "web" } },
      template: {
        metadata: { labels: { app: "web" } },
        spec: {
          containers: [
            { name: "app", image: "registry.example.com/shop/web:1" },
            { name: "sidecar", image: "registry.example.com/shop/proxy:1" },
          ],
        },
      },
    },
  })
  world.run([createContainerRecreateRequestController()])
  for (const name of hasAgents ? nodeNames : [])
    world.run(agentControllers({ name, runtime: world.cluster.node(name)!.runtime.connect() }))
  const listed = async () =>
    (await world.list(pods))
      .filter(({ metadata }) => metadata.namespace === "shop")
      .sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
  await world.until("every pod to be ready", async () => {
    const all = await listed()
    return all.length === replicas && all.every(isReady)
  })
  const readyAt = world.history.length

  return {
    ...world,
    pods: listed,
    requests: () => world.list(requests),
    restarts: async () =>
      (await listed()).map(({ status }) => status.containerStatuses.map((each: Json) => each.restartCount)),
    mostDown: () => mostDown(world.history.slice(readyAt), replicas),
    type: line => typeInto(world, line),
  }
}

const isReady = ({ status }: Json) =>
  status?.conditions?.some(({ type, status: is }: Json) => type === "Ready" && is === "True") ?? false

function mostDown(history: World["history"], replicas: number): number {
  const down = new Set<string>()
  let most = 0
  for (const { object } of history) {
    if (object.kind !== "Pod") continue
    if (isReady(object)) down.delete(object.metadata.name)
    else down.add(object.metadata.name)
    most = Math.max(most, down.size)
  }
  return Math.min(most, replicas)
}
