import { expect, test } from "vitest"
import { answer, breakWatch, cut, type Fault, isWatch, type Matcher } from "#cluster-sim/faults/faults.ts"
import { type Json, parseRegistries } from "#cluster-sim/index.ts"
import { controllerManager } from "#cluster-sim/physics/kube-controllers/index.ts"
import { Pods } from "#controllers/serviceimage/pods.ts"
import { diagnose, lostWithOther, type Trace } from "#core/pods/trace.ts"
import { core } from "#runtime/resource.ts"
import { manifest, scenario, type World } from "#test/support/scenario.ts"
import { Deployments } from "../../examples/dicom/deployment.ts"
import { Dicoms } from "../../examples/dicom/dicom.ts"
import {
  addNodes,
  createRegistries,
  type Nodes,
  nodeLifecycle,
  nodes,
  scheduler,
} from "../../src/cluster-sim/physics/node/index.ts"

// What is known of the pods of a tenant, while real controllers, a scheduler and kubelets of the simulated cluster do to
// them what they do.

const podKind = core("pods", "Pod")
const image = (tag: string) => `registry.example.com/shop/web:${tag}`
const registries = parseRegistries(`
registries:
  registry.example.com:
    images:
      shop/web:
        "1": {}
        "2": {}
        crashes: { exits: { after: 1s, code: 3 } }
        silent: { neverReady: true }
`)

/** A tenant `acme` whose operator has made a Deployment of two pods, and a watch. */
async function shop(options: { faults?: readonly Fault[] } = {}) {
  let machines: Nodes | undefined
  const world = await scenario({
    seed: 3,
    parts: [
      ...controllerManager(),
      parts => scheduler(parts),
      parts => {
        machines = nodes(parts, { registries: createRegistries(registries(parts.clock.now())) })
        const lifecycle = nodeLifecycle(parts, machines)
        const kubelets = machines
        return {
          name: "machines",
          start() {
            const stops = [kubelets.start(), lifecycle.start()]
            addNodes(parts, 2)
            return () => {
              for (const stop of stops) stop()
            }
          },
        }
      },
    ],
  })
  await world.apply(manifest("examples/dicom/crd.yaml"))
  let pods: Pods | undefined
  const told = new Set<string>()
  world.run(
    [
      {
        name: "watcher",
        permissions: [],
        setup(wiring) {
          pods = new Pods(wiring)
          pods.subscribe(uid => told.add(uid))
          return { reconcile: async () => {} }
        },
      },
    ],
    options,
  )
  await world.advance("1s")
  await world.apply(tenant("acme"))
  const uid: string = (await world.get(Dicoms, "acme", "default")).metadata.uid
  await world.apply(deployment("acme", uid))
  pods!.open()
  const trace = (root = uid) => pods!.traceOf({ uid: root, namespace: "default" })
  return { world, uid, pods: pods!, told, trace, machines: machines! }
}

const tenant = (name: string): Json => ({
  apiVersion: "services.example.com/v1alpha1",
  kind: "Dicom",
  metadata: { name, namespace: "default" },
  spec: {},
})

const ownedBy = (uid: string, name = "acme") => [
  { apiVersion: "services.example.com/v1alpha1", kind: "Dicom", name, uid, controller: true },
]

function workload(kind: string, name: string, uid: string, { tag = "1", ...pod }: Json = {}): Json {
  const labels = { app: `${kind}-${name}`.toLowerCase() }
  const template = { metadata: { labels }, spec: { containers: [{ name: "app", image: image(tag) }], ...pod } }
  return {
    apiVersion: "apps/v1",
    kind,
    metadata: { name, namespace: "default", ownerReferences: ownedBy(uid) },
    spec: { selector: { matchLabels: labels }, template, ...(kind === "Deployment" && { replicas: 2 }) },
  }
}
const deployment = (name: string, uid: string, pod: Json = {}) => workload("Deployment", name, uid, pod)

const isWell = (trace: Trace | undefined) => trace?.pods === 2 && trace.troubles.length === 0
const untilWell = ({ world, trace }: Awaited<ReturnType<typeof shop>>) =>
  world.until("two pods, and nothing wrong", () => isWell(trace()), "2m")
const untilSaid = (
  { world, trace }: Awaited<ReturnType<typeof shop>>,
  tag: string,
  reason: string,
  isTentative = false,
) =>
  world.until(
    `${reason} of ${tag}`,
    () => {
      const found = diagnose(trace(), image(tag))
      return found?.reason === reason && found.isTentative === isTentative
    },
    "5m",
  )
