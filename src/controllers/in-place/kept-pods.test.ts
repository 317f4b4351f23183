import { expect, test } from "vitest"
import { readPod } from "#core/in-place/pod.ts"
import type { KubeObject } from "#runtime/resource.ts"
import { podKeeper } from "./kept-pods.ts"

const pod = (name: string, more: object = {}): KubeObject =>
  JSON.parse(
    JSON.stringify({
      metadata: {
        name,
        namespace: "shop",
        uid: `uid-${name}`,
        resourceVersion: "7",
        labels: { app: "web" },
        annotations: {},
        ownerReferences: [{ kind: "ReplicaSet", name: "web-1", uid: "r", controller: true }],
        ...more,
      },
      spec: { nodeName: "node-1", containers: [{ name: "web", image: "web:1" }], imagePullSecrets: [{ name: "key" }] },
      status: { containerStatuses: [{ name: "web", containerID: `containerd://${name}`, imageID: "" }] },
    }),
  )

test("pods of a workload share what they have in common, and are read as each alone", () => {
  const keep = podKeeper()
  const [a, b] = [keep(pod("a")).facts!, keep(pod("b")).facts!]
  expect(a).toEqual(readPod(pod("a")))
  expect(b).toEqual(readPod(pod("b")))
  expect(b.labels).toBe(a.labels)
  expect(b.annotations).toBe(a.annotations)
  expect(b.pullSecrets).toBe(a.pullSecrets)
})

test("what differs is not shared", () => {
  const keep = podKeeper()
  const [a, b] = [keep(pod("a")), keep(pod("b", { labels: { app: "web", track: "canary" }, annotations: { x: "y" } }))]
  expect(a.facts?.labels).toEqual({ app: "web" })
  expect(b.facts?.labels).toEqual({ app: "web", track: "canary" })
  expect([a.facts?.annotations, b.facts?.annotations]).toEqual([{}, { x: "y" }])
})

test("a pod that is being deleted is kept as one that ends", () => {
  const kept = podKeeper()(pod("a", { deletionTimestamp: "2026-01-01T00:00:00Z" }))
  expect(kept).toMatchObject({ resourceVersion: "7", facts: undefined, ending: { name: "a", node: "node-1" } })
})
