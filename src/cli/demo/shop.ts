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
