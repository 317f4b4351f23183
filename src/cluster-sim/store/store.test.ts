import fc from "fast-check"
import { expect, test } from "vitest"
import type { Obj } from "../object.ts"
import { createStore } from "./index.ts"

const object = (namespace: string, name: string, value = 0) =>
  ({ apiVersion: "v1", kind: "Thing", metadata: { name, namespace }, value }) as unknown as Obj

const keys = (list: readonly Obj[] | undefined) => list?.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`)

test("a list is in the order of the server's keys, where a dash sorts before the slash", () => {
  const store = createStore()
  for (const [namespace, name] of [
    ["a", "z"],
    ["a-b", "y"],
    ["a", "b"],
  ] as const)
    store.commit({ place: "things", before: undefined, after: object(namespace, name), manager: "" })
  expect(keys(store.list("things"))).toEqual(["a-b/y", "a/b", "a/z"])
})

test("listeners receive changes in order, also those that a listener makes during a delivery", () => {
  const store = createStore()
  const told: string[] = []
  store.subscribe(
    "things",
    ({
      change: {
        revision,
        object: { metadata },
      },
    }) => {
      if (metadata.name === "a")
        store.commit({ place: "things", before: undefined, after: object("n", "b"), manager: "" })
      told.push(`first ${revision}`)
    },
  )
  store.subscribe("things", ({ change: { revision } }) => told.push(`second ${revision}`))
  store.commit({ place: "things", before: undefined, after: object("n", "a"), manager: "" })
  expect(told).toEqual(["first 1", "second 1", "first 2", "second 2"])
})

test("a listener for a name receives the changes of that name, and nothing after it has left", () => {
  const store = createStore()
  const told: string[] = []
  const leave = store.subscribe("things", ({ change: { object } }) => told.push(object.metadata.namespace!), "a")
  const add = (namespace: string, name: string) =>
    store.commit({ place: "things", before: undefined, after: object(namespace, name), manager: "" })
  add("x", "a")
  add("x", "b")
  add("y", "a")
  leave()
  add("z", "a")
  expect(told).toEqual(["x", "y"])
})

test("a later listener does not receive changes from before its subscription", () => {
  const store = createStore()
  const told: number[] = []
  store.subscribe("things", () => {
    if (store.revision === 1) store.subscribe("things", ({ change }) => told.push(change.revision))
  })
  store.commit({ place: "things", before: undefined, after: object("n", "a"), manager: "" })
  store.commit({ place: "things", before: undefined, after: object("n", "b"), manager: "" })
  expect(told).toEqual([2])
})

test("the log is bounded, and returns nothing instead of a part", () => {
  const store = createStore({ keptChanges: 10 })
  let before: Obj | undefined
  for (let value = 0; value < 100; value++)
    before = store.commit({ place: "things", before, after: object("n", "a", value), manager: "" }).object
  expect(store.since("things", 1)).toBeUndefined()
  expect(store.since("things", 95)?.map(({ revision }) => revision)).toEqual([96, 97, 98, 99, 100])
})

/** Every past list that is still kept equals the list at that time. */
test("the list at a revision is the list of that time", () => {
  const step = fc.record({
    namespace: fc.constantFrom("a", "b"),
    name: fc.constantFrom("x", "y", "z"),
    isDelete: fc.boolean(),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), fc.nat(40), (steps, kept) => {
      const store = createStore({ keptChanges: kept + 1 })
      const lists = [store.list("things")]
      for (const { namespace, name, isDelete } of steps) {
        const before = store.get("things", namespace, name)
        if (isDelete && !before) continue
        store.commit({
          place: "things",
          before,
          after: isDelete ? undefined : object(namespace, name, store.revision),
          manager: "",
        })
        lists.push([...store.list("things")])
      }
      for (const [revision, list] of lists.entries()) {
        const rebuilt = store.listAt("things", revision)
        if (store.since("things", revision) === undefined) expect(rebuilt).toBeUndefined()
        else expect(rebuilt).toEqual(list)
        const inB = store.listAt("things", revision, "b")
        if (inB) expect(inB).toEqual(list.filter(({ metadata }) => metadata.namespace === "b"))
      }
    }),
  )
})
