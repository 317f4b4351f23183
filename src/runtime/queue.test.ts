import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { type VirtualClock, virtualClock } from "./clock.ts"
import { createQueue, type Queue } from "./queue.ts"

const clock = virtualClock

/** Takes what can be taken now. */
async function taken(queue: Queue, count: number) {
  const keys: (string | undefined)[] = []
  for (let i = 0; i < count; i++) keys.push(await queue.take())
  return keys
}

describe("a queue", () => {
  test("hands out each key once, in the order it came", async () => {
    const queue = createQueue({ clock: clock() })
    for (const key of ["a", "b", "a", "c", "b"]) queue.add(key)
    expect(queue.depth).toBe(3)
    expect(await taken(queue, 3)).toEqual(["a", "b", "c"])
    expect(queue.depth).toBe(0)
  })

  test("looks again at a key that was added while in work, and only after that work", async () => {
    const queue = createQueue({ clock: clock() })
    queue.add("a")
    await queue.take()
    queue.add("a")
    queue.add("a")
    queue.add("b")
    expect(await queue.take()).toBe("b")
    expect(queue.depth).toBe(0)
    queue.done("a")
    expect(queue.depth).toBe(1)
    expect(await queue.take()).toBe("a")
    queue.done("a")
    expect(queue.depth).toBe(0)
  })

  test("lets start-up events wait for ordinary ones, and promotes", async () => {
    const queue = createQueue({ clock: clock() })
    for (const key of ["old1", "old2", "old3"]) queue.add(key, { background: true })
    queue.add("new")
    queue.add("old2")
    queue.add("new", { background: true }) // does not demote
    expect(await taken(queue, 4)).toEqual(["new", "old2", "old1", "old3"])
  })

  test("a background add in work stays background, an ordinary one beside it does not", async () => {
    const queue = createQueue({ clock: clock() })
    for (const key of ["a", "b"]) queue.add(key)
    await taken(queue, 2)
    queue.add("a", { background: true })
    queue.add("b", { background: true })
    queue.add("b")
    queue.add("b", { background: true })
    queue.done("a")
    queue.done("b")
    expect(await taken(queue, 2)).toEqual(["b", "a"])
  })

  test("hands a key to one waiting taker", async () => {
    const queue = createQueue({ clock: clock() })
    const first = queue.take()
    const second = queue.take()
    queue.add("a")
    queue.add("b")
    expect(await Promise.all([first, second])).toEqual(["a", "b"])
  })

  test("of several delays the earliest counts", async () => {
    const time = clock()
    const queue = createQueue({ clock: time })
    queue.addAfter("a", 1000)
    queue.addAfter("a", 500)
    queue.addAfter("a", 2000)
    await time.advance(499)
    expect(queue.depth).toBe(0)
    await time.advance(1)
    expect(await queue.take()).toBe("a")
    queue.done("a")
    await time.advance(10_000)
    expect(queue.depth).toBe(0)
  })

  test("delays that are replaced often, by earlier ones, end in the order of the earliest", async () => {
    const time = clock()
    const queue = createQueue({ clock: time })
    const keys = Array.from({ length: 50 }, (_, index) => `k${index}`)
    for (let round = 7; round > 0; round--)
      for (const [index, key] of keys.entries()) queue.addAfter(key, 1000 * round + ((index * 37) % 50))
    await time.advance(1050)
    const sorted = keys.toSorted((a, b) => ((Number(a.slice(1)) * 37) % 50) - ((Number(b.slice(1)) * 37) % 50))
    expect(await taken(queue, queue.depth)).toEqual(sorted)
    await time.advance(20_000)
    expect(queue.depth).toBe(0)
  })

  test("backs off 5 ms, 10 ms, … up to five minutes, each key for itself, until forgotten", async () => {
    const time = clock()
    const queue = createQueue({ clock: time })
    const waits: number[] = []
    for (let i = 0; i < 18; i++) {
      const before = time.monotonic()
      queue.addRateLimited("a")
      await time.advance(time.nextAt()! - time.now())
      waits.push(time.monotonic() - before)
      queue.done((await queue.take())!)
    }
    expect(waits.slice(0, 4)).toEqual([5, 10, 20, 40])
    expect(waits.at(-1)).toBe(300_000)
    expect(queue.attempts("a")).toBe(18)
    queue.addRateLimited("b")
    expect(time.nextAt()! - time.now()).toBe(5)
    queue.forget("a")
    queue.addRateLimited("a")
    await time.advance(5)
    expect(await taken(queue, 2)).toEqual(["b", "a"])
  })

  test("waits as long as the server asked", async () => {
    const time = clock()
    const queue = createQueue({ clock: time })
    queue.addRateLimited("a", 7000)
    expect(time.nextAt()).toBe(7000)
  })

  test("shut down: wakes takers, hands out nothing, takes nothing, keeps no timer", async () => {
    const time = clock()
    const queue = createQueue({ clock: time })
    const waiting = queue.take()
    queue.addAfter("late", 1000)
    queue.shutDown()
    expect(await waiting).toBeUndefined()
    for (const key of ["a", "b"]) queue.add(key)
    queue.addAfter("c", 10)
    queue.addRateLimited("d")
    expect(queue.depth).toBe(0)
    expect(time.nextAt()).toBeUndefined()
    expect(await queue.take()).toBeUndefined()
  })

  test("shut down with keys waiting: none of them is handed out", async () => {
    const queue = createQueue({ clock: clock() })
    queue.add("a")
    queue.add("b")
    await queue.take()
    queue.add("a")
    queue.shutDown()
    queue.done("a")
    expect(await queue.take()).toBeUndefined()
  })

  test("ten thousand delayed keys need one timer, and a hundred thousand keys are taken in linear time", async () => {
    const time = clock()
    let timers = 0
    const after = (ms: number, callback: () => void) => {
      timers++
      return time.after(ms, callback)
    }
    const counting = { ...time, after }
    const queue = createQueue({ clock: counting })
    for (let i = 0; i < 10_000; i++) queue.addAfter(`k${i}`, 1000 + ((i * 7919) % 10_000))
    expect(timers).toBe(1) // the first is the earliest
    for (let i = 0; i < 100_000; i++) queue.add(`n${i}`)
    for (let i = 0; i < 100_000; i++) queue.done((await queue.take())!)
    expect(queue.depth).toBe(0)
    await time.advance(11_000)
    expect(queue.depth).toBe(10_000)
  }, 20_000)

  const turns = { of: (key: string) => key.slice(0, key.indexOf("/")), most: 2 }

  test("with turns, however many keys one party has, the others' come in between", async () => {
    const queue = createQueue({ clock: clock(), turns: { ...turns, most: 100 } })
    for (const key of ["a/1", "a/2", "a/3", "a/4", "b/1", "c/1", "b/2"]) queue.add(key)
    expect(await taken(queue, 7)).toEqual(["a/1", "b/1", "c/1", "a/2", "b/2", "a/3", "a/4"])
    expect(queue.depth).toBe(0)
  })

  test("with turns, one party has no more keys in work than its share, and the next when one is done", async () => {
    const queue = createQueue({ clock: clock(), turns })
    for (const key of ["a/1", "a/2", "a/3", "a/4"]) queue.add(key)
    queue.add("b/1", { background: true })
    expect(await taken(queue, 3)).toEqual(["a/1", "a/2", "b/1"])
    const next = queue.take()
    queue.add("a/5")
    expect(queue.depth).toBe(3)
    queue.done("a/2")
    expect(await next).toBe("a/3")
    queue.done("b/1")
    expect(queue.depth).toBe(2)
  })

  test("with turns, twenty thousand parties are served in linear time", async () => {
    const queue = createQueue({ clock: clock(), turns })
    for (let party = 0; party < 20_000; party++) queue.add(`${party}/1`)
    const served: (string | undefined)[] = []
    for (let party = 0; party < 20_000; party++) {
      served.push(await queue.take())
      queue.done(`${party}/1`)
    }
    expect(new Set(served).size).toBe(20_000)
  }, 20_000)

  test("reports to its observer how long keys waited", async () => {
    const time = clock()
    const seen: unknown[] = []
    const queue = createQueue({
      clock: time,
      observer: { added: () => seen.push("added"), taken: ms => seen.push(ms), retried: () => seen.push("retried") },
    })
    queue.add("a", { background: true })
    await time.advance(30)
    queue.add("a")
    await time.advance(12)
    await queue.take()
    queue.addRateLimited("b")
    expect(seen).toEqual(["added", 42, "retried"])
  })
})

