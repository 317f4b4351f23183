import { setImmediate as nextTurn } from "node:timers/promises"
import { describe, expect, test } from "vitest"
import { Batch, forEachLimited } from "./batch.ts"
import type { Limits } from "./limiter.ts"

/** Work that the test ends. */
function workshop(limits: Omit<Limits, "order">) {
  const list = new Batch({ order: "Oldest", ...limits })
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
    for (let turn = 0; turn < 10; turn++) await Promise.resolve()
  }
  return { list, begin, end, under: () => [...under.keys()] }
}

test("no more are under way than allowed, and the next begins when one ends", async () => {
  const { begin, end, under, list } = workshop({ all: 2 })
  begin("a", "b", "c")
  expect(under()).toEqual(["a", "b"])
  expect([...list.keys]).toEqual(["a", "b", "c"])
  await end("a")
  expect(under()).toEqual(["b", "c"])
})

test("a second batch begins while the first ends", async () => {
  const { begin, end, list } = workshop({ all: 2 })
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
  const { begin, end, list, under } = workshop({ all: 2 })
  begin("a", "b", "c")
  const before = list.untilAtMost(5).then(
    () => "all well",
    error => error.message,
  )
  expect(await before).toBe("all well")
  await end("a", new Error("no"))
  expect(under()).toEqual(["b"])
  const failed = list.untilAtMost(5).catch(error => error.message)
  await end("b")
  expect(await failed).toBe("no")
  await list.untilAtMost(0)
})

test("no more of one owner are under way than its limit, and others pass them", async () => {
  const { begin, end, under } = workshop({ all: 3, owner: owner => (owner === "slow" ? 1 : 3) })
  begin("slow/1", "slow/2", "slow/3", "a/1", "a/2", "a/3")
  expect(under()).toEqual(["slow/1", "a/1", "a/2"])
  await end("a/1")
  expect(under()).toEqual(["slow/1", "a/2", "a/3"])
  await end("slow/1")
  expect(under()).toEqual(["a/2", "a/3", "slow/2"])
})

test("work begins in the order it came, also where its owner gets more room", async () => {
  let most = 1
  const { begin, end, under } = workshop({ all: 2, owner: owner => (owner === "a" ? most : 2) })
  begin("a/1", "a/2", "a/3", "b/1")
  expect(under()).toEqual(["a/1", "b/1"])
  begin("b/2")
  most = 2
  await end("b/1")
  expect(under()).toEqual(["a/1", "a/2"])
  await end("a/1")
  expect(under()).toEqual(["a/2", "a/3"])
})

test("where an owner gets more room, its waiting work begins before new work of others", async () => {
  let most = 1
  const { begin, under } = workshop({ all: 2, owner: owner => (owner === "a" ? most : 2) })
  begin("a/1", "a/2")
  most = 2
  begin("b/1")
  await nextTurn()
  expect(under()).toEqual(["a/1", "a/2"])
})

test("work that fails before it is under way counts as failed", async () => {
  const { list } = workshop({ all: 2 })
  list.begin("a", "", () => {
    throw new Error("no")
  })
  await expect(list.untilAtMost(0)).rejects.toThrow("no")
  expect(list.keys.size).toBe(0)
})

describe("forEachLimited", () => {
  test("runs at most so many at once, takes items only when there is room, and waits for all", async () => {
    const [begun, ends]: [number[], (() => void)[]] = [[], []]
    let taken = 0
    const items = (function* () {
      for (; taken < 5; taken++) yield taken
    })()
    const all = forEachLimited(items, 2, item => {
      begun.push(item)
      return new Promise(resolve => ends.push(resolve))
    })
    expect(begun).toEqual([0, 1])
    for (let ended = 0; ended < 5; ended++) {
      await nextTurn()
      expect(begun.length).toBe(Math.min(5, ended + 2))
      expect(taken).toBeLessThanOrEqual(begun.length)
      ends[ended]!()
    }
    await all
    expect(begun).toEqual([0, 1, 2, 3, 4])
  })

  test("the first failure stops further starts, what is under way ends, and then it is thrown", async () => {
    for (let failsAt = 0; failsAt < 15; failsAt++) {
      const ends: PromiseWithResolvers<void>[] = []
      let [hasFailed, isOver, begunAfter] = [false, false, 0]
      const all = forEachLimited([0, 1, 2, 3, 4], 3, () => {
        if (hasFailed) begunAfter++
        const end = Promise.withResolvers<void>()
        end.promise.catch(() => {
          hasFailed = true
        })
        ends.push(end)
        return end.promise
      })
      const over = () => {
        isOver = true
      }
      all.then(over, over)
      ends[0]!.resolve() // makes room for another, while this one fails:
      for (let tick = 0; tick < 20; tick++) {
        if (tick === failsAt) ends[1]!.reject(new Error("first"))
        await Promise.resolve()
      }
      expect(isOver).toBe(false)
      ends[2]!.reject(new Error("second"))
      ends[3]?.resolve()
      await expect(all).rejects.toThrow("first")
      expect(begunAfter).toBe(0)
    }
  })
})
