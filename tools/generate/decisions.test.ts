import { expect, test } from "vitest"
import { indexOf, readRecord } from "./decisions.ts"

const record =
  "# 6. A missing Lease\n\nDate: 2026-01-31. Status: accepted, amended by [decision 18](0018-x.md).\n\n**Context.**"

test("the index has the title, the date and the status of a record", () => {
  expect(indexOf([readRecord("0006-a-missing-lease.md", record)])).toContain(
    "| 6 | [A missing Lease](0006-a-missing-lease.md) | 2026-01-31 | accepted, amended by [decision 18](0018-x.md) |",
  )
})

test.each([
  ["without a date", record.replace("Date: 2026-01-31. ", "")],
  ["without a status", record.replace(/Status.*/, "")],
  ["with a status that is not known", record.replace("accepted", "perhaps")],
  ["with the number of another record", record.replace("# 6.", "# 7.")],
])("a record %s is refused", (_, text) => {
  expect(() => readRecord("0006-a-missing-lease.md", text)).toThrow('0006-a-missing-lease.md: begin with "# 6. TITLE"')
})
