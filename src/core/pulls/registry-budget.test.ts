import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { RegistryBudget } from "./registry-budget.ts"

const host = "registry.example.com"
const job = (key: string, priority = 0) => ({ key, namespace: key.split("/")[0]!, priority })

function budgetOf(limit: number) {
  const woken: string[] = []
  return { budget: new RegistryBudget(limit, key => woken.push(key)), woken }
}

test("one job alone gets as much as there is", () => {
  const { budget } = budgetOf(3)
  expect(budget.ask(host, job("a/1"), 2, 0)).toBe(2)
  expect(budget.ask(host, job("a/1"), 9, 0)).toBe(3)
})

test("an ended pull goes to the job that waits", () => {
  const { budget, woken } = budgetOf(1)
  budget.ask(host, job("a/1"), 1, 0)
  budget.use(host, "node-1", "a/1")
  expect(budget.ask(host, job("b/1"), 1, 0)).toBe(0)
  budget.release(host, "node-1", 0)
  expect(woken).toEqual(["b/1"])
  expect(budget.ask(host, job("a/1"), 1, 0)).toBe(0)
  expect(budget.ask(host, job("b/1"), 1, 0)).toBe(1)
})

test("a namespace with many jobs gets no more than another with one", () => {
  const { budget, woken } = budgetOf(4)
  for (const id of ["1", "2", "3", "4"]) budget.use(host, id)
  for (const name of ["a/1", "a/2", "a/3", "a/4", "a/5"]) budget.ask(host, job(name), 5, 0)
  budget.ask(host, job("b/1"), 5, 0)
  for (const id of ["1", "2", "3", "4"]) budget.release(host, id, 0)
  expect(woken).toEqual(["a/1", "b/1", "a/1", "b/1"])
})

test("within a namespace the highest priority goes first", () => {
  const { budget, woken } = budgetOf(1)
  budget.use(host, "1")
  budget.ask(host, job("a/low"), 1, 0)
  budget.ask(host, job("a/high", 5), 1, 0)
  budget.release(host, "1", 0)
  expect(woken).toEqual(["a/high"])
})

test("what a job was granted and does not want any more is given on", () => {
  const { budget, woken } = budgetOf(1)
  expect(budget.ask(host, job("a/1"), 1, 0)).toBe(1)
  expect(budget.ask(host, job("b/1"), 1, 0)).toBe(0)
  budget.leave(host, job("a/1"), 0)
  expect(woken).toEqual(["b/1"])
})

describe("a registry that refuses pulls", () => {
  test("gets half as many, once for refusals that come together, and gradually more again", () => {
    const { budget } = budgetOf(20)
    budget.slowDown(host, 0)
    budget.slowDown(host, 5000)
    expect(budget.limit(host, 5000)).toBe(10)
    expect(budget.risesAt(host, 5000)).toBe(30_000)
    expect(budget.limit(host, 30_000)).toBe(11)
    budget.slowDown(host, 30_000)
    expect(budget.limit(host, 30_000)).toBe(5)
    expect(budget.limit(host, 30_000 + 15 * 30_000)).toBe(20)
    expect(budget.risesAt(host, 30_000 + 15 * 30_000)).toBeUndefined()
  })

  test("is never left without any", () => {
    const { budget } = budgetOf(1)
    budget.slowDown(host, 0)
    expect(budget.limit(host, 0)).toBe(1)
  })
})

type Step =
  | { do: "ask"; job: number; wants: number }
  | { do: "use" | "leave"; job: number }
  | { do: "release"; index: number }
  | { do: "slowDown" | "pass" }

const steps = fc.array(
  fc.oneof(
    fc.record({ do: fc.constant("ask" as const), job: fc.nat(5), wants: fc.nat(4) }),
    fc.record({ do: fc.constantFrom("use" as const, "leave" as const), job: fc.nat(5) }),
    fc.record({ do: fc.constant("release" as const), index: fc.nat(9) }),
    fc.record({ do: fc.constantFrom("slowDown" as const, "pass" as const) }),
  ),
  { maxLength: 80 },
)

test("S16: granted and used together never pass the limit, and no pull is left over while a job waits", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 5 }), steps, (limit, list: Step[]) => {
      const granted = new Map<string, number>()
      const wants = new Map<string, number>()
      const used: string[] = []
      let now = 0
      let next = 0
      const budget = new RegistryBudget(limit, key => {
        granted.set(key, (granted.get(key) ?? 0) + 1)
        wants.set(key, wants.get(key)! - 1)
      })
      for (const step of list) {
        const key = "job" in step ? `${step.job % 3}/${step.job}` : ""
        const before = budget.limit(host, now)
        if (step.do === "ask" || step.do === "leave") {
          const wanted = step.do === "ask" ? step.wants : 0
          wants.set(key, wanted)
          const given = budget.ask(host, job(key), wanted, now)
          granted.set(key, given)
          wants.set(key, wanted - given)
        } else if (step.do === "use" && (granted.get(key) ?? 0) > 0) {
          granted.set(key, granted.get(key)! - 1)
          used.push(`pull-${next}`)
          budget.use(host, `pull-${next++}`, key)
        } else if (step.do === "release" && used.length > 0) {
          budget.release(host, used.splice(step.index % used.length, 1)[0]!, now)
        } else if (step.do === "slowDown") budget.slowDown(host, now)
        else if (step.do === "pass") now += 31_000
        const inUse = used.length + [...granted.values()].reduce((sum, each) => sum + each, 0)
        const waiting = [...wants.values()].reduce((sum, each) => sum + each, 0)
        expect(budget.inFlight(host)).toBe(used.length)
        // A limit that was lowered takes effect as pulls end.
        if (step.do === "ask" || step.do === "use") expect(inUse <= Math.max(limit, before)).toBe(true)
        if (step.do === "ask" && waiting > 0) expect(inUse).toBeGreaterThanOrEqual(budget.limit(host, now))
      }
    }),
  )
})
