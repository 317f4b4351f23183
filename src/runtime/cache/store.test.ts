import fc from "fast-check"
import { expect, test } from "vitest"
import type { KubeObject } from "../resource.ts"
import type { Change } from "./cache.ts"
import { createStore } from "./store.ts"

type Row = { resourceVersion: string; color: string }

const object = (name: string, version: number, { uid = "a", color = "red" } = {}) =>
  ({ metadata: { name, uid, resourceVersion: String(version) }, color }) as KubeObject

function rows() {
  const unreadable: string[] = []
  const listenerErrors: string[] = []
  const store = createStore<Row>({
    project(object) {
      const { color } = object as unknown as Row
      if (color === "unspeakable") throw new Error("no such color")
      return { resourceVersion: object.metadata.resourceVersion ?? "", color }
    },
    indexes: { color: ({ color }) => (color === "" ? [] : color.split("+")) },
    onListenerError: key => listenerErrors.push(key),
    onUnreadable: key => unreadable.push(key),
  })
  const changes: Change<Row>[] = []
  store.subscribe(change => changes.push(change))
  const list = (version: number, ...objects: KubeObject[]) => {
    store.beginList({ historyIsNew: false })
    for (const one of objects) store.put(one)
    store.endList(String(version))
  }
  const shown = () => Object.fromEntries([...store.entries].map(([key, { value }]) => [key, value.resourceVersion]))
  const words = () =>
    changes
      .splice(0)
      .map(({ key, before, after }) => `${key} ${before?.resourceVersion ?? "-"}→${after?.resourceVersion ?? "-"}`)
  return { store, list, shown, words, changes, unreadable, listenerErrors }
}

test("an older or repeated event changes nothing and is not reported", () => {
  const { store, list, shown, words } = rows()
  list(10, object("x", 10))
  words()
  store.put(object("x", 12))
  store.put(object("x", 12))
  store.put(object("x", 11))
  expect(shown()).toEqual({ x: "12" })
  expect(words()).toEqual(["x 10→12"])
})

test("a projection sees what the cache had under the name", () => {
  const seen: (string | undefined)[] = []
  const store = createStore<Row>({
    project({ metadata }, before) {
      seen.push(before?.resourceVersion)
      return { resourceVersion: metadata.resourceVersion ?? "", color: "" }
    },
    onListenerError: () => {},
    onUnreadable: () => {},
  })
  store.put(object("x", 10))
  store.put(object("y", 11))
  store.put(object("x", 12))
  expect(seen).toEqual([undefined, undefined, "10"])
})

test("a late event does not restore a deleted object", () => {
  const { store, list, shown } = rows()
  list(10, object("x", 10))
  store.remove(object("x", 12))
  store.put(object("x", 11))
  expect(shown()).toEqual({})
})

test("a deletion of which the creation comes late leaves nothing behind", () => {
  const { store, list, shown } = rows()
  list(10)
  store.remove(object("x", 12))
  store.put(object("x", 11))
  expect(shown()).toEqual({})
  store.put(object("x", 13, { uid: "b" }))
  expect(shown()).toEqual({ x: "13" })
})

test("the deletion of a predecessor does not remove its successor", () => {
  const { store, list, shown } = rows()
  list(10, object("x", 10, { uid: "a" }))
  store.put(object("x", 12, { uid: "b" }))
  store.remove(object("x", 11, { uid: "a" }))
  expect(shown()).toEqual({ x: "12" })
  // A server that repeats the last version of a deleted object, in a store where both have the same one.
  store.remove(object("x", 12, { uid: "a" }))
  expect(shown()).toEqual({ x: "12" })
})

test("a deletion under the object's last version counts, even if that version is long past", () => {
  const { store, list, shown } = rows()
  list(10, object("x", 5))
  store.remove(object("x", 5))
  expect(shown()).toEqual({})
})

test("an object made again under its name is two changes", () => {
  const { store, list, words } = rows()
  list(10, object("x", 10, { uid: "a" }))
  words()
  list(20, object("x", 15, { uid: "b" }))
  expect(words()).toEqual(["x 10→-", "x -→15"])
  store.put(object("x", 21, { uid: "c" }))
  expect(words()).toEqual(["x 15→-", "x -→21"])
})

test("a list removes what it does not hold, at its end and not before", () => {
  const { store, list, shown, words } = rows()
  list(10, object("x", 5), object("y", 6))
  words()
  store.beginList({ historyIsNew: false })
  store.put(object("y", 6))
  store.put(object("z", 11))
  expect(shown()).toEqual({ x: "5", y: "6", z: "11" })
  store.endList("12")
  expect(shown()).toEqual({ y: "6", z: "11" })
  expect(words()).toEqual(["z -→11", "x 5→-"])
})

