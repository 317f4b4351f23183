import { expect, test } from "vitest"
import { createStore } from "#runtime/cache/store.ts"
import type { Wiring } from "#runtime/controller.ts"
import { openStopped } from "./stopped.ts"

/** With one cache of requests, which the test fills. */
function world() {
  const changed: string[] = []
  let version = 0
  let put: (name: string, states: object[], podUID?: string) => void = () => {}
  let remove: (name: string) => void = () => {}
  const watch = ((_: unknown, options: object) => {
    const quiet = () => {}
    const store = createStore({ ...options, onListenerError: quiet, onUnreadable: quiet } as never)
    put = (name, containerRecreateStates, podUID = "uid-1") =>
      store.put({
        metadata: { name, namespace: "shop", resourceVersion: String(++version) },
        spec: { podName: "web-0" },
        status: { podUID, containerRecreateStates },
      } as never)
    remove = name =>
      store.remove({ metadata: { name, namespace: "shop", resourceVersion: String(++version) } } as never)
    return { ...store, get: (key: string) => store.entries.get(key)?.value, close: quiet }
  }) as unknown as Wiring["watch"]
  const stopped = openStopped({ watch }, key => changed.push(key))
  return {
    changed,
    stopped,
    put: (...given: Parameters<typeof put>) => put(...given),
    remove: (name: string) => remove(name),
  }
}

const pending = { name: "app", containerID: "c://1" }
const begun = { ...pending, stopTime: "2026-01-01T00:00:00.000000Z" }

test("a container counts as stopped from the beginning of its stop until its request is gone", () => {
  const { changed, stopped, put, remove } = world()
  put("one", [pending])
  expect([changed, stopped.of("shop/web-0", "uid-1")]).toEqual([[], new Map()])
  put("one", [begun])
  expect([changed, stopped.of("shop/web-0", "uid-1")]).toEqual([["shop/web-0"], new Map([["c://1", "app"]])])
  put("one", [{ ...begun, phase: "Succeeded" }])
  expect(changed).toHaveLength(1)
  remove("one")
  expect([changed.length, stopped.of("shop/web-0", "uid-1")]).toEqual([2, new Map()])
})

test("requests for one pod add up; those for an earlier pod of the same name do not", () => {
  const { stopped, put } = world()
  put("one", [begun])
  put("two", [{ ...begun, containerID: "c://2" }])
  put("old", [{ ...begun, containerID: "c://0" }], "uid-0")
  expect([...stopped.of("shop/web-0", "uid-1").keys()].sort()).toEqual(["c://1", "c://2"])
  expect(stopped.of("shop/web-1", "uid-1").size).toBe(0)
})
