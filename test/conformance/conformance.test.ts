import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest"
import { repository } from "#tools/kube/folders.ts"
import { accepted } from "./accepted.ts"
import { cases } from "./cases/all.ts"
import { difference } from "./harness/diff.ts"
import type { Ground } from "./harness/floor.ts"
import { realGround } from "./harness/grounds.ts"
import { normalise } from "./harness/normalise.ts"
import { prepare } from "./harness/prepare.ts"
import { type Outcome, report } from "./harness/report.ts"
import { runCase } from "./harness/run.ts"
import { simGround } from "./harness/sim.ts"
import { pending } from "./pending.ts"

/**
 * One suite, two floors. `AIM_CONFORMANCE=real` runs the scripts twice on the real one instead: what differs then is
 * chance, and has no place in a transcript.
 */
const isRealTwice = process.env.AIM_CONFORMANCE === "real"

/** Only the cases whose name it matches. */
const only = new RegExp(process.env.AIM_CONFORMANCE_ONLY ?? "")

// Scripts mostly wait, each in its own namespace.
vi.setConfig({ maxConcurrency: 8, testTimeout: 480_000 })

let real: Ground
let other: Ground
const outcomes: Outcome[] = []
const startedAt = Date.now()

beforeAll(async () => {
  real = await realGround()
  other = isRealTwice ? real : await simGround()
  await Promise.all([prepare(real), isRealTwice || prepare(other)])
})

afterAll(async () => {
  const folder = join(repository, ".logs")
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, "conformance.md"), report(outcomes, Date.now() - startedAt))
  await real?.close()
  if (other !== real) await other?.close()
})

describe.concurrent("the two floors answer alike", () => {
  cases.forEach((each, index) => {
    test.skipIf(!only.test(each.name))(each.name, async () => {
      const id = `conf-${String(index).padStart(3, "0")}`
      const ids = [`${id}a`, `${id}b`] as const
      const begun = Date.now()
      // What is known to differ may wait for what never comes.
      const second = each.name in accepted && !isRealTwice ? { ...other, patienceMs: 5000 } : other
      const [said, answered] = await Promise.all([runCase(real, each, ids[0]), runCase(second, each, ids[1])])
      expect(said.trouble, "the real floor follows the script to its end").toBeUndefined()
      const lines = normalise(said, real, each, ids[0])
      const differing = difference(lines, normalise(answered, other, each, ids[1]))
      const { name, area } = each
      outcomes.push({ name, area, differing, lines: lines.length, ms: Date.now() - begun })
      if (isRealTwice) return expect(differing.join("\n")).toBe("")
      if (name in accepted || pending.includes(name))
        return expect(differing, "agrees by now: take it from the list").not.toEqual([])
      expect(differing.join("\n")).toBe("")
    })
  })
})

test("every listed difference is a case's", () => {
  const names = cases.map(({ name }) => name)
  expect(new Set(names).size).toBe(names.length)
  expect([...Object.keys(accepted), ...pending].filter(name => !names.includes(name))).toEqual([])
})

test("the page of limits shows the accepted differences", () => {
  const page = readFileSync(join(repository, "docs/cluster-sim.md"), "utf8")
  const lines = Object.entries(accepted).map(([name, reason]) => `- _${name}_: ${reason}\n`)
  expect(page.slice(page.lastIndexOf("we accept it.\n\n") + "we accept it.\n\n".length)).toBe(lines.join(""))
})
