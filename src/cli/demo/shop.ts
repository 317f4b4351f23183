import type { Json } from "#cluster-sim/index.ts"
import { core, type Resource } from "#runtime/resource.ts"
import type { Stage } from "./story.ts"

/** The shop that some stories are about: one Deployment. */

export const deployments: Resource = {
  group: "apps",
  version: "v1",
  plural: "deployments",
  kind: "Deployment",
  namespaced: true,
}
const pods = core("pods", "Pod")
export const events = core("events", "Event")
export const web = { name: "web", namespace: "default" }
export const labels = { app: "web" }

type Container = { name: string; image: string; readinessProbe?: Json }

export const shop = (replicas: number, containers: readonly Container[], spec: Json = {}): Json => ({
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: web,
  spec: {
    replicas,
    selector: { matchLabels: labels },
    template: { metadata: { labels }, spec: { containers, ...spec } },
  },
})

/** As `kubectl` would. */
export const change = ({ world }: Stage, body: Json) =>
  world.client.patch(deployments, web, { type: "strategic", body })

export const imageChange = (image: string) => ({
  spec: { template: { spec: { containers: [{ name: "web", image }] } } },
})

export const podsOf = async ({ world }: Stage): Promise<Json[]> =>
  ((await world.client.list(pods, { namespace: web.namespace })).items as Json[]).filter(
    ({ metadata }) => !metadata.deletionTimestamp,
  )

export const isReady = ({ status }: Json): boolean =>
  status?.conditions?.some(({ type, status: is }: Json) => type === "Ready" && is === "True") ?? false

export const deploymentOf = ({ world }: Stage): Promise<Json> => world.client.get(deployments, web)

/** What can be compared of a pod with the containers app and proxy. */
export type Facts = { name: string; uid: string; address: string; app: string; proxy: string; restarts: number }

export const factsOf = async (stage: Stage): Promise<Facts[]> =>
  (await podsOf(stage))
    .map(({ metadata, status }) => {
      const of = (name: string) => status.containerStatuses.find((each: Json) => each.name === name)
      const { uid, name } = metadata
      return {
        ...{ name, uid, address: status.podIP },
        ...{ app: of("app").containerID, proxy: of("proxy").containerID, restarts: of("app").restartCount },
      }
    })
    .sort((a, b) => (a.name < b.name ? -1 : 1))

/** Counts ready pods with every change of one, from now on. */
export function countServing({ world: { cluster } }: Stage): { end(): number } {
  const kind = cluster.storage.kind("v1", "Pod")!
  const ready = new Set<string>()
  for (const pod of cluster.storage.list(kind).items) if (isReady(pod)) ready.add(pod.metadata.uid)
  let fewest = ready.size
  const end = cluster.storage.subscribe(kind, ({ type, object }) => {
    if (type !== "DELETED" && isReady(object)) ready.add(object.metadata.uid)
    else ready.delete(object.metadata.uid)
    fewest = Math.min(fewest, ready.size)
  })
  return {
    end() {
      end()
      return fewest
    },
  }
}
