import { describe, expect, test } from "vitest"
import { formatNote, lostHold, noteBeginning, type WorkloadNote } from "./marks.ts"
import { inPlaceHolder } from "./names.ts"
import { untouched } from "./template.ts"

const note = (reason: string): WorkloadNote => ({
  operation: "7-abc",
  reason,
  message: "",
  touched: untouched,
  from: {},
  to: {},
})

test("a note begins as the policy looks for it", () =>
  expect(formatNote(note("Updating")).startsWith(noteBeginning("7").join(""))).toBe(true))

describe("the hold behind an annotation on a workload with the label", () => {
  const [readable, unreadable] = ['{"by":"canary","generation":3}', "?"]
  const cases: Record<string, { given: Parameters<typeof lostHold>; generation: number | undefined }> = {
    "that can be read is not lost": { given: [readable, note("Updating")], generation: undefined },
    "that cannot be read": { given: [unreadable, note("Completed")], generation: 7 },
    "that cannot be read, without a note": { given: [unreadable, undefined], generation: 0 },
    "that is gone in the middle of an update": { given: [undefined, note("Updating")], generation: 7 },
    "that is gone before the first note": { given: [undefined, undefined], generation: 0 },
    "that is gone after a release: the pause is its owner's": {
      given: [undefined, note("Completed")],
      generation: undefined,
    },
  }
  for (const [name, { given, generation }] of Object.entries(cases))
    test(name, () =>
      expect(lostHold(...given)).toEqual(generation === undefined ? undefined : { by: inPlaceHolder, generation }),
    )
})
