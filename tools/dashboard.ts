// `tools/run dashboard`: builds the dashboard's page and prints the folder. A clone does so at first use.
import { createHash } from "node:crypto"
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from "node:fs"
import { join } from "node:path"
import { cacheFolder, repository } from "./kube/folders.ts"

type Say = (line: string) => void

/** Everything that a build of the page depends on. */
const inputs = ["src/dashboard", "src/lib", "tools/dashboard.ts", "tools/dashboard", "package-lock.json"]

/**
 * The folder with the built page: index.html and assets. It is built when no build from the same files is in the cache.
 * `stories` is another page, with one component in one state for each address: for tests and pictures.
 */
export async function pageFolder(say: Say = () => {}, options: { stories?: boolean } = {}): Promise<string> {
  const name = options.stories ? "stories" : "page"
  const parent = join(cacheFolder(), "dashboard")
  const folder = join(parent, `${name}-${hashOfInputs()}`)
  if (existsSync(folder)) return folder
  say("building the dashboard's page")
  // A build takes less than a second and always gives the same files: two at once do no harm, and need no lock.
  const unfinished = `${folder}.${process.pid}`
  const { buildPage } = await import("./dashboard/build.ts")
  await buildPage(unfinished, options)
  try {
    renameSync(unfinished, folder)
  } catch (error) {
    rmSync(unfinished, { recursive: true, force: true })
    if (!existsSync(folder)) throw error
  }
  forgetOld(parent, name)
  return folder
}

function hashOfInputs(): string {
  const hash = createHash("sha256")
  const add = (path: string) => {
    const full = join(repository, path)
    if (statSync(full).isDirectory()) for (const name of readdirSync(full).sort()) add(join(path, name))
    else if (!path.endsWith(".test.ts")) hash.update(`\0${path}\0`).update(readFileSync(full))
  }
  inputs.forEach(add)
  return hash.digest("hex").slice(0, 16)
}

/** Keeps the last few: a running server may still read the one before. */
function forgetOld(parent: string, name: string) {
  const kept = readdirSync(parent)
    .filter(entry => entry.startsWith(`${name}-`))
    .map(entry => join(parent, entry))
    .sort((a, b) => statSync(b).mtimeMs - statSync(a).mtimeMs)
  for (const old of kept.slice(4)) rmSync(old, { recursive: true, force: true })
}

if (import.meta.main) process.stdout.write(`${await pageFolder(line => process.stderr.write(`${line}\n`))}\n`)
