import { readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"

const root = join(import.meta.dirname, "../..")
const text = readFileSync(join(root, "SECURITY.md"), "utf8")
const promises = text
  .split("## What we promise, and where it is checked\n")[1]!
  .split("\n- ")
  .slice(1)
  .map(part => {
    const [sentence = "", ...lines] = part.split("\n")
    return { sentence, checks: lines.filter(line => line.startsWith("  - ")) }
  })

test("there are promises", () => expect(promises.length).toBeGreaterThan(5))

for (const { sentence, checks } of promises)
  test(`${sentence.split(".")[0]}: is checked by tests that exist`, () => {
    expect(checks.length).toBeGreaterThan(0)
    for (const check of checks) {
      const [, file = "", title = ""] = /^ {2}- `([^`]+[.]test[.]ts)`: (.+)$/.exec(check) ?? []
      expect(readFileSync(join(root, file), "utf8")).toContain(`test("${title}"`)
    }
  })
