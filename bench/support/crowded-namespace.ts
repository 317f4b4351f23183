import { AlternateImageSource } from "#api/v1alpha1/alternateimagesource/index.ts"
import type { Cluster, Json } from "#cluster-sim/index.ts"
import { until } from "#tools/kube/api.ts"
import { type AimProcess, type Bundled, startController } from "./controller-process.ts"
import { clearCore, expectCoreToClear } from "./cores.ts"
import { type Figure, show } from "./figures.ts"
import { breathe } from "./on-cluster-sim.ts"
import { serveSources } from "./outages.ts"
import type { Progress } from "./progress.ts"
import { serveCluster } from "./served-cluster.ts"

export type CrowdOptions = { sources: number; containers: number; rounds: number }

const containersEach = 100

/**
 * A tenant that makes as many AlternateImageSources and containers as it can, each source for all of the containers, and
 * keeps changing them; and another that has one source. The controller has a core of its own (decision 14).
 */
export async function crowdedNamespace(aim: Bundled, options: CrowdOptions, progress: Progress): Promise<Figure[]> {
  expectCoreToClear()
  clearCore()
  const { cluster, client, kubeconfig, close } = await serveCluster({ keptChanges: 10_000 })
  let controller: AimProcess | undefined
  try {
    await serveSources(client)
    const crowd = createCrowd(cluster, options)
    await crowd.create(progress)
    progress.begin("starting the controller")
    const more = ["--kinds", "alternateimagesource"]
    controller = await startController(aim, { kubeconfig, leaderElect: false, hasOwnCore: true, more })
    await controller.scrape() // from here on it is measured
    const waits = [await crowd.neighbourIsLookedAt("first")]
    await crowd.allAreTold()
    const before = await controller.scrape()
    progress.begin("a crowd that keeps changing", options.rounds)
    for (let round = 0; round < options.rounds; round++) {
      crowd.change(round)
      waits.push(await crowd.neighbourIsLookedAt(`round-${round}`))
      progress.at(round)
    }
    await crowd.allAreTold()
    const after = await controller.scrape()
    const delays = [before.eventLoopP99Ms, after.eventLoopP99Ms]
    const size = `${options.sources} sources × ${options.containers} containers`
    const cpu = (1000 * (after.cpuSeconds - before.cpuSeconds)) / options.rounds
    return [
      {
        name: "event-loop delay p99, crowded namespace",
        measured: Math.max(...delays),
        most: 50,
        unit: "ms",
        note: `${size}; ${delays.map(each => show(each, "ms")).join(" at the start, ")} while it changes`,
      },
      {
        name: "another namespace's source is looked at",
        measured: Math.max(...waits) / 1000,
        most: 2,
        unit: "s",
        note: `the slowest of ${waits.length}, each just after all of the crowd has changed; ${cpu.toFixed(0)} ms of CPU a change`,
      },
    ]
  } finally {
    await controller?.stop()
    await close()
    progress.end()
  }
}

function createCrowd({ storage }: Cluster, { sources, containers }: CrowdOptions) {
  const kind = (apiVersion: string, name: string) => storage.kind(apiVersion, name)!
  const [namespaces, deployments] = [kind("v1", "Namespace"), kind("apps/v1", "Deployment")]
  const kindOfSources = () => kind(AlternateImageSource.apiVersion, AlternateImageSource.kind)
  const by = { fieldManager: "bench" }
  const told = new Map<string, () => void>()

  return {
    async create(progress: Progress) {
      storage.subscribe(kindOfSources(), ({ object: { metadata, status } }: Json) => {
        if (metadata.namespace === "neighbour" && status) told.get(metadata.name)?.()
      })
      for (const name of ["crowd", "neighbour"])
        storage.create(namespaces, { apiVersion: "v1", kind: "Namespace", metadata: { name } }, by)
      progress.begin(`creating ${sources} sources`, sources)
      for (let at = 0; at < sources; at++) {
        storage.create(kindOfSources(), sourceOf("crowd", nameOf(at), 0), by)
        await breathe(() => progress.at(at))
      }
      progress.begin(`creating ${containers} containers`, containers)
      for (let at = 0; at < containers / containersEach; at++) {
        storage.create(deployments, deploymentOf(`app-${at}`), by)
        await breathe(() => progress.at(at * containersEach))
      }
    },
    /** Every container has to be compared with the sources again. */
    change(round: number) {
      const { spec } = sourceOf("crowd", nameOf(0), round + 1)
      storage.patch(kindOfSources(), { namespace: "crowd", name: nameOf(0) }, { type: "merge", body: { spec } }, by)
    },
    /** Milliseconds from its creation to its first status. */
    neighbourIsLookedAt: (name: string) =>
      new Promise<number>((resolve, reject) => {
        const since = performance.now()
        const patience = setTimeout(() => reject(new Error(`${name} was not looked at within a minute`)), 60_000)
        told.set(name, () => {
          clearTimeout(patience)
          resolve(performance.now() - since)
        })
        storage.create(kindOfSources(), sourceOf("neighbour", name, 0), by)
      }),
    allAreTold: () =>
      until(
        "every source to have said how it stands",
        async () =>
          storage
            .list(kindOfSources(), {})
            .items.every(({ metadata, status }: Json) => status?.observedGeneration === metadata.generation),
        { withinMs: 300_000, everyMs: 200 },
      ),
  }
}

const nameOf = (at: number) => `source-${String(at).padStart(5, "0")}`

const sourceOf = (namespace: string, name: string, round: number): Json => ({
  apiVersion: AlternateImageSource.apiVersion,
  kind: AlternateImageSource.kind,
  metadata: { name, namespace },
  spec: {
    imageSourceReplacements: [
      { equivalentRepositories: ["registry.example.com/team/app", `mirror-${round}.example.com/team/app`] },
    ],
  },
})

const deploymentOf = (name: string): Json => ({
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name, namespace: "crowd" },
  spec: {
    replicas: 0,
    selector: { matchLabels: { app: name } },
    template: {
      metadata: { labels: { app: name } },
      spec: {
        containers: Array.from({ length: containersEach }, (_, at) => ({
          name: `c-${at}`,
          image: `registry.example.com/team/app:${name}-${at}`,
        })),
      },
    },
  },
})
