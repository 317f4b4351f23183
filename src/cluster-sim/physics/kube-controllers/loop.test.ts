import { expect, test } from "vitest"
import { StatusError } from "../../status-error.ts"
import { createRecorder } from "../recorder.ts"
import { keyOf, loop } from "./loop.ts"
import { testWorld } from "./test-world.ts"

const configMap = (name: string) => ({ apiVersion: "v1", kind: "ConfigMap", metadata: { name } })

test("a key that is queued many times is reconciled once, and the order follows from the seed", async () => {
  const orders = [1, 1, 2, 3].map(async seed => {
    const world = testWorld({ seed })
    const looks: string[] = []
    world.start(
      loop(world, {
        name: "test",
        watches: [{ apiVersion: "v1", kind: "ConfigMap", keys: ({ object }) => [keyOf(object)] }],
        reconcile: key => void looks.push(key) as undefined,
      }),
    )
    for (const name of ["a", "b", "c", "d"]) world.create(configMap(name))
    for (const name of ["a", "b"]) world.patch("ConfigMap", name, { data: { x: "y" } })
    await world.clock.advance(50)
    expect([...looks].sort()).toEqual(["default/a", "default/b", "default/c", "default/d"])
    return looks.join()
  })
  const [first, again, ...others] = await Promise.all(orders)
  expect(again).toBe(first)
  expect(others.some(order => order !== first)).toBe(true)
})

test("a refusal is retried, with a longer wait each time; a bug is not swallowed", async () => {
  const world = testWorld()
  const at: number[] = []
  world.start(
    loop(world, {
      name: "test",
      watches: [{ apiVersion: "v1", kind: "ConfigMap", keys: ({ object }) => [keyOf(object)] }],
      reconcile() {
        at.push(world.clock.now())
        if (at.length < 5) throw new StatusError(409, "Conflict", "again")
        if (at.length === 6) throw new TypeError("a bug")
        return undefined
      },
    }),
  )
  world.create(configMap("a"))
  await world.clock.advance(1000)
  expect(at).toHaveLength(5)
  const waits = at.slice(1).map((time, index) => time - at[index]!)
  for (const [index, wait] of waits.entries()) {
    expect(wait).toBeGreaterThanOrEqual(5 * 2 ** index * 0.8)
    expect(wait).toBeLessThanOrEqual(5 * 2 ** index * 1.2 + 0.125)
  }
  world.patch("ConfigMap", "a", { data: { x: "y" } })
  await expect(world.clock.advance(1000)).rejects.toThrow("a bug")
})

test("the same event again is counted, many similar ones are combined, and too many are dropped", async () => {
  const world = testWorld()
  const record = createRecorder(world, "test-controller")
  const about = world.create(configMap("a"))
  for (let index = 0; index < 3; index++) record(about, "Normal", "Same", "the same")
  for (let index = 0; index < 12; index++) record(about, "Normal", "Similar", `number ${index}`)
  expect(world.events("a")).toEqual([
    "Same: the same (x3)",
    ...Array.from({ length: 9 }, (_, index) => `Similar: number ${index}`),
    "Similar: (combined from similar events): number 11 (x3)",
  ])
  for (let index = 0; index < 30; index++) record(about, "Normal", "Loud", "loud")
  expect(world.events("a").at(-1)).toBe("Loud: loud (x10)") // 25 at once, and then one in five minutes
  const [event] = world.list("Event")
  expect(event).toMatchObject({
    involvedObject: { kind: "ConfigMap", namespace: "default", name: "a", uid: about.metadata.uid, apiVersion: "v1" },
    source: { component: "test-controller" },
    reportingComponent: "test-controller",
    type: "Normal",
  })
})
