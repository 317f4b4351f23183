import { readdirSync, readFileSync } from "node:fs"
import { isDeepStrictEqual } from "node:util"
import { afterAll, beforeAll, expect } from "vitest"
import { policyManifests } from "#cli/manifests/policies.ts"
import { createInPlaceController } from "#controllers/in-place/controller.ts"
import { heldMark, settingAnnotations, strategyAnnotation } from "#core/in-place/names.ts"
import { inPlaceHolds } from "#policies/in-place-hold.ts"
import { events } from "#runtime/events.ts"
import { runManager } from "#runtime/manager.ts"
import { installKinds } from "./fleet.ts"
import { floor, type Json, onKwok, uniqueNamespace, until } from "./floor.ts"
import { surroundings, transportFor, untilTestEnds } from "./in-process.ts"

/** Updates in place on the real floor: the policy, the controller with its own rights, and workloads. */

const manifests = inPlaceHolds.flatMap(policyManifests) as Json[]
const pathOf = ({ kind, metadata }: Json) =>
  `/apis/admissionregistration.k8s.io/v1/${kind.toLowerCase().replace(/y$/, "ie")}s/${metadata.name}`

/** The kinds and the policy, for all tests of a file. */
export function useHoldPolicy(): void {
  beforeAll(async () => {
    await installKinds()
    for (const manifest of manifests) await floor().api.apply(pathOf(manifest), manifest)
  })
  afterAll(async () => {
    for (const manifest of manifests.toReversed()) await floor().api.remove(pathOf(manifest))
    await floor().kubectlRun("delete", "nodeimages", "--all")
  })
}

/** Lets the controller work in a namespace, until the test ends. */
export async function startUpdates(namespace: string): Promise<void> {
  await floor().api.create(`/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}/rolebindings`, {
    metadata: { name: "aim-target" },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "view" },
    subjects: [],
  })
  const controller = createInPlaceController()
  const recording = { resource: events, verbs: ["create", "patch"] } as const
  const transport = await transportFor(namespace, "in-place", [...controller.permissions, recording])
  untilTestEnds(signal =>
    runManager({ ...surroundings, transport, controllers: [controller], leaderElect: false, signal }),
  )
}

/**
 * A policy is in force some time after it was created, and each kind has its own: tried with changes that a server only
 * pretends to make.
 */
export const holdIsInForce = (namespace: string, target: string, container: string) =>
  until(`the policy for ${target} is in force`, async () =>
    (
      await floor().kubectlRun(
        ...["-n", namespace, "set", "image", target, `${container}=tried:1`, "--dry-run=server", "-o", "json"],
      )
    ).includes(heldMark),
  )

export const isFree = ({ metadata, spec }: Json) =>
  !spec.paused && !JSON.stringify(metadata.labels ?? {}).includes("/held")

/**
 * The kubelet of pods on nodes that kwok plays: kwok itself never looks at an image again. Each container runs the image
 * of its spec soon, under an ID of its own, but not while the returned object says that it waits.
 */
function playKubelet(namespace: string): { isWaiting: boolean } {
  const play = { isWaiting: false }
  const { api } = floor()
  const path = `/api/v1/namespaces/${namespace}/pods`
  let made = 0
  const statusesOf = ({ spec, status }: Json): Json[] =>
    spec.containers.map(({ name, image }: Json) => {
      const known = status.containerStatuses.find((each: Json) => each.name === name)
      if (known.image === image && known.containerID) return known
      const restartCount = known.containerID ? known.restartCount + 1 : 0
      return { ...known, image, restartCount, imageID: `sha256:${image}`, containerID: `containerd://${++made}` }
    })
  const look = async () => {
    const { items } = await api.get(path)
    const running = (items as Json[]).filter(({ status }) => status.containerStatuses?.length > 0)
    await Promise.all(
      running.map(async pod => {
        const containerStatuses = statusesOf(pod)
        if (!isDeepStrictEqual(containerStatuses, pod.status.containerStatuses))
          await api.patchStrategically(`${path}/${pod.metadata.name}/status`, { status: { containerStatuses } })
      }),
    )
  }
  untilTestEnds(async signal => {
    while (!signal.aborted) {
      if (!play.isWaiting) await look().catch(() => {})
      await new Promise(resolve => setTimeout(resolve, 200))
    }
    return 0
  })
  return play
}

/**
 * More changes of one ReplicaSet and one pod than are sent to a stopped process: a watch takes 4 MiB ahead. What changes
 * after them reaches the caches of ReplicaSets and pods later than what changes then reaches those of workloads. Without
 * the fence, 7 to 10 of 20 Deployments then get a second ReplicaSet, and 17 of 20 StatefulSets another pod. After a stop
 * alone changes arrive nearly in their order, and it is 1 and 5.
 */
export async function delayCaches(namespace: string): Promise<void> {
  const { api } = floor()
  const labels = { app: "bystander" }
  // No scheduler has this name, so nothing else writes them.
  const spec = { schedulerName: "none", containers: [{ name: "web", image: "web:1" }] }
  const template = { metadata: { labels }, spec }
  const paths = [`/apis/apps/v1/namespaces/${namespace}/replicasets`, `/api/v1/namespaces/${namespace}/pods`]
  const [sets, pods] = paths as [string, string]
  await api.create(sets, {
    metadata: { name: "bystander" },
    spec: { replicas: 0, selector: { matchLabels: labels }, template },
  })
  await api.create(pods, { metadata: { name: "bystander" }, spec })
  for (const path of [sets, pods])
    for (let times = 0; times < 60; times++)
      await api.patchStrategically(`${path}/bystander`, {
        metadata: { annotations: { text: `${times} `.padEnd(200_000, "x") } },
      })
  for (const path of [sets, pods]) await api.remove(`${path}/bystander`)
}

