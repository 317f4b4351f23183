import { setTimeout as sleep } from "node:timers/promises"
import type { Json } from "#cluster-sim/index.ts"
import { holdOf } from "#core/in-place/marks.ts"
import { heldMark, inPlaceHolder, settingAnnotations, strategyAnnotation } from "#core/in-place/names.ts"
import { until } from "#tools/kube/api.ts"
import { type Bundled, startController } from "./controller-process.ts"
import { type Figure, show } from "./figures.ts"
import { namespaces } from "./in-place-on-cluster-sim.ts"
import { grant } from "./in-place-updates.ts"
import { imageOf } from "./in-place-workloads.ts"
import { breathe } from "./on-cluster-sim.ts"
import { deployment, podOf, replicaSet, running } from "./outages.ts"
import type { Progress } from "./progress.ts"
import { type ServedCluster, serveCluster } from "./served-cluster.ts"
import { prepare } from "./tenants.ts"

const MiB = 2 ** 20
/** The collector gives memory back within a minute of quiet: the figure of ServiceImage is taken then, too. */
const quietMs = 60_000

/**
 * What the manager takes with many workloads that have all opted in and are all held: by a partition, so that it looks at
 * all of their pods and changes none. Nothing moves in this cluster but the manager.
 */
export async function heldMemory(
  aim: Bundled,
  { workloads, podsEach }: { workloads: number; podsEach: number },
  progress: Progress,
): Promise<Figure[]> {
  const served = await serveCluster({ keptChanges: 1000 })
  try {
    await prepare(served.client)
    for (const namespace of namespaces) await grant(served.client, namespace)
    await createHeld(served, workloads, podsEach, progress)
    progress.begin("looking at all of them", workloads)
    const manager = await startController(aim, { kubeconfig: served.kubeconfig, leaderElect: false })
    try {
      const isLookedAt = async () => {
        const known = (await manager.scrape()).sum("aim_in_place_held", { reason: "Partitioned" })
        progress.at(known)
        return known === workloads
      }
      await until("all of them to be looked at", isLookedAt, { withinMs: 600_000, everyMs: 1000 })
      await sleep(quietMs)
      const { resident, peak } = manager.memory()
      const note = `${workloads * podsEach} pods of ${workloads} Deployments; ${show(peak / MiB, "MiB")} at its peak`
      return [{ name: "manager's memory, all held", measured: resident / MiB, most: 150, unit: "MiB", note }]
    } finally {
      await manager.stop()
    }
  } finally {
    await served.close()
    progress.end()
  }
}

/** As the policy leaves them: the new template in the Deployment, the old one in its ReplicaSet and pods. */
async function createHeld({ cluster }: ServedCluster, workloads: number, podsEach: number, progress: Progress) {
  const { storage } = cluster
  const by = { fieldManager: "bench" }
  const kindOf = ({ apiVersion, kind }: Json) => storage.kind(apiVersion, kind)!
  const create = (object: Json, status: Json): Json => {
    const { metadata } = storage.create(kindOf(object), object, by) as Json
    const body = { status }
    return storage.patch(kindOf(object), metadata, { type: "merge", body }, { ...by, subresource: "status" })
  }
  const [before, after] = [imageOf("v0"), imageOf("v1")]
  const counts = { observedGeneration: 1, replicas: podsEach, readyReplicas: podsEach, availableReplicas: podsEach }
  progress.begin(`creating ${workloads} Deployments with ${podsEach} pods each`, workloads)
  for (let index = 0; index < workloads; index++) {
    const plain = deployment(`web-${index}`, namespaces[index % namespaces.length]!, after)
    plain.metadata.labels[heldMark] = inPlaceHolder
    plain.metadata.annotations = {
      [strategyAnnotation]: "InPlaceIfPossible",
      [settingAnnotations.partition]: "100%",
      [heldMark]: holdOf("1").join(""),
    }
    plain.spec = { ...plain.spec, replicas: podsEach, paused: true }
    const held = create(plain, counts)
    const set = replicaSet(held)
    set.spec = { ...set.spec, replicas: podsEach, template: deployment("", "", before).spec.template }
    set.spec.template.metadata.labels = held.spec.template.metadata.labels
    const owner = create(set, counts)
    const conditions = [{ type: "Ready", status: "True", lastTransitionTime: "2026-01-01T00:00:00Z" }]
    for (let pod = 0; pod < podsEach; pod++)
      create(podOf(owner, String(pod), before), { ...running(before), conditions })
    if (index % 50 === 0) await breathe(() => progress.at(index))
  }
}