/**
 * The model: for each key when it is wanted, found by looking at all of them. Slow, and hard to get wrong.
 */
type Model = {
  now: number
  sequence: number
  waiting: Map<string, { background: boolean; order: number }>
  working: Map<string, { background: boolean; order: number } | undefined>
  delayed: Map<string, { at: number; order: number }>
  attempts: Map<string, number>
}
type Real = { queue: Queue; time: VirtualClock }
type Command = fc.AsyncCommand<Model, Real>

function modelAdd(model: Model, key: string, background: boolean) {
  const order = model.sequence++
  if (model.working.has(key)) {
    const earlier = model.working.get(key)
    model.working.set(key, { background: background && (earlier?.background ?? true), order })
    return
  }
  const known = model.waiting.get(key)
  if (!known || (known.background && !background)) model.waiting.set(key, { background, order })
}

function modelDelay(model: Model, key: string, ms: number) {
  const at = model.now + ms
  const known = model.delayed.get(key)
  if (!known || at < known.at) model.delayed.set(key, { at, order: model.sequence++ })
}

const key = fc.constantFrom("a", "b", "c", "d", "e")
const commands = [
  fc.record({ key, background: fc.boolean() }).map(
    ({ key, background }): Command => ({
      check: () => true,
      async run(model, { queue }) {
        queue.add(key, { background })
        modelAdd(model, key, background)
      },
      toString: () => `add(${key}${background ? ", background" : ""})`,
    }),
  ),
  fc.record({ key, ms: fc.integer({ min: 1, max: 100 }) }).map(
    ({ key, ms }): Command => ({
      check: () => true,
      async run(model, { queue }) {
        queue.addAfter(key, ms)
        modelDelay(model, key, ms)
      },
      toString: () => `addAfter(${key}, ${ms})`,
    }),
  ),
  fc.record({ key, ms: fc.integer({ min: 0, max: 50 }) }).map(
    ({ key, ms }): Command => ({
      check: () => true,
      async run(model, { queue }) {
        queue.addRateLimited(key, ms)
        const failed = model.attempts.get(key) ?? 0
        model.attempts.set(key, failed + 1)
        modelDelay(model, key, Math.max(ms, Math.min(80, 5 * 2 ** failed)))
      },
      toString: () => `addRateLimited(${key}, ${ms})`,
    }),
  ),
  key.map(
    (key): Command => ({
      check: () => true,
      async run(model, { queue }) {
        queue.forget(key)
        model.attempts.delete(key)
      },
      toString: () => `forget(${key})`,
    }),
  ),
  fc.constant<Command>({
    check: model => model.waiting.size > 0,
    async run(model, { queue }) {
      const [want] = [...model.waiting].sort(
        ([, a], [, b]) => Number(a.background) - Number(b.background) || a.order - b.order,
      )[0]!
      expect(await queue.take()).toBe(want)
      model.waiting.delete(want)
      model.working.set(want, undefined)
    },
    toString: () => "take",
  }),
  key.map(
    (key): Command => ({
      check: model => model.working.has(key),
      async run(model, { queue }) {
        queue.done(key)
        const wanted = model.working.get(key)
        model.working.delete(key)
        if (wanted) model.waiting.set(key, { ...wanted, order: model.sequence++ })
      },
      toString: () => `done(${key})`,
    }),
  ),
  fc.integer({ min: 0, max: 120 }).map(
    (ms): Command => ({
      check: () => true,
      async run(model, { time }) {
        await time.advance(ms)
        model.now += ms
        const due = [...model.delayed].filter(([, { at }]) => at <= model.now)
        for (const [key] of due.sort(([, a], [, b]) => a.at - b.at || a.order - b.order)) {
          model.delayed.delete(key)
          modelAdd(model, key, false)
        }
      },
      toString: () => `advance(${ms})`,
    }),
  ),
]

test("behaves as its model: no key twice in work, none lost, priorities in order", async () => {
  await fc.assert(
    fc.asyncProperty(fc.commands(commands, { maxCommands: 60 }), async run => {
      const time = clock()
      const queue = createQueue({ clock: time, backoffMsMax: 80 })
      const model: Model = {
        now: 0,
        sequence: 0,
        waiting: new Map(),
        working: new Map(),
        delayed: new Map(),
        attempts: new Map(),
      }
      await fc.asyncModelRun(() => ({ model, real: { queue, time } }), run)
      expect(queue.depth).toBe(model.waiting.size)
      // Nothing is lost: finish what is in work, let every delay pass, and each key that is wanted comes out once.
      const wanted = new Set([...model.waiting.keys(), ...model.delayed.keys()])
      for (const [key, again] of model.working) {
        queue.done(key)
        if (again) wanted.add(key)
      }
      await time.advance(1000)
      expect(queue.depth).toBe(wanted.size)
      expect(new Set(await taken(queue, wanted.size))).toEqual(wanted)
    }),
    { numRuns: 500 },
  )
}, 60_000)
