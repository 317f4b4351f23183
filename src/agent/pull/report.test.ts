import { expect, test } from "vitest"
import type { NodeImageStatus, TagStatus } from "#api/v1alpha1/nodeimage/index.ts"
import { dueAt } from "./report.ts"

const statusWith = (tags: Partial<TagStatus>[]) =>
  ({ publicKey: "key", imageStatuses: { web: { tags } } }) as unknown as NodeImageStatus
const old = { tag: "v1", version: 1, phase: "Succeeded" } as const
const times = { reportedAt: 0, changedAt: 60_000 }

test.each([
  ["a pull has begun", [old, { tag: "v2", version: 1, phase: "Pulling" }], 65_000],
  ["an image that is there is not asked for any more", [{ tag: "v2", version: 1, phase: "Pulling" }], 65_000],
  ["a pull has ended", [old, { tag: "v2", version: 1, phase: "Succeeded" }], 60_000],
  ["the same image was pulled once more", [{ ...old, version: 2 }], 60_000],
] as [string, Partial<TagStatus>[], number][])("%s: when the status is due", (_, tags, due) => {
  expect(dueAt(statusWith([old]), statusWith(tags), times)).toBe(due)
})

test("the next status waits until the last one is five seconds old", () => {
  const ended = statusWith([old, { tag: "v2", version: 1, phase: "Succeeded" }])
  expect(dueAt(statusWith([old]), ended, { reportedAt: 58_000, changedAt: 60_000 })).toBe(63_000)
})
