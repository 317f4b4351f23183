import { setImmediate as nextTurn } from "node:timers/promises"
import fc from "fast-check"
import { expect, test } from "vitest"
import { createLimiter, type Limits, LineIsFull } from "./limiter.ts"

/** Work that ends when the test says so. */
function workshop(limits: Limits) {
  const inTurn = createLimiter(limits).run
  const under = new Map<string, () => void>()
  const begun: string[] = []
  return {
    begun,
    under,
    ask: (name: string, owner: string, place = "", signal?: AbortSignal) =>
      inTurn({ owner, place, signal }, async () => {
        begun.push(name)
        await new Promise<void>(resolve => under.set(name, resolve))
        under.delete(name)
      }),
    async end(name: string) {
      under.get(name)!()
      await nextTurn()
    },
  }
}

test("an owner that comes last waits for one round, not for all that others have waiting", async () => {
  const { ask, end, begun } = workshop({ all: 2 })
  for (let at = 0; at < 400; at++) void ask(`a${at}`, "a")
  void ask("b", "b")
  await nextTurn()
  expect(begun).toEqual(["a0", "a1"])
  await end("a0")
  expect(begun.at(-1)).toBe("a2") // a stood in line before b came
  await end("a1")
  expect(begun.at(-1)).toBe("b")
})

test("a place that hangs takes a part of its owner's turns, and leaves a part of the place to others", async () => {
  const { ask, begun } = workshop({ all: 16, owner: 4, place: 3, ownerAtPlace: 2 })
  for (let at = 0; at < 10; at++) void ask(`hangs${at}`, "a", "hung")
  void ask("elsewhere", "a", "well")
  void ask("other", "b", "hung")
  void ask("more", "b", "hung")
  await nextTurn()
  expect(begun).toEqual(["hangs0", "hangs1", "elsewhere", "other"])
})

test("waiting can be given up, and is refused where the line is too long", async () => {
  const { ask, end, begun } = workshop({ all: 1, waiting: 2 })
  void ask("first", "a")
  const gaveUp = new AbortController()
  const given = ask("given up", "a", "", gaveUp.signal)
  void ask("second", "a")
  await expect(ask("too many", "a")).rejects.toThrow(LineIsFull)
  void ask("other", "b")
  gaveUp.abort(new Error("not needed any more"))
  await expect(given).rejects.toThrow("not needed any more")
  await nextTurn()
  await end("first")
  await end(begun.at(-1)!)
  expect(begun.toSorted()).toEqual(["first", "other", "second"])
})

const step = fc.record({
  owner: fc.constantFrom("a", "b", "c"),
  place: fc.constantFrom("x", "y"),
  does: fc.constantFrom("ask", "ask", "end", "give up"),
  which: fc.nat(100),
})

test("limits hold, nothing waits that could begin, and all is done in the end", async () => {
  const limits = { all: 5, owner: 3, place: 4, ownerAtPlace: 2 }
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async steps => {
      const inTurn = createLimiter(limits).run
      type Job = { owner: string; place: string; end: () => void }
      const [active, waiting] = [new Set<Job>(), new Map<Job, AbortController>()]
      const promises: Promise<unknown>[] = []
      const activeOf = (part: Partial<Job>) =>
        [...active].filter(job => Object.entries(part).every(([key, value]) => job[key as keyof Job] === value)).length
      for (const { does, which, owner, place } of steps) {
        if (does === "ask") {
          const job: Job = { owner, place, end: () => {} }
          const giveUp = new AbortController()
          waiting.set(job, giveUp)
          const work = () => {
            waiting.delete(job)
            active.add(job)
            return new Promise<void>(resolve => {
              job.end = () => {
                active.delete(job)
                resolve()
              }
            })
          }
          promises.push(inTurn({ owner, place, signal: giveUp.signal }, work).catch(() => {}))
        } else if (does === "end") [...active][which % (active.size || 1)]?.end()
        else {
          const [job, giveUp] = [...waiting][which % (waiting.size || 1)] ?? []
          if (job) waiting.delete(job)
          giveUp?.abort(new Error("given up"))
        }
        await nextTurn()
        expect(active.size).toBeLessThanOrEqual(limits.all)
        for (const job of active) {
          expect(activeOf({ owner: job.owner })).toBeLessThanOrEqual(limits.owner)
          expect(activeOf({ place: job.place })).toBeLessThanOrEqual(limits.place)
          expect(activeOf({ owner: job.owner, place: job.place })).toBeLessThanOrEqual(limits.ownerAtPlace)
        }
        const couldBegin = (job: Job) =>
          active.size < limits.all &&
          activeOf({ owner: job.owner }) < limits.owner &&
          activeOf({ place: job.place }) < limits.place &&
          activeOf({ owner: job.owner, place: job.place }) < limits.ownerAtPlace
        expect([...waiting.keys()].filter(couldBegin)).toEqual([])
      }
      while (active.size > 0) {
        for (const job of [...active]) job.end()
        await nextTurn()
      }
      expect(waiting.size).toBe(0)
      await Promise.all(promises)
    }),
    { numRuns: 100 },
  )
})
