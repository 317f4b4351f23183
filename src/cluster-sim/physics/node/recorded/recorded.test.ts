import { readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { cases } from "./cases.ts"
import { replay, type Story, story } from "./replay.ts"

const recorded: { cases: Record<string, Story> } = JSON.parse(
  readFileSync(join(import.meta.dirname, "recorded.json"), "utf8"),
)

/** What a busy real kubelet may write in one go, and a calm one in two. */
const merged: Record<string, RegExp> = {
  // The startup probe tells that the sidecar has started a moment before the sync that makes it ready.
  sidecar: /side: running; before: none; restarts 0 started/,
}

const texts = (told: Story["statuses"]) => told.map(({ text }) => text)

describe("a pod lives as on the real kubelet", () => {
  for (const each of cases)
    test(each.name, async () => {
      const real = recorded.cases[each.name]
      if (!real) throw new Error(`${each.name} was never recorded: node tools/record-kubelet.ts ${each.name}`)
      for (const seed of [1, 2]) {
        const lived = story(await replay(each, seed), 1000 * each.seconds)
        const skipped = merged[each.name]
        const statuses = texts(lived.statuses).filter(text => !skipped?.test(text))
        const expected = texts(real.statuses).filter(text => !skipped?.test(text))
        // Waits are drawn by chance (up to half as long again), so of a back-off some more or less may be seen.
        const isWaiting = real.events.some(({ text }) => / BackOff /.test(text))
        const length = isWaiting ? Math.min(statuses.length, expected.length) : expected.length
        expect(isWaiting ? statuses.slice(0, length) : statuses).toEqual(expected.slice(0, length))
        expect(Math.abs(expected.length - statuses.length)).toBeLessThanOrEqual(isWaiting ? 3 : 0)
        expect(texts(lived.events).sort()).toEqual(texts(real.events).sort())
      }
    })
})

/** What tells an update in place from one that is only begun. */
describe("observedGeneration is reported before the old container stops", () => {
  const inPlace = cases.filter(({ name }) =>
    /^in-place-(good|gate|stubborn|pre-stop|one-of-two|two-at-once)$/.test(name),
  )
  const isObserved = (text: string) => /^Running (\S+ )?2\/2 /.test(text)
  const hasRestarted = (text: string) => / restarts [1-9]/.test(text)

  test.each(inPlace)("$name, on both floors", async each => {
    for (const { statuses } of [recorded.cases[each.name] as Story, story(await replay(each), 1000 * each.seconds)]) {
      const first = texts(statuses).find(isObserved)
      expect(first).toBeDefined()
      expect(hasRestarted(first as string)).toBe(false)
      expect(texts(statuses).some(hasRestarted)).toBe(true)
    }
  })
})
