import { execFile } from "node:child_process"
import { cp, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { repository } from "#tools/kube/folders.ts"
import { canaryMutants } from "./canary.ts"
import { failoverMutants } from "./failover.ts"
import { inPlaceMutants } from "./in-place.ts"
import { type Mutant, mutants } from "./mutants.ts"
import { nodeWorkMutants } from "./node-work.ts"
import { operationMutants } from "./operations.ts"
import { preCacheMutants } from "./pre-cache.ts"
import { sideBySideMutants } from "./side-by-side.ts"

// Tests the tests. That each mistake can still be made is looked at always; that it is found, in the long form only.

const isLong = process.env.AIM_RUNS !== undefined

const all: Record<string, Mutant> = {
  ...mutants,
  ...failoverMutants,
  ...operationMutants,
  ...nodeWorkMutants,
  ...preCacheMutants,
  ...inPlaceMutants,
  ...sideBySideMutants,
  ...canaryMutants,
}

/** Where a folder is named, the file in it that has the code. */
async function fileOf({ file, edits }: Mutant): Promise<string> {
  if (file.endsWith(".ts")) return file
  const all = await readdir(join(repository, file), { recursive: true })
  const files = all.filter(each => each.endsWith(".ts") && !each.endsWith(".test.ts")).map(each => join(file, each))
  const sources = await Promise.all(files.map(each => readFile(join(repository, each), "utf8")))
  const found = files.filter((_, index) => edits.every(({ find }) => sources[index]!.includes(find)))
  expect(found, `files of ${file} with ${JSON.stringify(edits[0]!.find)}`).toHaveLength(1)
  return found[0]!
}

for (const [name, mutant] of Object.entries(all))
  test(`can be made: ${name}`, async () => {
    const file = await fileOf(mutant)
    const { edits } = mutant
    const source = await readFile(join(repository, file), "utf8")
    for (const { find } of edits) expect(source.split(find).length - 1, `"${find}" in ${file}`).toBe(1)
  })

const needed = ["src", "test", "tools", "examples", "charts", "package.json", "tsconfig.json", "vitest.config.ts"]

/** Runs the named tests of the simulation on a copy of this repository. Returns what they said if they failed. */
async function failureOf(
  { caughtBy, tests = "test/simulation/serviceimage" }: Pick<Mutant, "caughtBy" | "tests">,
  change: (folder: string) => Promise<void>,
): Promise<string | undefined> {
  const folder = await mkdtemp(join(tmpdir(), "aim-mutant-"))
  try {
    for (const part of needed) await cp(join(repository, part), join(folder, part), { recursive: true })
    await symlink(join(repository, "node_modules"), join(folder, "node_modules"))
    await change(folder)
    const vitest = join(repository, "node_modules/vitest/vitest.mjs")
    const args = [vitest, "run", "--project", "unit", "--project", "simulation", tests, "-t", caughtBy, "--bail", "1"]
    const { VITEST: _, VITEST_POOL_ID: __, VITEST_WORKER_ID: ___, ...outer } = process.env
    const env = { ...outer, AIM_RUNS: "60" } // every fault at every write, and enough random operations
    return await new Promise(resolve => {
      execFile(process.execPath, args, { cwd: folder, env, maxBuffer: 1 << 26, timeout: 600_000 }, (error, out, err) =>
        resolve(error ? `${out}${err}` : undefined),
      )
    })
  } finally {
    await rm(folder, { recursive: true })
  }
}

if (isLong)
  describe("is found by the simulation", () => {
    test("nothing, where there is no mistake", async () => {
      expect(await failureOf({ caughtBy: "withdrawn" }, async () => {})).toBeUndefined()
    })

    for (const [name, mutant] of Object.entries(all))
      test(name, async () => {
        const { edits, caughtBy, tests, says } = mutant
        const file = await fileOf(mutant)
        const said = await failureOf({ caughtBy, tests }, async folder => {
          let source = await readFile(join(folder, file), "utf8")
          for (const { find, replace } of edits) {
            expect(source).toContain(find)
            source = source.replace(find, () => replace)
          }
          await writeFile(join(folder, file), source)
        })
        // A copy that cannot even be loaded proves nothing. Two writers without end never come to another message.
        expect(said).toMatch(
          /S\d|not within|timed out in|to deeply equal|to (not )?(be|have|match|include)|less than|not done/,
        )
        if (says) expect(said).toContain(says)
        process.stdout.write(`${name}: ${said?.match(/Error.{0,6}: (.*)/)?.[1]}\n`)
      })
  })
