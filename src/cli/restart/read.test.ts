import { expect, test } from "vitest"
import type { KubeObject } from "#runtime/resource.ts"
import { KnownRequests, podsOf, type Read, readBudget, wantedOf } from "./read.ts"

const request = (over: Partial<Read> = {}): Read => ({
  name: "web-0-r1",
  pod: "web-0",
  podUid: undefined,
  isOurs: true,
  createdAt: 0,
  result: "Open",
  reason: "",
  message: "",
  ...over,
})

test("a request that was just made is known before the watch shows it", () => {
  const known = new KnownRequests()
  known.made(request())
  expect(known.look([])).toEqual([request()])
  expect(known.look([request({ reason: "Recreating" })])).toEqual([request({ reason: "Recreating" })])
})

test("the answer to a write does not hide what the watch has shown meanwhile", () => {
  const known = new KnownRequests()
  known.look([request({ result: "Succeeded" })])
  known.made(request())
  expect(known.look([request({ result: "Succeeded" })])).toEqual([request({ result: "Succeeded" })])
})

test("a request that is deleted before it is complete has failed, and a complete one keeps its result", () => {
  const known = new KnownRequests()
  known.look([request(), request({ name: "web-1-r1", result: "Succeeded" })])
  expect(known.look([]).map(({ result }) => result)).toEqual(["Failed", "Succeeded"])
})

test("a request of another restart is forgotten when it is deleted", () => {
  const known = new KnownRequests()
  known.look([request({ isOurs: false })])
  expect(known.look([])).toEqual([])
})

const owned = (name: string, owner?: string): KubeObject => ({
  metadata: {
    name,
    uid: `uid-${name}`,
    ...(owner && {
      ownerReferences: [{ apiVersion: "apps/v1", kind: "Any", name: owner, uid: `uid-${owner}`, controller: true }],
    }),
  },
})

test("the pods of a workload are its own and those of its ReplicaSets, and no others with the same labels", () => {
  const all = [owned("direct", "web"), owned("below", "rs"), owned("foreign", "other"), owned("orphan")]
  const names = podsOf(owned("web"), all, [owned("rs", "web"), owned("other", "shop")]).map(each => each.metadata.name)
  expect(names).toEqual(["direct", "below"])
  expect(podsOf(owned("orphan"), all)).toEqual([all[3]])
})

test("how many pods a workload should have", () => {
  const of = (kind: string, fields: object) => wantedOf({ kind, metadata: { name: "web" }, ...fields } as KubeObject)
  expect(of("StatefulSet", { spec: { replicas: 4 } })).toBe(4)
  expect(of("Deployment", { spec: {} })).toBe(1)
  expect(of("DaemonSet", { spec: {}, status: { desiredNumberScheduled: 7 } })).toBe(7)
  expect(of("Pod", { spec: {} })).toBe(1)
})

test("a budget without a status, or with that of an earlier generation, is not current", () => {
  const of = (status?: object) =>
    readBudget({ metadata: { name: "web", generation: 2 }, spec: { selector: {} }, status } as KubeObject)
  expect(of()).toMatchObject({ isCurrent: false, disruptionsAllowed: 0 })
  expect(of({ observedGeneration: 1, disruptionsAllowed: 1 })).toMatchObject({ isCurrent: false })
  expect(
    of({ observedGeneration: 2, disruptionsAllowed: 1, expectedPods: 5, desiredHealthy: 3, currentHealthy: 4 }),
  ).toMatchObject({ isCurrent: true, disruptionsAllowed: 1, mayBeDown: 2 })
})
