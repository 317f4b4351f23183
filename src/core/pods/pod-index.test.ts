import fc from "fast-check"
import { expect, test } from "vitest"
import type { PodFacts } from "./pod-facts.ts"
import { type Owner, PodIndex, type Refusal, type Root } from "./pod-index.ts"
import { type NoPod, traceOf } from "./trace.ts"

const crashed = { reason: "Unhealthy", message: "crashed", isTentative: false } as const
const full: NoPod = { reason: "QuotaExceeded", message: "full", isTentative: false, images: undefined }
const images = ["shop/web:2"]

/** Facts as caches keep them, the index beside them, and everything it reported. */
function world() {
  const facts = {
    owners: new Map<string, Owner>(),
    pods: new Map<string, PodFacts>(),
    refusals: new Map<string, Refusal>(),
    nodes: new Map<string, boolean>(),
    stopped: new Map<string, ReadonlyMap<string, string>>(),
  }
  const told = new Set<string>()
  const index = new PodIndex({
    pod: key => facts.pods.get(key),
    refusal: key => facts.refusals.get(key),
    isLost: node => facts.nodes.get(node),
    takesImages: node => facts.nodes.has(node),
    stopped: (key, uid) => facts.stopped.get(`${key} ${uid}`) ?? new Map(),
    onChange: uid => told.add(uid),
  })
  function put<T>(map: Map<string, T>, key: string, after: T | undefined) {
    const before = map.get(key)
    if (after === undefined) map.delete(key)
    else map.set(key, after)
    return { key, ...(before !== undefined && { before }), ...(after !== undefined && { after }) }
  }
  return {
    facts,
    told,
    index,
    owner: (uid: string, after?: Partial<Owner>) =>
      index.ownerChanged(put(facts.owners, uid, after && { ...owner, uid, ...after })),
    pod: (key: string, after?: Partial<PodFacts>) =>
      index.podChanged(put(facts.pods, key, after && { ...pod, ...after })),
    refusal: (key: string, after?: Partial<Refusal>) =>
      index.refusalChanged(put(facts.refusals, key, after && { ...refusal, ...after })),
    node(name: string, isLost?: boolean) {
      put(facts.nodes, name, isLost)
      index.nodeChanged(name)
    },
  }
}
const owner: Omit<Owner, "uid"> = { resourceVersion: "1", namespace: "a", owner: "", noPod: undefined }
const pod: PodFacts = {
  resourceVersion: "1",
  owner: "",
  node: "",
  images,
  pullSecrets: [],
  trouble: undefined,
  crash: undefined,
  crashed: undefined,
  steadySeconds: 0,
  createdAtSeconds: 100,
  isFinished: false,
  isTerminating: false,
}
const refusal: Refusal = { resourceVersion: "1", owner: "", atSeconds: 100, noPod: full }
const tenant: Root = { uid: "tenant", namespace: "a" }

/** Tenant → Deployment → ReplicaSet → Pod, all in namespace a. */
function chain() {
  const w = world()
  w.node("n1", false)
  w.owner("deployment", { owner: "tenant" })
  w.owner("set", { owner: "deployment" })
  w.pod("a/web-1", { owner: "set", node: "n1", trouble: crashed })
  w.told.clear()
  return w
}

test("a pod is found through everything that is between", () => {
  const { index } = chain()
  for (const uid of ["set", "deployment", "tenant"])
    expect(index.traceOf({ uid, namespace: "a" })).toMatchObject({ pods: 1, troubles: [{ reason: "Unhealthy" }] })
})

test("a change is reported for everything above it, and for nothing else", () => {
  const w = chain()
  w.owner("other-set", { owner: "other" })
  w.pod("a/other-1", { owner: "other-set", node: "n1" })
  w.told.clear()
  w.pod("a/web-1", { owner: "set", node: "n1" })
  expect([...w.told]).toEqual(["set", "deployment", "tenant"])
})

test("an update without a difference is not reported", () => {
  const w = chain()
  w.pod("a/web-1", { owner: "set", node: "n1", trouble: crashed, resourceVersion: "2" })
  w.owner("deployment", { owner: "tenant", resourceVersion: "2" })
  expect([...w.told]).toEqual([])
})