const podsOf = async (world: World) => (await world.list(podKind)).map(({ metadata }) => metadata.name as string)

test("nothing is known before everything is listed, and then everything is delivered", async () => {
  const asked = new Map<string, string>()
  const spy: Matcher = ({ path, headers }) => {
    asked.set(/([a-z]+)\?/.exec(path)?.[1] ?? path, headers.accept ?? "")
    return false
  }
  const story = await shop({ faults: [cut(spy)] })
  expect(story.trace()).toBeUndefined()
  await untilWell(story)
  expect(story.told).toContain(story.uid)
  // Of what only stands between, nothing but whose it is gets sent.
  const isPartial = (plural: string) => asked.get(plural)?.includes("as=PartialObjectMetadata")
  expect(["pods", "replicasets", "deployments", "jobs"].map(isPartial)).toEqual([false, false, true, true])
})

test("an image that does not exist is a failed pull of the tenant, of that image alone, at once", async () => {
  const story = await shop()
  await untilWell(story)
  story.told.clear()
  const since = story.world.clock.now()
  await story.world.apply(deployment("acme", story.uid, { tag: "9" }))
  await untilSaid(story, "9", "ImagePullFailed")
  expect(story.world.clock.now() - since).toBeLessThan(10_000)
  expect(story.told).toContain(story.uid)
  expect(diagnose(story.trace(), image("1"))).toBeUndefined()
  const said = diagnose(story.trace(), image("9"))?.message
  expect(said).toMatch(/not found/)
  // The kubelet waits and tries in turn; what we say of it stays the same.
  for (let minute = 0; minute < 5; minute++) {
    await story.world.advance("1m")
    expect(diagnose(story.trace(), image("9"))?.message).toBe(said)
  }
  await story.world.apply(deployment("acme", story.uid, { tag: "2" }))
  await untilWell(story)
})

test("a program that crashes is unhealthy, and stays so between two crashes", async () => {
  const story = await shop()
  await untilWell(story)
  await story.world.apply(deployment("acme", story.uid, { tag: "crashes" }))
  await untilSaid(story, "crashes", "CrashLoop")
  for (let seconds = 0; seconds < 120; seconds += 5) {
    await story.world.advance("5s")
    expect(diagnose(story.trace(), image("crashes"))?.message).toMatch(/container app exited with 3/)
  }
})

test("a pod that does not become ready is only suspected", async () => {
  const story = await shop()
  const readinessProbe = { httpGet: { port: 80 }, periodSeconds: 5 }
  const containers = [{ name: "app", image: image("silent"), readinessProbe }]
  await story.world.apply(deployment("acme", story.uid, { containers }))
  await untilSaid(story, "silent", "Unhealthy", true)
})

test("a pod that no node takes is unschedulable", async () => {
  const story = await shop()
  await untilWell(story)
  await story.world.apply(deployment("acme", story.uid, { tag: "2", nodeSelector: { disk: "gold" } }))
  await untilSaid(story, "2", "Unschedulable")
  expect(diagnose(story.trace(), image("2"))?.message).toMatch(/0\/2 nodes are available/)
})

test("where no pod could be made, the ReplicaSet says why, of its own image; and no longer when it could", async () => {
  const story = await shop()
  await untilWell(story)
  await story.world.apply(deployment("acme", story.uid, { tag: "2", serviceAccountName: "nobody" }))
  await untilSaid(story, "2", "AdmissionDenied")
  expect(diagnose(story.trace(), image("1"))).toBeUndefined()
  expect(diagnose(story.trace(), image("2"))?.message).toMatch(/service account/)
  await story.world.apply({
    apiVersion: "v1",
    kind: "ServiceAccount",
    metadata: { name: "nobody", namespace: "default" },
  })
  await untilWell(story)
})

test("of a DaemonSet, which has no word for it, an event says why, until there is a pod", async () => {
  const story = await shop()
  await story.world.apply(workload("DaemonSet", "agent", story.uid, { tag: "2", serviceAccountName: "nobody" }))
  await untilSaid(story, "2", "AdmissionDenied")
  await story.world.apply({
    apiVersion: "v1",
    kind: "ServiceAccount",
    metadata: { name: "nobody", namespace: "default" },
  })
  await story.world.until(
    "two more pods, and nothing wrong",
    () => story.trace()?.pods === 4 && story.trace()?.troubles.length === 0,
  )
})

