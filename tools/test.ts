import { parseArgs, stripVTControlCharacters } from "node:util"
import { startVitest, type TestCase, type TestModule, type Vitest } from "vitest/node"

const usage = `Runs the tests.

  npm test                     everything but the long ones: needs root and Go, prepares the rest by itself
  npm run test:unit            those that need nothing but Node and a minute
  npm run test:simulation      stories and random runs over simulated clusters, and what starts programs
  npm run test:browser         the dashboard in a browser: needs Debian and root, installs chromium
  npm run test:changed         of these two, those that import a file that differs from main
  npm run test:long            properties and fault campaigns with many more runs (AIM_RUNS sets how many), and tests on a
                               node with containerd 2.3.5 or with real data planes (*.long.test.ts)

  npm test -- FILE… [-t NAME]  only files whose path contains one of these, only tests whose name matches
  npm run test:unit -- --watch runs again what a change touches

  AIM_SEED=N                   plays one seed of the simulation's random runs and prints every operation of it;
                               AIM_SEED=N-M plays these, such as the rest of a long run
  AIM_FLOORS=N                 how many real clusters run side by side
  AIM_WORKERS=N                how many other tests run at once
`

const suites: Record<string, string[]> = {
  unit: ["unit"],
  simulation: ["simulation"],
  changed: ["unit", "simulation"],
  browser: ["browser"],
  long: ["unit", "simulation", "long"],
  e2e: ["alone", "e2e"],
}
const everything = ["unit", "simulation", "alone", "e2e", "browser"]

const { values, positionals } = readArguments()
if (values.help) {
  process.stdout.write(usage)
  process.exit(0)
}
const [first = ""] = positionals
const named = suites[first] ? positionals.slice(1) : positionals
const projects = suites[first] ?? everything

// The long form of a test is the same test with many more runs: a seed found there fails in the short form too.
const isLong = first === "long"
if (isLong) Object.assign(process.env, { AIM_RUNS: "20000", AIM_ELECTION_RUNS: "5000", ...process.env })
const properties = ["property", "leader", "queue", "fleet", "simulation", "long.test"]
const filters = isLong && named.length === 0 ? properties : named

const { watch = false, update = false, testNamePattern } = values
const options = {
  watch,
  run: !watch,
  update,
  passWithNoTests: true,
  ...(testNamePattern !== undefined && { testNamePattern }),
  ...(first === "changed" && { changed: "main" }),
  ...(isLong && { testTimeout: 3_600_000 }),
}

const onAFloor = suites.e2e!
const isWhole = projects === everything && filters.length === 0 && !watch
const runs = isWhole ? await sideBySide() : [await startVitest(filters, { ...options, project: projects })]

function readArguments() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        help: { type: "boolean", short: "h" },
        testNamePattern: { type: "string", short: "t" },
        update: { type: "boolean", short: "u" },
        watch: { type: "boolean", short: "w" },
      },
    })
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n\n${usage}`)
    process.exit(2)
  }
}

/**
 * Tests on real clusters wait most of the time; the others use the cores meanwhile. First come those that run alone. The
 * others are cut into parts: one at a time while there are clusters, which take most of the cores, then two.
 */
async function sideBySide(): Promise<Vitest[]> {
  const alone = Promise.withResolvers<void>()
  let left = 0
  const isAlone = ({ project }: { project: { name: string } }) => project.name === "alone"
  const progress = {
    onTestRunStart(files: readonly { project: { name: string } }[]) {
      left = files.filter(isAlone).length
      if (left === 0) alone.resolve()
    },
    onTestModuleEnd(module: TestModule) {
      if (isAlone(module) && --left === 0) alone.resolve()
    },
  }
  // Two at a time would draw over each other's progress.
  const lines: ["default", { summary: boolean }] = ["default", { summary: false }]
  const real = startVitest([], { ...options, project: onAFloor, reporters: [lines, progress] })
  await Promise.race([alone.promise, real])
  process.env.AIM_WORKERS ??= "1"
  const shards = Array.from({ length: 4 }, (_, part) => ({ project: ["simulation"], shard: `${part + 1}/4` }))
  const parts = [{ project: ["unit"] }, ...shards]
  const ended: Vitest[] = []
  const work = async () => {
    for (let part = parts.shift(); part; part = parts.shift())
      ended.push(await startVitest([], { ...options, ...part, reporters: [lines] }))
  }
  const [first] = await Promise.all([real, work(), real.then(work)])
  // Last and by itself: what a page shows within a moment is not judged beside clusters.
  const browser = await startVitest([], { ...options, project: ["browser"], reporters: [lines] })
  return [first, ...ended, browser]
}

if (!watch) {
  for (const vitest of runs) await vitest.close()
  const counts: Counts = { passed: 0, failed: 0, skipped: 0, failures: [] }
  for (const vitest of runs) count(vitest, counts)
  const { passed, failed, failures } = counts
  // Of two runs side by side, the first may have printed its own long ago.
  for (const name of failures) process.stdout.write(`FAILED ${name}\n`)
  const isNothing = first !== "changed" && passed + failed + counts.skipped === 0
  if (isNothing) process.stderr.write(`no test file matches ${filters.join(" ")}\n`)
  const skipped = counts.skipped > 0 ? `, ${counts.skipped} skipped` : ""
  process.stdout.write(`\n${passed} passed, ${failed} failed${skipped}\n`)
  process.exit(failed > 0 || isNothing ? 1 : 0)
}

type Counts = { passed: number; failed: number; skipped: number; failures: string[] }

function count({ state }: Vitest, counts: Counts): void {
  for (const module of state.getTestModules()) {
    const failed = [...module.children.allTests("failed")].map(test => ` > ${test.fullName}\n${whyOf(test)}`)
    // A file that does not load, or a suite whose hook throws, runs no test and must not count as none failed.
    if (module.state() === "failed" && failed.length === 0) failed.push("")
    counts.failed += failed.length
    counts.failures.push(...failed.map(name => `${module.relativeModuleId}${name}`))
    for (const test of module.children.allTests()) {
      const { state } = test.result()
      if (state === "passed") counts.passed++
      else if (state !== "failed") counts.skipped++
    }
  }
  counts.failed += state.getUnhandledErrors().length
}

/** Enough to know what happened where only the end of the output is kept. */
function whyOf(test: TestCase): string {
  const words = (test.result().errors ?? []).flatMap(({ message, diff = "" }) => [message, diff])
  const lines = stripVTControlCharacters(words.join("\n")).split("\n")
  return lines
    .filter(line => line.trim() !== "")
    .slice(0, 20)
    .map(line => `  ${line}`)
    .join("\n")
}
