import { expect, test } from "vitest"
import { isRefusal, missingFrom, readGuide } from "./guide.ts"

const page = `
Type this.

\`\`\`console
$ aim get
NAME   AGE
web    12s
$ export A=b
\`\`\`

\`\`\`yaml
$ not: a command
\`\`\`

\`\`\`console on=real in=background
$ aim status -w
\`\`\`
`

test("a page is a list of commands, what each prints, and where it is for", () => {
  expect(readGuide(page)).toEqual([
    { command: "aim get", prints: ["NAME   AGE", "web    12s"], line: 5, on: undefined, isBackground: false },
    { command: "export A=b", prints: [], line: 8, on: undefined, isBackground: false },
    { command: "aim status -w", prints: [], line: 16, on: "real", isBackground: true },
  ])
})

test("of a page that is no guide as a whole, one section counts", () => {
  const sections = `${page}\n## Install\n\n\`\`\`console\n$ a\n## no heading\n\`\`\`\n\n## Other\n${page}`
  const steps = readGuide(sections, "Install")
  expect(steps).toEqual([{ command: "a", prints: ["## no heading"], line: 22, on: undefined, isBackground: false }])
})

const cases: Record<string, { printed: string; page: string[]; missing: string[] }> = {
  "columns and times may differ": { printed: "web      1m3s\n", page: ["web    12s"], missing: [] },
  "other lines may stand between": { printed: "a\nx\nb\n", page: ["a", "…", "b"], missing: [] },
  "the order counts": { printed: "b\na\n", page: ["a", "b"], missing: ["b"] },
  "after an ellipsis it does not": { printed: "b\na\n", page: ["a", "…", "b"], missing: [] },
  "a part of a line is not the line": { printed: "web:v2\n", page: ["web:v"], missing: ["web:v"] },
  "an ellipsis stands for anything": { printed: "at http://127.0.0.1:1\n", page: ["at http://…"], missing: [] },
  "other numbers are other numbers": {
    printed: "7/8 up to date\n",
    page: ["8/8 up to date"],
    missing: ["8/8 up to date"],
  },
  "what reads like a pattern is none": { printed: "axb\n", page: ["a.b"], missing: ["a.b"] },
}
for (const [name, { printed, page, missing }] of Object.entries(cases))
  test(name, () => expect(missingFrom(printed, page)).toEqual(missing))

test("refusals and answers are distinguished", () => {
  expect(isRefusal("aim: si/web Halted")).toBe(true)
  expect(isRefusal('The serviceimages "web" is invalid')).toBe(true)
  expect(isRefusal("The default tier (4 objects) goes first")).toBe(false)
})