test("pods of a silent node may still run, until it is back", async () => {
  const story = await shop()
  await untilWell(story)
  const { world, machines, trace } = story
  await world.settle("30s")
  const [first] = (await world.list(podKind)).map(({ spec }) => spec.nodeName as string)
  machines.stopKubelet(first!)
  await world.until("a lost pod", () => lostWithOther(trace(), image("2")).count > 0, "5m")
  expect(lostWithOther(trace(), image("2")).examples[0]?.node).toBe(first)
  expect(lostWithOther(trace(), image("1")).count).toBe(0)
  await world.advance("10m") // its pods are deleted and replaced, and it is not known whether they ended
  expect(lostWithOther(trace(), image("2")).count).toBeGreaterThan(0)
  machines.startKubelet(first!)
  await world.until("nothing lost", () => lostWithOther(trace(), image("2")).count === 0, "5m")
  await untilWell(story)
})

test("a removed node leaves pods whose state is not known", async () => {
  const story = await shop()
  await story.world.settle("30s")
  const [first] = (await story.world.list(podKind)).map(({ spec }) => spec.nodeName as string)
  story.told.clear()
  await story.world.client.delete(core("nodes", "Node", false), { name: first! })
  await story.world.advance("10ms")
  expect(lostWithOther(story.trace(), image("2")).count).toBeGreaterThan(0)
  expect(story.told).toContain(story.uid)
})

test("a deleted pod, and everything of a deleted tenant", async () => {
  const story = await shop()
  await untilWell(story)
  const { world } = story
  const [name] = await podsOf(world)
  story.told.clear()
  await world.client.delete(podKind, { name: name!, namespace: "default" })
  await world.until("the pod to be gone", async () => !(await podsOf(world)).includes(name!))
  expect(story.told).toContain(story.uid)
  await untilWell(story)

  // It is created again under the same name, and does not own the former objects.
  await world.client.delete(Dicoms, { name: "acme", namespace: "default" })
  await world.apply(tenant("acme"))
  const reborn: string = (await world.get(Dicoms, "acme", "default")).metadata.uid
  expect(story.trace(reborn)).toMatchObject({ pods: 0 })
  await world.until("its former objects to be gone", async () => (await world.list(Deployments)).length === 0)
  await world.until("its pods to be gone", () => story.trace()?.pods === 0)
  await world.apply(deployment("acme", reborn, { tag: "crashes" }))
  await world.until("new trouble", () => diagnose(story.trace(reborn), image("crashes"))?.reason === "Unhealthy")
  expect(story.trace()).toMatchObject({ pods: 0, troubles: [] })
})

test("watches that break again and again, and at last lose their place, miss nothing", async () => {
  let isDown = false
  let lists = 0
  const isRefused: Matcher = ({ path }) => {
    if (/\/pods\?.*(sendInitialEvents|limit)=/.test(path)) lists++
    return isDown
  }
  const story = await shop({ faults: [cut(isRefused), breakWatch(isWatch, 2)] })
  await untilWell(story)
  await story.world.apply(deployment("acme", story.uid, { tag: "crashes" }))
  await untilSaid(story, "crashes", "CrashLoop")

  isDown = true
  await story.world.apply(deployment("acme", story.uid, { tag: "2" }))
  await story.world.advance("5m")
  story.world.cluster.store.compact()
  expect(isWell(story.trace())).toBe(false)
  ;[isDown, lists] = [false, 0]
  await untilWell(story)
  expect(lists).toBeGreaterThan(0)
})

test("without the right to watch, nothing is delivered rather than half of it; and everything once it is granted", async () => {
  let isGranted = false
  const story = await shop({
    faults: [answer(({ path }) => !isGranted && path.startsWith("/api/v1/nodes?"), 403, { reason: "Forbidden" })],
  })
  await story.world.advance("10m")
  expect(story.trace()).toBeUndefined()
  expect(story.told.size).toBe(0)
  isGranted = true
  await untilWell(story)
  expect(story.told).toContain(story.uid)
})

test("a cache that is closed and opened again starts over", async () => {
  const story = await shop()
  await untilWell(story)
  story.pods.close()
  expect(story.trace()).toBeUndefined()
  story.told.clear()
  await story.world.apply(deployment("acme", story.uid, { tag: "2" }))
  await story.world.advance("5m")
  expect(story.told.size).toBe(0)
  story.pods.open()
  await untilWell(story)
})
