import { crdOf } from "#api/crd.ts"
import { ClusterGroupUpgrade } from "#api/v1alpha1/clustergroupupgrade/index.ts"
import { ClusterUpgrade } from "#api/v1alpha1/clusterupgrade/index.ts"
import { PreCachingConfig } from "#api/v1alpha1/precachingconfig/index.ts"
import { SpokeCluster } from "#api/v1alpha1/spokecluster/index.ts"
import type { Json } from "#cluster-sim/index.ts"
import { createClusterGroupUpgradeController } from "#controllers/clustergroupupgrade/controller.ts"
import { clusterGroupUpgrades, clusterUpgrades } from "#controllers/clustergroupupgrade/resources.ts"
import type { Manifest } from "#core/cluster-fleet/transport.ts"
import { createFakeTransport, type SpokeScript } from "#hub/test-fake.ts"
import { type Process, type ProcessOptions, scenario, type World } from "./scenario.ts"

const apiVersion = "autoimagemanager.io/v1alpha1"
export const namespace = "fleet"

/** What the stories deliver. */
export const serviceImage = (image = "registry.example.com/dicom:v2", name = "dicom"): Manifest => ({
  apiVersion,
  kind: "ServiceImage",
  metadata: { name },
  spec: { target: { apiVersion: "services.example.com/v1alpha1", kind: "Dicom" }, defaultImage: image },
})

/** A hub, clusters behind a transport in memory, and the controller of runs. */
export type FleetStory = {
  world: World
  spoke: ReturnType<typeof createFakeTransport>["spoke"]
  controller: Process
  start(options?: ProcessOptions): Process
  /** Creates or changes the run. */
  run(spec?: Json, name?: string): Promise<void>
  status(name?: string): Promise<Json>
  /** `Completed` and the like, by cluster. */
  states(name?: string): Promise<Record<string, string>>
  upgrade(cluster: string): Promise<Json>
  until(reason: string, within?: string, name?: string): Promise<void>
  /** Clusters in the order in which they got their first object. */
  order: string[]
  /** The most clusters that were in progress at the same time. */
  most(): number
}

export async function fleetStory(
  clusters: Record<string, SpokeScript>,
  options: { spokes?: Record<string, Json>; seed?: number } = {},
): Promise<FleetStory> {
  const world = await scenario({ seed: options.seed ?? 1 })
  await world.apply(
    ...[ClusterGroupUpgrade, ClusterUpgrade, PreCachingConfig, SpokeCluster].map(kind => crdOf(kind) as Json),
  )
  await world.apply({ apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } })
  await world.advance("1s")
  for (const name of Object.keys(clusters))
    await world.apply({
      apiVersion,
      kind: "SpokeCluster",
      metadata: { name, labels: { region: "north" } },
      spec: { direct: { secretRef: { name: `${name}-kubeconfig` } }, ...options.spokes?.[name] },
    })
  const fake = createFakeTransport({ clock: world.clock, clusters })
  const order: string[] = []
  const transport: typeof fake.transport = {
    ...fake.transport,
    async apply(cluster, delivery, given) {
      const answer = await fake.transport.apply(cluster, delivery, given)
      if (answer.ok && !delivery.bundle.endsWith("-pre") && !order.includes(cluster)) order.push(cluster)
      return answer
    },
  }
  const conditionsOf = async (name: string): Promise<Json[]> =>
    ((await world.get(clusterGroupUpgrades, name, namespace)).status?.conditions ?? []) as Json[]
  const story: FleetStory = {
    world,
    spoke: fake.spoke,
    order,
    controller: undefined as never,
    start(options) {
      story.controller = world.run([createClusterGroupUpgradeController(() => transport)], options)
      return story.controller
    },
    async run(spec = {}, name = "north") {
      await world.apply({
        apiVersion,
        kind: "ClusterGroupUpgrade",
        metadata: { name, namespace },
        spec: {
          clusters: Object.keys(clusters),
          upgrades: [{ name: "dicom", manifests: [serviceImage()] }],
          ...spec,
          remediationStrategy: { maxConcurrency: 2, ...(spec.remediationStrategy as Json) },
        },
      })
    },
    status: async (name = "north") => (await world.get(clusterGroupUpgrades, name, namespace)).status ?? {},
    async states(name = "north") {
      const all = (await world.list(clusterUpgrades)).filter(({ spec }) => spec.run === name)
      return Object.fromEntries(all.map(({ spec, status }) => [spec.cluster, status?.state ?? "NotStarted"]))
    },
    async upgrade(cluster) {
      const found = (await world.list(clusterUpgrades)).find(({ spec }) => spec.cluster === cluster)
      if (!found) throw new Error(`no ClusterUpgrade of ${cluster}`)
      return found
    },
    async until(reason, within = "6h", name = "north") {
      let last: Json | undefined
      await world
        .until(
          `${name} to be ${reason}`,
          async () => {
            last = (await conditionsOf(name)).find(({ type }) => type === "Ready")
            return last?.reason === reason
          },
          within,
        )
        .catch(error => {
          throw new Error(`${error.message}: it is ${last?.reason}: ${last?.message}`)
        })
    },
    most() {
      const now = new Map<string, string>()
      let most = 0
      for (const { object } of world.history) {
        if (object.kind !== "ClusterUpgrade") continue
        now.set(object.metadata.name, (object as Json).status?.state ?? "NotStarted")
        most = Math.max(most, [...now.values()].filter(state => state === "InProgress").length)
      }
      return most
    },
  }
  return story
}
