import fc from "fast-check"
import { describe, expect, test } from "vitest"
import type { Lane } from "#web/wire.ts"
import { reconnectAfterMs } from "./backoff.ts"
import { imageFields, settingsOf } from "./settings.ts"
import { windowOf } from "./virtual.ts"
import { ago, barOf, clusterTime, counted, grouped, imageParts, laneNotes, spaced, until } from "./words.ts"

const lane: Lane = {
  ...{
    tier: "",
    title: "default tier",
    priority: 0,
    image: "",
    proven: "",
    state: "InProgress",
    total: 10,
    updated: 6,
    upToDate: 4,
  },
  ...{
    unmanaged: 0,
    ignoredFailures: 0,
    isCurrent: true,
    steps: [],
    approval: "NotNeeded",
    failures: [],
    reason: "",
    message: "",
  },
}

test("time in a demo runs faster", () => expect(clusterTime({ time: 1000, speed: 60 }, 500)).toBe(31_000))
test("ages and countdowns", () => {
  expect(ago(0, 190_500)).toBe("3m10s ago")
  expect(ago(5000, 0)).toBe("0s ago")
  expect(ago(undefined, 0)).toBe("")
  expect(until(90_001, 0)).toBe("1m31s")
  expect(until(10, 20)).toBe("a moment")
})
test("words and numbers", () => {
  expect([
    spaced("NotSeenYet"),
    spaced("up to date"),
    grouped(1_234_567),
    counted(1, "object"),
    counted(1200, "object"),
  ]).toEqual(["Not seen yet", "up to date", "1,234,567", "1 object", "1,200 objects"])
})
describe("parts of an image reference", () => {
  const cases: Record<string, ReturnType<typeof imageParts>> = {
    app: { repository: "app", tag: "", digest: "" },
    "localhost:5000/app": { repository: "localhost:5000/app", tag: "", digest: "" },
    "a.example.com:5000/team/app:v2": { repository: "a.example.com:5000/team/app", tag: "v2", digest: "" },
    "app:v2@sha256:0123456789abcdef": { repository: "app", tag: "v2", digest: "sha256:0123456789ab" },
  }
  for (const [image, parts] of Object.entries(cases)) test(image, () => expect(imageParts(image)).toEqual(parts))
})
test("a bar is never longer than itself", () =>
  fc.assert(
    fc.property(fc.nat(50), fc.nat(50), fc.nat(50), fc.nat(50), (total, upToDate, updated, count) => {
      const failures = [{ reason: "", meaning: "", scope: "All" as const, count, message: "", examples: [] }]
      const { done, failed, busy } = barOf({ total, upToDate, updated, failures })
      for (const share of [done, failed, busy]) expect(share).toBeGreaterThanOrEqual(0)
      expect(done + failed + busy).toBeLessThanOrEqual(100.001)
    }),
  ))
test("what a lane says", () => {
  const step = { percent: 25, soakSeconds: 60, state: "Current" as const }
  const notes = laneNotes({ ...lane, steps: [step], soaksUntil: 60_000, unmanaged: 2, approval: "Awaited" }, 0)
  expect(notes).toEqual(["waits for approval", "soaks for 1m more", "2 unmanaged"])
})
describe("what set-image is told", () => {
  const early = { tier: "early", title: "early", image: "a:1", setting: "early=" }
  const rest = { tier: "", title: "default tier", image: "a:1", setting: "" }
  const late = { tier: "late", title: "late", image: "a:1", setting: "" }
  test("tiers that follow the default image share a field", () =>
    expect(imageFields([early, rest, late])).toEqual([
      { setting: "early=", title: "early", image: "a:1" },
      { setting: "", title: "default tier, late", image: "a:1" },
    ]))
  test("an object without tiers has one", () =>
    expect(imageFields([])).toEqual([{ setting: "", title: "Image", image: "" }]))
  const fields = imageFields([early, rest, late])
  test("nothing that is as before", () => expect(settingsOf({ "early=": "a:1 " }, fields)).toEqual([]))
  test("what differs", () => expect(settingsOf({ "early=": "a:2", "": " a:3" }, fields)).toEqual(["early=a:2", "a:3"]))
})
test("pauses grow, and half of each is chance", () => {
  expect([1, 2, 3, 6, 60].map(attempt => reconnectAfterMs(attempt, 0))).toEqual([250, 500, 1000, 5000, 5000])
  expect(reconnectAfterMs(60, 1)).toBe(10_000)
})
test("only rows that can be seen are drawn", () => {
  expect(windowOf({ count: 10_000, height: 30, top: 3000, size: 600 })).toEqual({ first: 92, last: 128 })
  expect(windowOf({ count: 3, height: 30, top: 0, size: 600 })).toEqual({ first: 0, last: 3 })
  expect(windowOf({ count: 3, height: 30, top: 9000, size: 600 })).toEqual({ first: 3, last: 3 })
})
