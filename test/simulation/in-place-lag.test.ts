import { describe, expect, test } from "vitest"
import { createLag } from "#cluster-sim/faults/lag.ts"
import { createCluster, everyPart } from "#cluster-sim/index.ts"
import type { Json } from "#cluster-sim/object.ts"
import { virtualClock } from "#runtime/clock.ts"

/**
 * An update in place by hand, beside native controllers whose caches are behind: with the fence and without. What the
 * model of `test/model/in-place.test.ts` finds happens in a whole cluster.
 */
const [first, second, third] = ["registry.test/app:1", "registry.test/app:2", "registry.test/app:3"] as const
const revision = "controller-revision-hash"

type Kind = "Deployment" | "StatefulSet" | "DaemonSet"
type Order = {
  kind: Kind
  /** How long the cache of what the kind's controller looks after is behind. */
  behindMs: number
  /** The release waits until the native controller has seen everything. */
  fence: boolean
  /** The ReplicaSet is changed, or pods are labelled, only after the hold was observed. */
  waitsForHold?: boolean
  /** The cache of the workload itself is behind. */
  workloadBehindMs?: number
  /** It was updated in place before, so that the ReplicaSet has the name of another template. */
  isSecond?: boolean
}

const holds: Record<Kind, { hold: Json; release: Json; watches: string }> = {
  Deployment: { hold: { paused: true }, release: { paused: false }, watches: "ReplicaSet" },
  StatefulSet: {
    hold: { updateStrategy: { rollingUpdate: { partition: 2_147_483_647 } } },
    release: { updateStrategy: { rollingUpdate: { partition: 0 } } },
    watches: "Pod",
  },
  DaemonSet: {
    hold: { updateStrategy: { type: "OnDelete", rollingUpdate: null } },
    release: { updateStrategy: { type: "RollingUpdate" } },
    watches: "Pod",
  },
}

const manifest = (kind: Kind): Json => ({
  apiVersion: "apps/v1",
  kind,
  metadata: { name: "web", namespace: "default" },
  spec: {
    ...(kind !== "DaemonSet" && { replicas: 3 }),
    ...(kind === "StatefulSet" && { serviceName: "web" }),
    selector: { matchLabels: { app: "web" } },
    template: { metadata: { labels: { app: "web" } }, spec: { containers: [{ name: "app", image: first }] } },
  },
})

/** What became of the pods, and how many ReplicaSets were ever made. */
async function updateInPlace(order: Order) {
  const { kind } = order
  const { hold, release, watches } = holds[kind]
  const lag = createLag()
  const clock = virtualClock(Date.parse("2026-01-01T00:00:00Z"))
  const parts = everyPart({ nodes: 3, lags: { [`${kind.toLowerCase()}-controller`]: lag } })
  const { storage, start, stop } = createCluster({ clock, parts })
  start()
  const served = (name: string) => storage.kind(name === "Pod" ? "v1" : "apps/v1", name)!
  const list = (name: string) => storage.list(served(name), { namespace: "default" }).items
  const workload = () => storage.get(served(kind), { namespace: "default", name: "web" })
  const patch = (name: string, object: Json, body: Json) =>
    storage.patch(served(name), object.metadata, { type: "strategic", body })
  const until = async (what: string, isTrue: () => boolean) => {
    for (let waited = 0; !isTrue(); waited += 100) {
      if (waited > 120_000) throw new Error(`waited in vain until ${what}: ${JSON.stringify(workload().status)}`)
      await clock.advance(100)
    }
  }
  const isObserved = () => workload().status?.observedGeneration === workload().metadata.generation
  const isUpdated = () => {
    const { status } = workload()
    if (!isObserved() || (status.updatedReplicas ?? status.updatedNumberScheduled) !== 3) return false
    return kind !== "StatefulSet" || status.currentRevision === status.updateRevision
  }
  const runs = (image: string) => () =>
    list("Pod").every(
      ({ status }) => status?.containerStatuses?.[0]?.image === image && status.containerStatuses[0].ready,
    )

  storage.create(served(kind), manifest(kind))
  await until("it runs", () => list("Pod").length === 3 && runs(first)() && isUpdated())
  const before = list("Pod").map(({ metadata }) => metadata.uid)
  let made = 0
  storage.subscribe(served("ReplicaSet"), ({ type }) => {
    made += Number(type === "ADDED")
  })

  async function update(image: string, { behindMs, fence, waitsForHold = true, workloadBehindMs = 0 }: Order) {
    const container = { name: "app", image }
    const template = { spec: { containers: [container] } }
    lag.behind(workloadBehindMs, [kind])
    patch(kind, workload(), { spec: { ...hold, template } })
    for (const pod of list("Pod")) patch("Pod", pod, { spec: { containers: [container] } })
    if (waitsForHold) await until("the hold is observed", isObserved)
    await until("every pod runs the image", runs(image))
    if (workloadBehindMs === 0) lag.behind(behindMs, [watches])
    if (kind === "Deployment") for (const each of list("ReplicaSet")) patch("ReplicaSet", each, { spec: { template } })
    else {
      const newest = list("ControllerRevision").reduce((a, b) => (a.revision > b.revision ? a : b))
      const hash = kind === "StatefulSet" ? newest.metadata.name : newest.metadata.labels?.[revision]
      for (const pod of list("Pod")) patch("Pod", pod, { metadata: { labels: { [revision]: hash } } })
    }
    if (fence) await until("the native controller has seen it", isUpdated)
    patch(kind, workload(), { spec: release })
    await clock.advance(120_000)
    await until("it is complete", () => isUpdated() && runs(image)())
  }
  if (order.isSecond) await update(third, { kind, behindMs: 0, fence: true })
  await update(second, order)
  stop()
  const after = list("Pod").map(({ metadata }) => metadata.uid)
  return { stayed: before.filter(uid => after.includes(uid)).length, replicaSetsMade: made }
}

const kinds = ["Deployment", "StatefulSet", "DaemonSet"] as const
const intact = { stayed: 3, replicaSetsMade: 0 }

describe("with the fence every pod stays, however far behind the native controller is", () => {
  for (const kind of kinds)
    for (const behindMs of [0, 2000, 20_000])
      test(`${kind}, ${behindMs} ms`, async () => {
        expect(await updateInPlace({ kind, behindMs, fence: true })).toEqual(intact)
      })
})

describe("without the fence", () => {
  test.each(kinds)("%s: nothing is lost as long as the native controller keeps up", async kind => {
    expect(await updateInPlace({ kind, behindMs: 0, fence: false })).toEqual(intact)
  })

  test("a Deployment gets a second ReplicaSet", async () => {
    const { replicaSetsMade } = await updateInPlace({ kind: "Deployment", behindMs: 2000, fence: false })
    expect(replicaSetsMade).toBe(1)
  })

  test.each(["StatefulSet", "DaemonSet"] as const)("pods of a %s are made anew", async kind => {
    const { stayed } = await updateInPlace({ kind, behindMs: 20_000, fence: false })
    expect(stayed).toBeLessThan(3)
  })
})

test("a ReplicaSet that is changed before the hold was seen: another one is made", async () => {
  const order = { kind: "Deployment", behindMs: 0, workloadBehindMs: 60_000, fence: true, waitsForHold: false } as const
  expect(await updateInPlace({ ...order, isSecond: true })).toMatchObject({ replicaSetsMade: 1 })
  // The first time the name of the ReplicaSet is taken, and the collision cannot be counted from an old version.
  expect(await updateInPlace(order)).toEqual(intact)
})
