// `npm run build`: the bundle. `npm run package`: the npm package around it.
import { execFileSync } from "node:child_process"
import { chmodSync, cpSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { rolldown } from "rolldown"
import { buildPage } from "./dashboard/build.ts"
import { repository } from "./kube/folders.ts"
import { noticesFor } from "./release/notices.ts"

const notices = "THIRD-PARTY-NOTICES.txt"

const help = `Bundles aim and everything it needs into dist/, where bin/aim and the container image take it from.

  npm run build        the bundle
  npm run package      also dist/package, the npm package, packed into dist/autoimagemanager-VERSION.tgz

  --help      this text
`

export type Bundle = {
  folder: string
  /** Relative to the folder; the one to start is aim.js. */
  files: string[]
  bytes: number
}

/** The time that everything which is built says of itself: a build tomorrow has the same bytes. */
export const sourceDate = () => new Date(Number(process.env.SOURCE_DATE_EPOCH ?? 0) * 1000)

const aim = "src/cli/main.ts"

/**
 * Bundles `entry` into `folder` as aim.js and the chunks it loads when they are needed. Needs no package to run. aim has
 * the page of its dashboard beside it, in page/.
 */
export async function bundle(options: { entry?: string; folder?: string } = {}): Promise<Bundle> {
  const { entry = aim, folder = join(repository, "dist") } = options
  const input = { cwd: repository, input: { aim: entry }, platform: "node" } as const
  await using build = await rolldown({ ...input, external: /^node:/ })
  const { output } = await build.generate({
    format: "esm",
    entryFileNames: "[name].js",
    chunkFileNames: "[name]-[hash].js",
    // A stack trace from a user's cluster is worth more than the kilobytes that shorter names would save.
    minify: false,
    comments: { legal: true, annotation: false, jsdoc: false },
  })
  const chunks = output.filter(file => file.type === "chunk")
  const outside = new Set(chunks.flatMap(chunk => [...chunk.imports, ...chunk.dynamicImports]))
  for (const name of outside)
    if (!name.startsWith("node:") && !chunks.some(chunk => chunk.fileName === name))
      throw new Error(`the bundle would need ${name} at run time, which is not installed`)

  mkdirSync(folder, { recursive: true })
  const page = entry === aim ? await pageInto(folder) : { files: [], modules: [] }
  const modules = chunks.flatMap(chunk => chunk.moduleIds)
  const files = new Map(chunks.map(chunk => [chunk.fileName, chunk.code]))
  files.set(notices, noticesFor([...modules, ...page.modules]))
  // The entry is written last, and old files are removed after it: a starting aim finds one complete build.
  for (const [name, text] of [...files].sort(([name]) => (name === "aim.js" ? 1 : -1)))
    writeFileSync(join(folder, name), text)
  for (const name of readdirSync(folder))
    if (name.endsWith(".js") && !files.has(name)) rmSync(join(folder, name), { force: true })

  const names = [...files.keys(), ...page.files].sort()
  return { folder, files: names, bytes: names.reduce((sum, name) => sum + statSync(join(folder, name)).size, 0) }
}

/** Files of an earlier page stay out of the package: its folder is made anew. */
async function pageInto(folder: string) {
  const target = join(folder, "page")
  rmSync(target, { recursive: true, force: true })
  const { files, modules } = await buildPage(target)
  return { files: files.map(name => join("page", name)), modules }
}

/**
 * The npm package, as a folder: the launcher, the bundle, and a manifest of its own without dependencies, because
 * everything is bundled. The repository's manifest would make every user install what is in the bundle already.
 */
export function assemble({ folder, files }: Bundle): string {
  const target = join(folder, "package")
  rmSync(target, { recursive: true, force: true })
  mkdirSync(join(target, "dist"), { recursive: true })
  const { name, version, description, license, type, engines, bin } = JSON.parse(
    readFileSync(join(repository, "package.json"), "utf8"),
  )
  const manifest = { name, version, description, license, type, engines, bin, files: ["NOTICE", "bin", "dist"] }
  writeFileSync(join(target, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`)
  for (const file of ["README.md", "LICENSE", "NOTICE", "bin"])
    cpSync(join(repository, file), join(target, file), { recursive: true })
  for (const file of files) cpSync(join(folder, file), join(target, "dist", file))
  // npm packs permissions as they are, and a strict umask would give a package that only its owner can read.
  for (const entry of readdirSync(target, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    chmodSync(path, statSync(path).mode & 0o100 ? 0o755 : 0o644)
  }
  return target
}

/** Packs it into one file beside the bundle, as `npm publish` would. */
export function pack(built: Bundle): string {
  const packed = execFileSync("npm", ["pack", "--silent", "--pack-destination", built.folder], {
    cwd: assemble(built),
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
  })
  return join(built.folder, packed.trim())
}

async function main() {
  const { values } = parseArgs({ options: { package: { type: "boolean" }, help: { type: "boolean" } } })
  if (values.help) return void process.stdout.write(help)
  const since = performance.now()
  const built = await bundle()
  const seconds = ((performance.now() - since) / 1000).toFixed(1)
  process.stderr.write(`build: ${built.files.length} files, ${(built.bytes / 1e6).toFixed(2)} MB, in ${seconds} s\n`)
  process.stdout.write(`${values.package ? pack(built) : join(built.folder, "aim.js")}\n`)
}

if (import.meta.main)
  await main().catch((error: Error) => {
    process.stderr.write(`build: ${error.message}\n`)
    process.exitCode = "code" in error && String(error.code).startsWith("ERR_PARSE_ARGS") ? 2 : 1
  })