test("an object re-created under its name is another one", () => {
  const w = chain()
  w.owner("set")
  w.owner("deployment")
  expect(w.index.traceOf(tenant).pods).toBe(0)
  w.owner("deployment-2", { owner: "tenant" })
  w.owner("set-2", { owner: "deployment-2" })
  w.pod("a/web-2", { owner: "set-2" })
  expect(w.index.traceOf(tenant)).toMatchObject({ pods: 1, troubles: [] })
})

test("a silent node makes its pods lost, and so does one that is gone", () => {
  const w = chain()
  w.pod("a/web-2", { owner: "set", node: "n2" })
  w.node("n2", false)
  w.told.clear()
  w.node("n1", true)
  expect([...w.told]).toEqual(["set", "deployment", "tenant"])
  expect(w.index.traceOf(tenant).lost).toMatchObject([{ count: 1, examples: [{ key: "a/web-1", node: "n1" }] }])
  w.node("n2")
  expect(w.index.traceOf(tenant).lost).toMatchObject([{ count: 2 }])
  w.node("n1", false)
  expect(w.index.traceOf(tenant).lost).toMatchObject([{ count: 1, examples: [{ node: "n2" }] }])
})

test("pods, sets and events never count for an object of another namespace", () => {
  const w = chain()
  w.pod("b/evil-1", { owner: "tenant", trouble: { ...crashed, message: "evil" } })
  w.pod("b/evil-2", { owner: "set", trouble: { ...crashed, message: "evil" } })
  w.owner("evil-set", { owner: "deployment", namespace: "b", noPod: full })
  w.pod("b/evil-3", { owner: "evil-set" })
  w.refusal("b/evil", { owner: "set", atSeconds: 1000 })
  expect(w.index.traceOf(tenant)).toMatchObject({ pods: 1, troubles: [{ message: "crashed", pods: 1 }] })
  // An object of no namespace may own in any.
  expect(w.index.traceOf({ uid: "tenant", namespace: "" })).toMatchObject({ pods: 2 })
})

test("owners in a circle are gone round once", () => {
  const w = world()
  w.owner("x", { owner: "y" })
  w.owner("y", { owner: "x" })
  w.pod("a/web-1", { owner: "x" })
  expect(w.index.traceOf({ uid: "y", namespace: "a" }).pods).toBe(1)
  expect([...w.told].sort()).toEqual(["x", "y"])
})

test("an owner that was refused a pod is reported until it has made a newer one, even if that is gone again", () => {
  const w = world()
  const reasons = () => w.index.traceOf({ uid: "stateful", namespace: "a" }).troubles.map(({ reason }) => reason)
  w.pod("a/web-0", { owner: "stateful", createdAtSeconds: 50 })
  w.refusal("a/event", { owner: "stateful" })
  expect(reasons()).toEqual(["QuotaExceeded"])
  w.pod("a/web-1", { owner: "stateful", createdAtSeconds: 100 })
  expect(reasons()).toEqual([])
  w.pod("a/web-1")
  expect(reasons()).toEqual([])
  w.refusal("a/event", { owner: "stateful", atSeconds: 160 })
  expect(reasons()).toEqual(["QuotaExceeded"])
  w.refusal("a/event")
  expect(reasons()).toEqual([])
})

test("a refusal that is older than the pods is none", () => {
  const w = world()
  w.pod("a/web-0", { owner: "stateful", createdAtSeconds: 200 })
  w.refusal("a/event", { owner: "stateful" })
  expect(w.index.traceOf({ uid: "stateful", namespace: "a" }).troubles).toEqual([])
})

test("a set that says why it has too few pods is reported with the images it wants", () => {
  const w = chain()
  w.owner("set", { owner: "deployment", noPod: { ...full, images } })
  expect([...w.told]).toEqual(["set", "deployment", "tenant"])
  expect(w.index.traceOf(tenant).troubles.map(({ reason }) => reason)).toEqual(["Unhealthy", "QuotaExceeded"])
})

