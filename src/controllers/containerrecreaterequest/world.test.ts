import { expect, test } from "vitest"
import { readinessGate } from "#api/v1alpha1/readiness-gate.ts"
import type { Wiring } from "#runtime/controller.ts"
import { type KubeObject, keyOf } from "#runtime/resource.ts"
import { pods } from "./resources.ts"
import { openWorld } from "./world.ts"

const podAt = (resourceVersion: string) =>
  ({
    metadata: { namespace: "shop", name: "web", uid: "1", resourceVersion },
    spec: { readinessGates: [{ conditionType: readinessGate }] },
  }) as unknown as KubeObject

/** A world without requests, whose watch of pods shows what it is given. */
function opened() {
  const shown = new Map<string, unknown>()
  const listeners: ((change: unknown) => void)[] = []
  let read = (_: KubeObject): unknown => undefined
  const watch = (resource: unknown, { project }: { project: typeof read }) => {
    if (resource !== pods) return { subscribe() {} }
    read = project
    return {
      get: (key: string) => shown.get(key),
      subscribe: (listener: (typeof listeners)[0]) => listeners.push(listener),
    }
  }
  const requests = { keysBy: () => new Set(), get: () => undefined, subscribe() {} }
  const world = openWorld({ watch, enqueue() {} } as unknown as Wiring, requests as never)
  const shows = (pod: KubeObject, isGone = false) => {
    const [key, after] = [keyOf(pod.metadata), isGone ? undefined : read(pod)]
    const before = shown.get(key)
    if (isGone) shown.delete(key)
    else shown.set(key, after)
    for (const listener of listeners) listener({ key, before, after })
  }
  return { world, shows }
}

test("the answer to a write counts until the watch shows it, and not for a pod that is gone", () => {
  const { world, shows } = opened()
  shows(podAt("1"))
  world.wrote("shop/web", podAt("2"))
  expect(world.pod("shop/web")?.resourceVersion).toBe("2")
  shows(podAt("3"), true)
  expect(world.pod("shop/web")).toBeUndefined()
  world.wrote("shop/web", podAt("2"))
  expect(world.pod("shop/web")).toBeUndefined()
})