test("a list that was broken off removes nothing, and the next one starts afresh", () => {
  const { store, list, shown } = rows()
  list(10, object("x", 5), object("y", 6))
  store.beginList({ historyIsNew: false })
  store.put(object("y", 6))
  list(12, object("x", 5))
  expect(shown()).toEqual({ x: "5" })
})

test("events before the end of a streamed list count", () => {
  const { store, shown } = rows()
  store.beginList({ historyIsNew: false })
  store.put(object("x", 5))
  store.put(object("y", 6))
  store.put(object("x", 8))
  store.remove(object("y", 9))
  store.put(object("y", 6))
  store.endList("9")
  expect(shown()).toEqual({ x: "8" })
})

test("deletions are remembered for two bookmarks and not for ever", () => {
  const { store, list, shown } = rows()
  list(10, object("x", 10))
  store.remove(object("x", 12))
  store.bookmark("13")
  store.put(object("x", 11)) // overtaken by a bookmark
  expect(shown()).toEqual({})
  store.bookmark("14")
  store.put(object("x", 11)) // the server has promised twice that this cannot be
  expect(shown()).toEqual({})
  store.remove(object("y", 15))
  expect(store.remembered.deletions).toBe(1)
})

test("an event that was overtaken by a bookmark is not lost", () => {
  const { store, list, shown } = rows()
  list(10)
  store.bookmark("12")
  store.bookmark("12")
  store.put(object("x", 11))
  expect(shown()).toEqual({ x: "11" })
})

test("an unreadable object keeps its last readable version, and is reported once", () => {
  const { store, list, shown, unreadable } = rows()
  list(10, object("x", 10), object("y", 9, { color: "unspeakable" }))
  store.put(object("x", 11, { color: "unspeakable" }))
  store.put(object("x", 12, { color: "unspeakable" }))
  store.put(object("z", 13))
  expect(shown()).toEqual({ x: "10", z: "13" })
  expect(unreadable).toEqual(["y", "x"])
  expect([...store.unreadable.keys()]).toEqual(["y", "x"])
  expect(store.progress).toBe("13")

  list(14, object("x", 12, { color: "unspeakable" }), object("z", 13))
  expect(shown()).toEqual({ x: "10", z: "13" })
  expect([...store.unreadable.keys()]).toEqual(["x"])
  store.put(object("x", 15))
  expect([...store.unreadable.keys()]).toEqual([])
  expect(shown()).toEqual({ x: "15", z: "13" })
})

test("an older version that comes late does not make an unreadable object readable, nor an older deletion absent", () => {
  const { store, list, shown } = rows()
  list(10)
  store.put(object("x", 13, { uid: "b", color: "unspeakable" }))
  store.put(object("x", 11))
  store.remove(object("x", 12))
  expect(shown()).toEqual({})
  expect([...store.unreadable]).toEqual([["x", "13"]])
  store.remove(object("x", 14, { uid: "b" }))
  expect(store.unreadable.size).toBe(0)
})

test("the last readable version of an object that is gone is not shown for its unreadable successor", () => {
  const { store, list, shown } = rows()
  list(10, object("x", 10, { uid: "a" }))
  store.put(object("x", 12, { uid: "b", color: "unspeakable" }))
  expect(shown()).toEqual({})
})

test("an event without a name or a version is skipped", () => {
  const { store, list, unreadable } = rows()
  list(10)
  for (const odd of [null, {}, { metadata: {} }, { metadata: { name: "x" } }, { metadata: { name: 3 } }]) {
    store.put(odd as unknown as KubeObject)
    store.remove(odd as unknown as KubeObject)
  }
  expect(unreadable).toEqual(["", "x"])
})

test("indexes follow each change, and an object may have several values or none", () => {
  const { store, list } = rows()
  list(10, object("x", 1, { color: "red+blue" }), object("y", 2, { color: "red" }), object("z", 3, { color: "" }))
  expect([...store.keysBy("color", "red")]).toEqual(["x", "y"])
  const live = store.keysBy("color", "red")
  store.put(object("x", 11, { color: "blue" }))
  expect([...live]).toEqual(["y"])
  store.remove(object("y", 12))
  expect(store.keysBy("color", "red").size).toBe(0)
  expect([...store.keysBy("color", "blue")]).toEqual(["x"])
  expect(() => store.keysBy("colour", "red")).toThrow("no index named colour")
})

test("a listener sees the cache and its indexes as the change left them", () => {
  const { store, list } = rows()
  const seen: unknown[] = []
  store.subscribe(({ key, after }) => {
    seen.push([store.entries.get(key)?.value === after, store.keysBy("color", "red").has(key)])
  })
  list(10, object("x", 1))
  store.put(object("x", 11, { color: "blue" }))
  store.remove(object("x", 12))
  expect(seen).toEqual([
    [true, true],
    [true, false],
    [true, false],
  ])
})

