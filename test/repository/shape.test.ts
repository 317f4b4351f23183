import { readdirSync, readFileSync, statSync } from "node:fs"
import { join, relative } from "node:path"
import { describe, expect, test } from "vitest"

// What makes a path easy to guess and a file easy to read: each controller has the same files, and nothing is too long.

const root = join(import.meta.dirname, "../..")
const linesMost = 500
const functionLinesMost = 150

/** Longer than they may be. This list only shrinks. */
const tooLong = new Set<string>()

function* filesIn(folder: string): Generator<string> {
  for (const name of readdirSync(folder)) {
    const path = join(folder, name)
    if (statSync(path).isDirectory()) yield* filesIn(path)
    else yield path
  }
}

const sources = [...filesIn(join(root, "src"))]
  .filter(path => path.endsWith(".ts") && !path.endsWith(".test.ts") && !/\/recorded\/|\.generated\./.test(path))
  .map(path => ({ path: relative(root, path), lines: readFileSync(path, "utf8").trimEnd().split("\n") }))

/** Functions at the top of a file, each from its first line to the brace that ends it. */
function functionsIn(lines: readonly string[]): { name: string; length: number }[] {
  return lines.flatMap((line, from) => {
    const name = /^(?:export )?(?:async )?(?:function\*? |const )(\w+)/.exec(line)?.[1]
    if (!name || !/[{(]$/.test(line)) return []
    const length = lines.slice(from).findIndex(each => /^[})]/.test(each) && !each.endsWith("{")) + 1
    return [{ name, length }]
  })
}

describe("nothing is too long to read", () => {
  const found = sources.flatMap(({ path, lines }) => [
    ...(lines.length > linesMost ? [path] : []),
    ...functionsIn(lines)
      .filter(({ length }) => length > functionLinesMost)
      .map(({ name }) => `${path} ${name}`),
  ])
  test(`no file of src has more than ${linesMost} lines, no function more than ${functionLinesMost}`, () =>
    expect(found.filter(each => !tooLong.has(each))).toEqual([]))
  test("what is no longer too long is taken off the list", () =>
    expect([...tooLong].filter(each => !found.includes(each))).toEqual([]))
})

describe("every controller has the same files", () => {
  const folders = readdirSync(join(root, "src/controllers")).filter(name =>
    statSync(join(root, "src/controllers", name)).isDirectory(),
  )
  const whole = ["controller.ts", "observe.ts", "plan.ts", "report.ts", "apply.ts", "resources.ts"]
  // A kind that others use, and that does nothing by itself, has its other parts from usable.ts (decision 117).
  const judged = ["controller.ts", "judge.ts"]
  for (const folder of folders)
    test(folder, () => {
      const files = readdirSync(join(root, "src/controllers", folder))
      expect(files).toEqual(expect.arrayContaining(files.includes("judge.ts") ? judged : whole))
    })
})
