import { describe, expect, test } from "vitest"
import type { ImageRecord } from "../image/record.ts"
import type { PodMark } from "../in-place/marks.ts"
import { isOfUpdate, repairedUntil, standsFor } from "./one-at-a-time.ts"

const now = Date.parse("2026-01-01T00:00:00Z")
const minute = 60_000

describe("an update in place has given a container its image", () => {
  const app = { name: "app", image: "shop/web:2" }
  const mark: PodMark = { operation: "3-ab", from: { app: "shop/web:1" }, to: { app: "shop/web:2" }, was: {}, at: now }
  const rows: Record<string, [given: Parameters<typeof isOfUpdate>, expected: boolean]> = {
    "by its record": [[mark, app], true],
    "but not if it went back": [[{ ...mark, failed: "CrashLoop" }, app], false],
    "but not if it changed another container": [[mark, { ...app, name: "side" }], false],
    "but not if the image is another one": [[mark, { ...app, image: "mirror/web:2" }], false],
    "but not without any": [[undefined, app], false],
  }
  for (const [name, [given, expected]] of Object.entries(rows))
    test(name, () => expect(isOfUpdate(...given)).toBe(expected))
})

const record: ImageRecord = {
  from: "shop/web:1",
  was: { app: "shop/web:1" },
  to: "mirror/web:1",
  reason: "Unreachable",
  operation: "incident-x",
  by: "alternateimagesource/demo",
  at: now - 1000,
}

describe("an update in place leaves a pod to a failover", () => {
  const pods = (image: string, id: string) => new Map([["app", { image, id }]])
  test("that has just changed it", () =>
    expect(repairedUntil(record, pods("mirror/web:1", ""), now)).toBe(record.at + minute))
  test("but not once the container has started", () =>
    expect(repairedUntil(record, pods("mirror/web:1", "c1"), now)).toBeUndefined())
  test("but not for longer than a minute", () =>
    expect(repairedUntil(record, pods("mirror/web:1", ""), now + minute)).toBeUndefined())
  test("but not if the image has changed since", () =>
    expect(repairedUntil(record, pods("shop/web:2", ""), now)).toBeUndefined())
  test("but not for a time that its owner has made up", () =>
    expect(repairedUntil({ ...record, at: now + 60 * minute }, pods("mirror/web:1", ""), now)).toBeUndefined())
})

describe("a container stands for", () => {
  type Row = [image: string, record: Pick<ImageRecord, "was" | "to"> | undefined, expected: string]
  const digest = `@sha256:${"a".repeat(64)}`
  const both = { was: { app: "shop/web:1", side: "shop/side:1" }, to: "mirror/side:1" }
  const rows: Record<string, Row> = {
    "the image of its workload": ["mirror/web:1", record, "shop/web:1"],
    "that image too where a digest was added": [
      `mirror/web:1${digest}`,
      { ...record, to: `mirror/web:1${digest}` },
      "shop/web:1",
    ],
    "that image too where another container was sent elsewhere since": ["mirror/web:1", both, "shop/web:1"],
    "its own where the record is about an earlier one": ["shop/web:2", record, "shop/web:2"],
    "its own where it has left the place of the record, with the same tag": ["other/web:1", record, "other/web:1"],
    "its own without a record": ["shop/web:2", undefined, "shop/web:2"],
    "its own where the record is about another container": [
      "shop/web:2",
      { was: { side: "x/web:2" }, to: "y/web:2" },
      "shop/web:2",
    ],
  }
  for (const [name, [image, given, expected]] of Object.entries(rows))
    test(name, () => expect(standsFor(given, { name: "app", image })).toBe(expected))
  test("no property of JavaScript", () => {
    const was = {} as Record<string, string>
    expect(standsFor({ was, to: "a:1" }, { name: "constructor", image: "a:1" })).toBe("a:1")
  })
})