/** The process of one program of this cluster: its command line has the cluster's folder. */
export function pidOf(program: string): number {
  const { folder } = floor()
  const found = readdirSync("/proc").filter(entry => {
    if (!/^\d+$/.test(entry)) return false
    try {
      const line = readFileSync(`/proc/${entry}/cmdline`, "utf8")
      return line.split("\0")[0]!.endsWith(`/${program}`) && line.includes(folder)
    } catch {
      return false
    }
  })
  expect(found).toHaveLength(1)
  return Number(found[0])
}

const workloads = ["deployments", "statefulsets"] as const

/**
 * So many Deployments and StatefulSets, updated while kube-controller-manager is stopped across flip and release and
 * continued with caches that are behind: no pod is replaced, and no ReplicaSet is made but the one that is kept for
 * `kubectl rollout undo`.
 */
export async function expectStallHarmless(count: number): Promise<void> {
  const namespace = await uniqueNamespace()
  const patience = { withinMs: 60_000 + 1000 * count }
  await startUpdates(namespace)
  const kubelet = playKubelet(namespace)
  const { api } = floor()
  const path = `/apis/apps/v1/namespaces/${namespace}`
  const names = Array.from({ length: count }, (_, index) => `web-${index}`)
  const each = (go: (plural: string, name: string) => Promise<unknown>) =>
    Promise.all(workloads.flatMap(plural => names.map(name => go(plural, name))))
  await each((plural, name) => api.create(`${path}/${plural}`, workloadOf(`${plural}-${name}`, plural)))
  const list = async (plural: string): Promise<Json[]> => (await api.get(`${path}/${plural}`)).items
  const held = async () => (await Promise.all(workloads.map(list))).flat()
  const livePods = async (): Promise<Json[]> => (await api.get(`/api/v1/namespaces/${namespace}/pods`)).items
  await until(
    "all are there",
    async () => (await held()).every(({ status }) => status?.availableReplicas === 1),
    patience,
  )
  await until("the pods run", async () => (await livePods()).every(isRunning), patience)
  const before = (await livePods()).map(({ metadata }) => metadata.uid).sort()
  for (const plural of workloads) await holdIsInForce(namespace, `${plural}/${plural}-${names[0]}`, "web")

  const manager = pidOf("kube-controller-manager")
  const flipped = async (image: string) =>
    (await list("replicasets")).filter(({ spec }) => spec.replicas > 0 && imageOf(spec.template) === image).length
  const released = async () => (await held()).filter(({ metadata }) => !metadata.annotations[heldMark]).length
  /** What our controller does by itself: without the fence it would release too. */
  const moved = async () => (await flipped("web:2")) + (await released())
  /** Until nothing moves any more without it. */
  const stopped = async (begin: () => Promise<void>) => {
    process.kill(manager, "SIGSTOP")
    try {
      await begin()
      let last = -1
      await until(
        "nothing moves",
        async () => {
          const now = await moved()
          const isStill = now === last
          last = now
          if (!isStill) await new Promise(resolve => setTimeout(resolve, 1500))
          return isStill
        },
        patience,
      )
    } finally {
      process.kill(manager, "SIGCONT")
    }
  }
  const body = { spec: { template: { spec: { containers: [{ name: "web", image: "web:2" }] } } } }
  kubelet.isWaiting = true
  await each((plural, name) => api.patchStrategically(`${path}/${plural}/${plural}-${name}`, body))
  await until("all pods are changed", async () => (await livePods()).every(pod => imageOf(pod) === "web:2"), patience)
  await until("all holds are seen", async () => (await held()).every(isObserved), patience)
  await stopped(async () => {
    await delayCaches(namespace)
    kubelet.isWaiting = false
    await until("all are flipped", async () => (await flipped("web:2")) === count, patience)
  })
  await until("the first is released", async () => (await released()) > 0, patience)
  await stopped(async () => {})
  await until("all are released", async () => (await held()).every(isComplete), patience)
  const after = await livePods()
  expect(after.map(({ metadata }) => metadata.uid).sort()).toEqual(before)
  expect(new Set(after.map(imageOf))).toEqual(new Set(["web:2"]))
  const sets = await list("replicasets")
  expect(sets.filter(({ spec }) => spec.replicas > 0)).toHaveLength(count)
  expect(sets).toHaveLength(2 * count)
  expect((await held()).filter(({ status }) => status.collisionCount > 0)).toEqual([])
}

const imageOf = ({ spec }: Json) => spec.containers[0].image
const isObserved = ({ metadata, status }: Json) => status.observedGeneration === metadata.generation
const isRunning = ({ status }: Json) => !!status?.containerStatuses?.[0]?.containerID
const isComplete = (workload: Json) => {
  const { availableReplicas, updatedReplicas, currentRevision, updateRevision } = workload.status
  const isUp = availableReplicas === 1 && updatedReplicas === 1 && currentRevision === updateRevision
  return isFree(workload) && isObserved(workload) && isUp
}

const workloadOf = (name: string, plural: string): Json => ({
  metadata: {
    name,
    annotations: { [strategyAnnotation]: "InPlaceIfPossible", [settingAnnotations.unverified]: "true" },
  },
  spec: {
    replicas: 1,
    selector: { matchLabels: { app: name } },
    ...(plural === "deployments"
      ? { strategy: { rollingUpdate: { maxUnavailable: 1 } } }
      : { serviceName: name, updateStrategy: { rollingUpdate: { partition: 0 } } }),
    template: {
      metadata: { labels: { app: name } },
      spec: { ...onKwok, containers: [{ name: "web", image: "web:1" }] },
    },
  },
})
