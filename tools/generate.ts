import { mkdir, readFile, writeFile } from "node:fs/promises"
import { dirname, relative } from "node:path"
import { kindNames } from "#api/names.ts"
import { barrels } from "./generate/barrels.ts"
import type { GeneratedFile } from "./generate/file.ts"

const check = process.argv.includes("--check")
const all: GeneratedFile[] = []
const stale: GeneratedFile[] = []

await settle(barrels(kindNames))
// Only now: what makes the other files imports every kind through the barrels.
const { derived } = await import("./generate/all.ts")
await settle(await derived())

const names = stale.map(({ path }) => relative(process.cwd(), path))
if (!check) console.log(stale.length === 0 ? `${all.length} files, none to change` : `wrote ${names.join(", ")}`)
else if (stale.length > 0) {
  console.error(
    `These files do not match the code they are generated from:\n  ${names.join("\n  ")}\nRun: npm run generate`,
  )
  process.exitCode = 1
}

/** Compares the files and, unless they are only checked, writes those that differ. */
async function settle(files: readonly GeneratedFile[]): Promise<void> {
  for (const file of files) {
    all.push(file)
    if ((await read(file.path)) === file.content) continue
    stale.push(file)
    if (check) continue
    await mkdir(dirname(file.path), { recursive: true })
    await writeFile(file.path, file.content)
  }
}

/** Undefined for a file that does not exist yet. */
async function read(path: string): Promise<string | undefined> {
  return readFile(path, "utf8").catch(error => {
    if (error.code !== "ENOENT") throw error
    return undefined
  })
}
