import { expect, test } from "vitest"
import { Writes } from "./writes.ts"

/** Writes that the test ends. */
function writes(atOnce: number, atOnceIn?: (lane: string) => number) {
  const list = new Writes(atOnce, atOnceIn)
  const under = new Map<string, { resolve(): void; reject(error: Error): void }>()
  const begin = (...keys: string[]) => {
    for (const key of keys)
      list.begin(key, key.split("/")[0]!, () => new Promise((resolve, reject) => under.set(key, { resolve, reject })))
  }
  const end = async (key: string, error?: Error) => {
    const { resolve, reject } = under.get(key)!
    under.delete(key)
    if (error) reject(error)
    else resolve()
    for (let turn = 0; turn < 5; turn++) await Promise.resolve()
  }
  return { list, begin, end, under: () => [...under.keys()] }
}

test("no more are under way than allowed, and the next begins when one ends", async () => {
  const { begin, end, under, list } = writes(2)
  begin("a", "b", "c")
  expect(under()).toEqual(["a", "b"])
  expect([...list.keys]).toEqual(["a", "b", "c"])
  await end("a")
  expect(under()).toEqual(["b", "c"])
})

test("a second batch begins while the first ends", async () => {
  const { begin, end, list } = writes(2)
  begin("a", "b", "c")
  let isRoom = false
  const room = list.untilAtMost(1).then(() => {
    isRoom = true
  })
  await end("a")
  expect(isRoom).toBe(false)
  await end("b")
  await room
  begin("d")
  await end("c")
  await end("d")
  await list.untilAtMost(0)
})

test("after a failure nothing more begins, what is under way ends, and then it is thrown once", async () => {
  const { begin, end, list, under } = writes(2)
  begin("a", "b", "c")
  const told = list.untilAtMost(5).then(
    () => "all well",
    error => error.message,
  )
  expect(await told).toBe("all well")
  await end("a", new Error("no"))
  expect(under()).toEqual(["b"])
  const failed = list.untilAtMost(5).catch(error => error.message)
  await end("b")
  expect(await failed).toBe("no")
  await list.untilAtMost(0)
})

test("no more of one lane are under way than it allows, and others pass them", async () => {
  const { begin, end, under } = writes(3, lane => (lane === "slow" ? 1 : 3))
  begin("slow/1", "slow/2", "slow/3", "a/1", "a/2", "a/3")
  expect(under()).toEqual(["slow/1", "a/1", "a/2"])
  await end("a/1")
  expect(under()).toEqual(["slow/1", "a/2", "a/3"])
  await end("slow/1")
  expect(under()).toEqual(["a/2", "a/3", "slow/2"])
})
