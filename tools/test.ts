import { startVitest } from "vitest/node"

const usage = `Runs the tests.

  npm test                 everything but the long ones: needs root and Go, prepares the rest by itself
  npm run test:unit        those that need nothing but Node
  npm run test:long        properties and fault campaigns with many more runs (AIM_RUNS sets how many), and what needs
                           a second real cluster (*.long.test.ts)
  npm test -- FILE…        only files whose path contains one of these

  AIM_SEED=N               plays one seed of the simulation's random runs and prints every operation of it
`

const suites: Record<string, string[]> = { unit: ["unit"], e2e: ["e2e"], long: ["unit", "long"] }
const [first = "", ...rest] = process.argv.slice(2)
if (["-h", "--help"].includes(first)) {
  process.stdout.write(usage)
  process.exit(0)
}
const project = suites[first] ?? ["unit", "e2e"]
const named = suites[first] || first === "" ? rest : [first, ...rest]

// The long form of a test is the same test with many more runs: a seed found there fails in the short form too.
const isLong = first === "long"
if (isLong) Object.assign(process.env, { AIM_RUNS: "20000", AIM_ELECTION_RUNS: "5000", ...process.env })
const properties = ["property", "leader", "queue", "fleet", "simulation", "long.test"]
const filters = isLong && named.length === 0 ? properties : named

const patience = isLong ? { testTimeout: 3_600_000 } : {}
const vitest = await startVitest(filters, { project, run: true, watch: false, ...patience })
await vitest.close()

const counts = { passed: 0, failed: 0, skipped: 0 }
for (const module of vitest.state.getTestModules()) {
  // A file that does not load, or a suite whose hook throws, runs no test and must not count as none failed.
  if (module.state() === "failed" && !module.children.allTests("failed").next().value) counts.failed++
  for (const test of module.children.allTests()) {
    const { state } = test.result()
    if (state === "passed" || state === "failed") counts[state]++
    else counts.skipped++
  }
}
const unhandled = vitest.state.getUnhandledErrors().length
const failed = counts.failed + unhandled
const skipped = counts.skipped > 0 ? `, ${counts.skipped} skipped` : ""
process.stdout.write(`\n${counts.passed} passed, ${failed} failed${skipped}\n`)
process.exit(failed > 0 ? 1 : 0)
