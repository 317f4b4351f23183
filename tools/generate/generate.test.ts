import { execFile } from "node:child_process"
import { readFile } from "node:fs/promises"
import { promisify } from "node:util"
import { expect, test } from "vitest"
import { kinds } from "#api/kinds.ts"
import { parseManifests } from "#api/manifest.ts"
import { validate } from "#api/validate.ts"
import { inRepository, withSections } from "./file.ts"

test("what is generated matches the code", async () => {
  await promisify(execFile)(process.execPath, [inRepository("tools/generate.ts"), "--check"])
})

test("a generated section is replaced, and what people wrote around it stays", () => {
  const page = "before\n<!-- generated: fields -->\nold\n<!-- end -->\nafter\n"
  const once = withSections(page, { fields: "new" })
  expect(once).toBe("before\n<!-- generated: fields -->\n\nnew\n\n<!-- end -->\nafter\n")
  expect(withSections(once, { fields: "new" })).toBe(once)
  expect(() => withSections(page, { reasons: "new" })).toThrow("no place for reasons")
})

for (const kind of kinds)
  test(`the YAML on the page of ${kind.kind} runs`, async () => {
    const page = await readFile(inRepository(`docs/kinds/${kind.singular}.md`), "utf8")
    const examples = [...page.matchAll(/```yaml\n(.*?)```/gs)].flatMap(
      ([, text = ""]) => parseManifests(text).manifests,
    )
    const own = examples.filter(({ value }) => !/"(projectcontour|traefik)[.]io[/]/.test(JSON.stringify(value)))
    expect(own.length).toBeGreaterThan(0)
    for (const { value } of own) expect(validate(kind, value)).toMatchObject({ errors: [], warnings: [] })
  })
