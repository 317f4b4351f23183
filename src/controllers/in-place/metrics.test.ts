import { expect, test } from "vitest"
import { virtualClock } from "#runtime/clock.ts"
import { createMetrics } from "#runtime/metrics.ts"
import { createInPlaceMetrics } from "./metrics.ts"
import type { Snapshot } from "./plan.ts"

const seen = (reason: string, isHeld = true): Snapshot => {
  const workload = { hold: isHeld ? { by: "in-place", generation: 1 } : undefined, note: { reason } }
  return { workload, isListed: true, now: 1000 } as unknown as Snapshot
}

test("a word that was written into the annotation by hand becomes no label", async () => {
  const registry = createMetrics({ clock: virtualClock() })
  const metrics = createInPlaceMetrics(registry, "Deployment")
  const shown = async (name: string) =>
    (await registry.text()).split("\n").filter(line => line.startsWith(`aim_in_place_${name}`) && !line.endsWith(" 0"))
  metrics.looked("shop/web", seen("constructor"), { actions: [] }, undefined)
  expect(await shown("held")).toEqual(['aim_in_place_held{namespace="shop",kind="Deployment",reason="Other"} 1'])
  metrics.looked("shop/web", seen("my-own-words", false), { actions: [] }, undefined)
  expect(await shown("held")).toEqual([])
  expect(await shown("released")).toEqual(['aim_in_place_released_total{kind="Deployment",reason="Other"} 1'])
})

test("the time at a partition is no time of an update", async () => {
  const registry = createMetrics({ clock: virtualClock() })
  const metrics = createInPlaceMetrics(registry, "Deployment")
  const since = async () => {
    const text = await registry.text()
    return /^aim_in_place_oldest_held_timestamp_seconds\{.*\} (\d+)$/m.exec(text)?.[1]
  }
  const look = (reason: string, seconds: number) =>
    metrics.looked("shop/web", { ...seen(reason), now: seconds * 1000 }, { actions: [] }, undefined)
  look("Updating", 100)
  look("Partitioned", 160)
  look("Partitioned", 50_000)
  expect(await since()).toBeUndefined()
  look("Updating", 100_160)
  expect(await since()).toBe("100100")
  look("Partitioned", 100_200)
  look("BudgetSpent", 100_300)
  expect(await since()).toBe("100200")
})

test("an answer of a budget is counted", async () => {
  const registry = createMetrics({ clock: virtualClock() })
  const metrics = createInPlaceMetrics(registry, "Deployment")
  metrics.askedBudget(true)
  metrics.askedBudget(false)
  metrics.askedBudget(false)
  const text = await registry.text()
  expect(text).toContain('aim_in_place_budget_answers_total{kind="Deployment",answer="Allowed"} 1')
  expect(text).toContain('aim_in_place_budget_answers_total{kind="Deployment",answer="Refused"} 2')
})

test("a workload whose surroundings cannot be listed is shown all the same", async () => {
  const registry = createMetrics({ clock: virtualClock() })
  const metrics = createInPlaceMetrics(registry, "Deployment")
  const held = async () => (await registry.text()).split("\n").filter(line => line.startsWith("aim_in_place_held{"))
  const of = (reason: string) => `aim_in_place_held{namespace="shop",kind="Deployment",reason="${reason}"} 1`
  const unlisted = { ...seen("Updating"), isListed: false }
  metrics.looked("shop/web", unlisted, { actions: [] }, undefined)
  expect(await held()).toEqual([of("NotListed")])
  metrics.looked("shop/web", seen("Pulling"), { actions: [] }, undefined)
  // A cache that is behind our own write for a moment changes nothing.
  metrics.looked("shop/web", unlisted, { actions: [] }, undefined)
  expect(await held()).toEqual([of("Pulling")])
  metrics.forget("shop/web")
  expect(await held()).toEqual([])
})
