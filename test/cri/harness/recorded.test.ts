import { expect, test } from "vitest"
import { scripts } from "../scripts/all.ts"
import { readRecorded } from "./recorded.ts"

const versions = ["containerd-1.6", "containerd-2.3.5"]

test("the recorded versions differ in the wording of messages only", () => {
  const [older, newer] = versions.map(version =>
    [...readRecorded(version)].map(([name, lines]) => ({ name, lines: lines.filter(line => !/\.said: /.test(line)) })),
  )
  expect(newer).toEqual(older)
})

test("every script has a transcript in every version, and its name is its own", () => {
  const names = scripts.map(({ name }) => name)
  expect(new Set(names).size).toBe(names.length)
  for (const version of versions) {
    const recorded = readRecorded(version)
    expect([...recorded.keys()]).toEqual(names)
    for (const [name, lines] of recorded) expect(lines.length, name).toBeGreaterThan(0)
  }
})
