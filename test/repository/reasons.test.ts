import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { repository } from "#tools/kube/folders.ts"

// A reason that a kind's page lists, and no code reports, is looked for in vain.

const src = join(repository, "src")
const kinds = join(src, "api/v1alpha1")
const code = readdirSync(src, { recursive: true, encoding: "utf8" })
  .filter(name => name.endsWith(".ts") && !/(\.test|reasons)\.ts$/.test(name))
  .map(name => readFileSync(join(src, name), "utf8"))
const words = new Set(code.flatMap(text => text.match(/\b[A-Z][A-Za-z]+\b/g) ?? []))

test("every reason of a kind is reported by some code", async () => {
  const files = readdirSync(kinds, { recursive: true, encoding: "utf8" }).filter(name => name.endsWith("reasons.ts"))
  expect(files.length).toBeGreaterThan(5)
  for (const file of files) {
    const { reasons } = (await import(join(kinds, file))) as { reasons: object }
    const unused = Object.keys(reasons).filter(reason => !words.has(reason))
    expect({ file, unused }).toEqual({ file, unused: [] })
  }
})