test("after any story it equals a plain count, and has reported every change", () => {
  const uids = fc.constantFrom("u1", "u2", "u3", "tenant")
  const owned = fc.constantFrom("", "u1", "u2", "u3", "tenant")
  const namespace = fc.constantFrom("a", "b")
  const name = fc.tuple(namespace, fc.constantFrom("1", "2", "3")).map(parts => parts.join("/"))
  const node = fc.constantFrom("", "n1", "n2")
  const facts = fc.record({
    owner: owned,
    node,
    trouble: fc.constantFrom(undefined, crashed),
    isTerminating: fc.boolean(),
    isFinished: fc.boolean(),
  })
  const noPod = fc.constantFrom(undefined, full)
  type Step = (w: ReturnType<typeof world>) => void
  const steps = fc.oneof(
    fc.tuple(uids, fc.option(fc.record({ owner: owned, noPod }), { nil: undefined })).map(
      ([uid, after]): Step =>
        // No object moves to another namespace and keeps its uid.
        w =>
          w.owner(uid, after && { ...after, namespace: uid === "u3" ? "b" : "a" }),
    ),
    fc.tuple(name, fc.option(facts, { nil: undefined })).map(
      ([key, after]): Step =>
        w =>
          w.pod(key, after),
    ),
    fc.tuple(fc.constantFrom("n1", "n2"), fc.constantFrom(true, false, undefined)).map(
      ([each, isLost]): Step =>
        w =>
          w.node(each, isLost),
    ),
  )
  const roots: Root[] = ["u1", "tenant"].flatMap(uid => ["", "a", "b"].map(each => ({ uid, namespace: each })))
  fc.assert(
    fc.property(fc.array(steps, { maxLength: 30 }), story => {
      const w = world()
      let before = roots.map(root => w.index.traceOf(root))
      for (const step of story) {
        w.told.clear()
        step(w)
        const after = roots.map(root => w.index.traceOf(root))
        for (const [position, root] of roots.entries()) {
          expect(after[position]).toEqual(plainly(w.facts, root))
          if (!w.told.has(root.uid)) expect(after[position]).toEqual(before[position])
        }
        before = after
      }
    }),
    { numRuns: 500 },
  )
})

/** By walking up from every pod and every owner there is. */
function plainly({ owners, pods, nodes }: ReturnType<typeof world>["facts"], root: Root) {
  const isBelow = (uid: string, namespace: string): boolean => {
    for (let steps = 0; steps < 8 && uid !== ""; steps++) {
      if (uid === root.uid) return root.namespace === "" || root.namespace === namespace
      const found = owners.get(uid)
      if (!found || found.namespace !== namespace) return false
      uid = found.owner
    }
    return false
  }
  return traceOf(
    [...pods].filter(([key, each]) => isBelow(each.owner, key.split("/")[0]!)),
    [...owners.values()]
      .filter(each => each.noPod && (each.uid === root.uid || isBelow(each.owner, each.namespace)))
      .map(each => each.noPod!),
    each => nodes.get(each) ?? true,
  )
}

test("a request that has stopped a container is reported for the object of its pod, and excuses the exit", () => {
  const { facts, index, pod, told } = chain()
  const state = { name: "web", image: "shop/web:2", isReady: false, restarts: 1, waiting: "", startedAt: undefined }
  const exit = { id: "c://1", code: 137, reason: "", message: "", at: 0 }
  const containers = [{ ...state, exit, isEnded: true, trouble: crashed }]
  const known = { uid: "p", readyAt: undefined, containers, otherwise: undefined }
  pod("a/web-1", { owner: "set", node: "n1", trouble: crashed, crashed: known })
  told.clear()
  facts.stopped.set("a/web-1 q", new Map([["c://1", "web"]]))
  expect(index.traceOf(tenant).troubles).toHaveLength(1)
  facts.stopped.set("a/web-1 p", new Map([["c://1", "web"]]))
  index.stoppedChanged("a/web-1")
  expect(told).toEqual(new Set(["set", "deployment", "tenant"]))
  expect(index.traceOf(tenant).troubles).toEqual([])
  told.clear()
  index.stoppedChanged("a/other")
  expect(told).toEqual(new Set())
})
