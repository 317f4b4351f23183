import { mkdir, readFile, writeFile } from "node:fs/promises"
import { dirname, relative } from "node:path"
import { boundaryFiles } from "./generate/boundaries.ts"
import { chartFiles } from "./generate/chart/files.ts"
import { cliSamples } from "./generate/cli-samples.ts"
import { crdFiles } from "./generate/crds.ts"
import { decisionIndex } from "./generate/decisions.ts"
import { exampleFiles } from "./generate/examples.ts"
import type { GeneratedFile } from "./generate/file.ts"
import { kindPages } from "./generate/kind-pages.ts"
import { monitoringFiles } from "./generate/monitoring/files.ts"

/** Everything that is derived from the code and kept in the repository. */
const producers: (() => GeneratedFile[] | Promise<GeneratedFile[]>)[] = [
  boundaryFiles,
  chartFiles,
  cliSamples,
  crdFiles,
  () => [decisionIndex()],
  kindPages,
  exampleFiles,
  monitoringFiles,
]

const check = process.argv.includes("--check")
const files = (await Promise.all(producers.map(produce => produce()))).flat()
const stale: GeneratedFile[] = []
for (const file of files) if ((await read(file.path)) !== file.content) stale.push(file)
const names = stale.map(({ path }) => relative(process.cwd(), path))

if (check && stale.length > 0) {
  console.error(
    `These files do not match the code they are generated from:\n  ${names.join("\n  ")}\nRun: npm run generate`,
  )
  process.exitCode = 1
} else if (!check) {
  for (const { path, content } of stale) {
    await mkdir(dirname(path), { recursive: true })
    await writeFile(path, content)
  }
  console.log(stale.length === 0 ? `${files.length} files, none to change` : `wrote ${names.join(", ")}`)
}

/** Undefined for a file that does not exist yet. */
async function read(path: string): Promise<string | undefined> {
  return readFile(path, "utf8").catch(error => {
    if (error.code !== "ENOENT") throw error
    return undefined
  })
}
