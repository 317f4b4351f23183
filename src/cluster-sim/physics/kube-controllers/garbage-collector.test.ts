import { describe, expect, test } from "vitest"
import type { Json, Obj, Owner } from "../../object.ts"
import { garbageCollector, plan, type Standing } from "./garbage-collector.ts"
import { testWorld } from "./test-world.ts"

const owner = (name: string, rest: Partial<Owner> = {}): Owner => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  name,
  uid: name,
  blockOwnerDeletion: true,
  ...rest,
})
const object = (name: string, metadata: Json = {}): Obj => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name, uid: name, resourceVersion: "1", creationTimestamp: "2026-01-01T00:00:00Z", ...metadata },
})
const ending = { deletionTimestamp: "2026-01-01T00:00:00Z" }
const foreground = { ...ending, finalizers: ["foregroundDeletion"] }

const cases: Record<string, { given: Obj; standings?: Standing[]; dependents?: Obj[]; want: Json }> = {
  "an owner lives": {
    given: object("a", { ownerReferences: [owner("x")] }),
    standings: ["solid"],
    want: { do: "nothing" },
  },
  "its only owner is gone": {
    given: object("a", { ownerReferences: [owner("x")] }),
    standings: ["dangling"],
    want: { do: "delete", policy: "Background", unblock: false },
  },
  "one of two owners is gone": {
    given: object("a", { ownerReferences: [owner("x"), owner("y")] }),
    standings: ["dangling", "solid"],
    want: { do: "keep-owners", owners: [owner("y")] },
  },
  "its owner waits for it": {
    given: object("a", { ownerReferences: [owner("x")] }),
    standings: ["waiting"],
    want: { do: "delete", policy: "Background", unblock: false },
  },
  "its owner waits, and it has dependents itself": {
    given: object("a", { ownerReferences: [owner("x")] }),
    standings: ["waiting"],
    dependents: [object("b")],
    want: { do: "delete", policy: "Foreground", unblock: false },
  },
  "a cycle would wait for itself": {
    given: object("a", { ownerReferences: [owner("x")] }),
    standings: ["waiting"],
    dependents: [object("b", foreground)],
    want: { do: "delete", policy: "Foreground", unblock: true },
  },
  "the kind of its owner is unknown": {
    given: object("a", { ownerReferences: [owner("x")] }),
    standings: ["unknown-kind"],
    want: { do: "nothing" },
  },
  "it is already being deleted": {
    given: object("a", { ...ending, ownerReferences: [owner("x")] }),
    standings: ["dangling"],
    want: { do: "nothing" },
  },
  "it waits for a dependent that blocks it": {
    given: object("a", foreground),
    dependents: [object("b", { ownerReferences: [owner("a")] })],
    want: { do: "look-at", dependents: [object("b", { ownerReferences: [owner("a")] })] },
  },
  "no dependent blocks it": {
    given: object("a", foreground),
    dependents: [object("b", { ownerReferences: [owner("a", { blockOwnerDeletion: false })] })],
    want: { do: "remove-finalizer", finalizer: "foregroundDeletion" },
  },
  "it orphans its dependents": {
    given: object("a", { ...ending, finalizers: ["orphan"] }),
    dependents: [object("b")],
    want: { do: "release-dependents", dependents: [object("b")] },
  },
}
for (const [name, { given, standings = [], dependents = [], want }] of Object.entries(cases))
  test(name, () => expect(plan({ object: given, standings, dependents })).toEqual(want))

describe("on a cluster", () => {
  function started() {
    const world = testWorld()
    world.start(garbageCollector(world))
    const make = (name: string, owners: Obj[] = [], rest: Json = {}) =>
      world.create({
        apiVersion: "v1",
        kind: "ConfigMap",
        metadata: {
          name,
          ownerReferences: owners.map(each => owner(each.metadata.name, { uid: each.metadata.uid })),
          ...rest,
        },
      })
    return { world, make, names: () => world.list("ConfigMap").map(({ metadata }) => metadata.name) }
  }

  test("in the background the owner is deleted first, then its dependents, then theirs", async () => {
    const { world, make, names } = started()
    const a = make("a")
    make("c", [make("b", [a])])
    world.remove("ConfigMap", "a", "Background")
    expect(names()).toEqual(["b", "c"])
    await world.clock.advance(100)
    expect(names()).toEqual([])
  })

  test("in the foreground the owner is deleted last", async () => {
    const { world, make, names } = started()
    const a = make("a")
    make("c", [make("b", [a])])
    world.remove("ConfigMap", "a", "Foreground")
    expect(names()).toEqual(["a", "b", "c"])
    await world.clock.advance(100)
    expect(names()).toEqual([])
    const gone = world.history.filter(({ type }) => type === "DELETED").map(({ object }) => object.metadata.name)
    expect(gone).toEqual(["c", "b", "a"])
  })

  test("in the foreground the owner waits as long as a finalizer holds a dependent", async () => {
    const { world, make, names } = started()
    make("b", [make("a")], { finalizers: ["example.com/held"] })
    world.remove("ConfigMap", "a", "Foreground")
    await world.clock.advance(10_000)
    expect(names()).toEqual(["a", "b"])
    world.patch("ConfigMap", "b", { metadata: { finalizers: null } })
    await world.clock.advance(100)
    expect(names()).toEqual([])
  })

  test("orphans stay, without their owner reference", async () => {
    const { world, make, names } = started()
    make("b", [make("a")])
    world.remove("ConfigMap", "a", "Orphan")
    await world.clock.advance(100)
    expect(names()).toEqual(["b"])
    expect(world.get("ConfigMap", "b")?.metadata.ownerReferences).toBeUndefined()
  })

  test("a dependent is deleted if its owner never existed, or if another object has the owner's name", async () => {
    const { world, make, names } = started()
    make("a")
    world.create({
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "b", ownerReferences: [owner("a", { uid: "another" })] },
    })
    await world.clock.advance(100)
    expect(names()).toEqual(["a"])
  })

  test("an owner in another namespace is no owner, and an event reports it", async () => {
    const { world, make, names } = started()
    world.namespace("other")
    const away = world.create({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a", namespace: "other" } })
    make("b", [away])
    await world.clock.advance(100)
    expect(names()).toEqual(["a"])
    expect(world.events("b")[0]).toMatch(
      /^OwnerRefInvalidNamespace: ownerRef .* does not exist in namespace "default"$/,
    )
  })

  test("a cluster-scoped object cannot have a namespaced owner: it stays, and an event reports it", async () => {
    const { world, make } = started()
    const { name, uid } = make("a").metadata
    world.create({
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "ClusterRole",
      metadata: { name: "b", ownerReferences: [owner(name, { uid })] },
      rules: [],
    })
    await world.clock.advance(100)
    expect(world.get("ClusterRole", "b")).toBeDefined()
    expect(world.events("b")).toEqual([
      `OwnerRefInvalidNamespace: ownerRef [v1/ConfigMap, namespace: , name: a, uid: ${uid}] does not exist in namespace ""`,
    ])
  })

  test("owners deleted while it was stopped are noticed when it starts again", async () => {
    const { world, make, names } = started()
    make("b", [make("a")])
    world.stop("garbage-collector-controller")
    world.remove("ConfigMap", "a", "Background")
    await world.clock.advance(1000)
    expect(names()).toEqual(["b"])
    world.start(garbageCollector(world))
    await world.clock.advance(100)
    expect(names()).toEqual([])
  })
})
