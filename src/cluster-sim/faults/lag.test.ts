import { expect, test } from "vitest"
import { virtualClock } from "#runtime/clock.ts"
import { createCluster } from "../cluster.ts"
import type { Json } from "../object.ts"
import { controllerManager } from "../physics/kube-controllers/index.ts"
import { createLag, lagging } from "./lag.ts"

/** Controllers without kubelets: the test makes pods ready. */
function world(lagged: string) {
  const lag = createLag()
  const clock = virtualClock(Date.parse("2026-01-01T00:00:00Z"))
  const parts = controllerManager().map(make => lagging(make, { [lagged]: lag }))
  const { storage, start } = createCluster({ clock, parts })
  start()
  const kind = (name: string) => storage.kind(name === "Pod" ? "v1" : "apps/v1", name)!
  const at = (name: string) => ({ namespace: "default", name })
  return {
    lag,
    clock,
    create: (name: string, object: Json) => storage.create(kind(name), object),
    patch: (name: string, object: string, body: Json) => storage.patch(kind(name), at(object), { type: "merge", body }),
    get: (name: string, object: string) => storage.get(kind(name), at(object)),
    pods: () => storage.list(kind("Pod")).items.filter(pod => !pod.metadata.deletionTimestamp),
    setReady(pod: string, status: "True" | "False") {
      const conditions = [{ type: "Ready", status, lastTransitionTime: new Date(clock.now()).toISOString() }]
      const body = { status: { phase: "Running", conditions } }
      storage.patch(kind("Pod"), at(pod), { type: "merge", body }, { subresource: "status" })
    },
  }
}

const workload = (name: string, kind: string, replicas: number): Json => ({
  metadata: { name: "web", namespace: "default" },
  apiVersion: "apps/v1",
  kind,
  spec: {
    replicas,
    selector: { matchLabels: { app: name } },
    template: { metadata: { labels: { app: name } }, spec: { containers: [{ name: "app", image: "web:1" }] } },
  },
})

/** One of two pods is ready, then the other one is instead, and one has to go. Which is left? */
async function scaledDown(lagMs: number): Promise<string | undefined> {
  const { lag, clock, create, patch, pods, setReady } = world("replicaset-controller")
  create("ReplicaSet", workload("web", "ReplicaSet", 2))
  await clock.advance(1000)
  const [first = "", second = ""] = pods().map(({ metadata }) => metadata.name)
  setReady(first, "True")
  setReady(second, "False")
  await clock.advance(1000)
  lag.behind(lagMs, ["Pod"])
  setReady(first, "False")
  setReady(second, "True")
  await clock.advance(100)
  patch("ReplicaSet", "web", { spec: { replicas: 1 } })
  await clock.advance(60_000)
  return pods().map(({ metadata }) => (metadata.name === second ? "the ready one" : "the other one"))[0]
}

test("a controller with a stale view of pods deletes the one that serves", async () => {
  expect(await scaledDown(0)).toBe("the ready one")
  expect(await scaledDown(5000)).toBe("the other one")
})

test("a stopped controller does nothing, acts on its old view when it resumes, and ends up right", async () => {
  const { lag, clock, create, patch, get, pods } = world("deployment-controller")
  create("Deployment", workload("web", "Deployment", 2))
  await clock.advance(5000)
  expect(pods()).toHaveLength(2)
  lag.stop()
  patch("Deployment", "web", { spec: { replicas: 3 } })
  await clock.advance(60_000)
  expect(pods()).toHaveLength(2)
  patch("Deployment", "web", { spec: { replicas: 1 } })
  lag.resume()
  await clock.advance(60_000)
  expect(pods()).toHaveLength(1)
  expect(get("Deployment", "web").status.observedGeneration).toBe(3)
})

test("a controller with a stale view sees its own writes: nothing is done twice", async () => {
  const { lag, clock, create, pods } = world("replicaset-controller")
  lag.behind(2000)
  create("ReplicaSet", workload("web", "ReplicaSet", 3))
  await clock.advance(1000)
  expect(pods()).toHaveLength(0)
  for (let at = 0; at < 10; at++) {
    await clock.advance(1000)
    expect(pods().length).toBeLessThanOrEqual(3)
  }
  expect(pods()).toHaveLength(3)
})
