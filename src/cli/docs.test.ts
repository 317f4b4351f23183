import { readFileSync } from "node:fs"
import { expect, test } from "vitest"
import { flagsOf } from "./options.ts"
import { commands } from "./tree.ts"

const page = readFileSync(new URL("../../docs/cli.md", import.meta.url), "utf8")

for (const { name, group, options = [] } of commands.filter(command => command.group))
  test(`docs/cli.md explains ${name} and each of its options under ${group}`, () => {
    const chapter = page.split("\n## ").find(part => part.startsWith(`${group}\n`)) ?? ""
    const section = chapter.split("\n### ").find(part => part.startsWith(`aim ${name}\n`)) ?? ""
    expect(section).toContain("```console")
    for (const option of options) expect(section).toContain(`--${flagsOf(option).long}`)
  })