test("a listener that fails, at once or later, disturbs neither the cache nor the others", async () => {
  const { store, list, words, listenerErrors } = rows()
  store.subscribe(() => {
    throw new Error("at once")
  })
  store.subscribe(async () => {
    throw new Error("later")
  })
  const late: string[] = []
  store.subscribe(({ key }) => late.push(key))
  list(10, object("x", 1))
  await Promise.resolve()
  expect(words()).toEqual(["x -→1"])
  expect(late).toEqual(["x"])
  expect(listenerErrors).toEqual(["x", "x"])
})

test("a late subscriber gets the present objects as initial, also from within a listener, and each change once", () => {
  const { store, list } = rows()
  list(10, object("x", 1))
  const late: string[] = []
  const word = ({ key, after, initial }: Change<Row>) => `${key} ${after?.resourceVersion} ${initial}`
  let subscribed = false
  store.subscribe(() => {
    if (!subscribed) store.subscribe(change => late.push(word(change)))
    subscribed = true
  })
  expect(late).toEqual(["x 1 true"])
  store.put(object("y", 11))
  expect(late).toEqual(["x 1 true", "y 11 false"])
})

test("after unsubscribing nothing is received, not even the change under way", () => {
  const { store, list } = rows()
  const heard: string[] = []
  let stop = () => {}
  store.subscribe(() => stop())
  stop = store.subscribe(({ key }) => heard.push(key))
  list(10, object("x", 1))
  expect(heard).toEqual([])
})

test("only the first list is initial", () => {
  const { store, list, changes } = rows()
  list(10, object("x", 1))
  store.put(object("y", 11))
  list(20, object("x", 12), object("y", 11))
  expect(changes.map(({ key, initial }) => `${key} ${initial}`)).toEqual(["x true", "y false", "x false"])
})

test("whatever the order and however often events arrive, the newest state remains", () => {
  const operation = fc.record({ key: fc.constantFrom("x", "y", "z"), remove: fc.boolean() })
  fc.assert(
    fc.property(fc.array(operation, { maxLength: 30 }), fc.infiniteStream(fc.nat()), (operations, chance) => {
      const model = new Map<string, { version: number; uid: string }>()
      const events = operations.map(({ key, remove }, index) => {
        const version = 11 + index
        const uid = model.get(key)?.uid ?? `uid-${version}`
        if (remove) model.delete(key)
        else model.set(key, { version, uid })
        return { remove, object: object(key, version, { uid }) }
      })
      const shuffled = [...events, ...events.filter(() => (chance.next().value ?? 0) % 3 === 0)]
        .map(event => ({ event, at: chance.next().value ?? 0 }))
        .sort((a, b) => a.at - b.at)
      const { store, list, shown } = rows()
      list(10)
      for (const { event } of shuffled) (event.remove ? store.remove : store.put)(event.object)
      expect(shown()).toEqual(Object.fromEntries([...model].map(([key, { version }]) => [key, String(version)])))
    }),
  )
})

test("a wait for a version resolves when the object or the whole cache has reached it", async () => {
  const { store, list } = rows()
  list(10, object("x", 10))
  await store.reached("x", "10")
  await store.reached("gone", "9") // known not to be there at 10
  const told: string[] = []
  const wait = (key: string, version: string) => store.reached(key, version).then(() => told.push(`${key}@${version}`))
  const all = [wait("x", "12"), wait("x", "13"), wait("y", "13"), wait("z", "20")]
  store.put(object("x", 12))
  await Promise.resolve()
  await Promise.resolve()
  expect(told).toEqual(["x@12"])
  store.remove(object("x", 14))
  store.beginList({ historyIsNew: false })
  store.put(object("z", 21))
  await Promise.all(all)
  expect(told).toEqual(["x@12", "x@13", "y@13", "z@20"])
  expect(store.remembered.waiters).toBe(0)
})

test("a wait that is given up is forgotten", async () => {
  const { store, list } = rows()
  list(10)
  const giveUp = new AbortController()
  const waiting = store.reached("x", "12", giveUp.signal)
  const patient = store.reached("x", "13")
  giveUp.abort(new Error("enough"))
  await expect(waiting).rejects.toThrow("enough")
  await expect(store.reached("x", "12", giveUp.signal)).rejects.toThrow("enough")
  expect(store.remembered.waiters).toBe(1)
  store.bookmark("13")
  await patient
  expect(store.remembered.waiters).toBe(0)
  await expect(store.reached("x", "soon")).rejects.toThrow("not an integer")
})

test("a restored server counts when the list is declared as a new history", async () => {
  const { store, list, shown } = rows()
  list(100, object("x", 90), object("y", 95))
  store.beginList({ historyIsNew: true })
  store.put(object("x", 40))
  store.endList("50")
  expect(shown()).toEqual({ x: "40" })
  expect(store.progress).toBe("50")
  store.put(object("x", 51))
  expect(shown()).toEqual({ x: "51" })
})
