import { createHash } from "node:crypto"
import { existsSync, mkdirSync, readFileSync, realpathSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { basename, dirname, join } from "node:path"
import { run } from "../kube/command.ts"
import { cacheFolder } from "../kube/folders.ts"
import { withLock } from "../kube/lock.ts"

export type Architecture = "amd64" | "arm64"

/** What this machine is. */
const ownArchitecture: Architecture = process.arch === "arm64" ? "arm64" : "amd64"

/** As a loader names it in the image, and where it is on this machine. */
type Library = { path: string; from: string }
type DebianPackage = { name: string; version: string }

/** A Node for an image: its program and all that the program needs. */
export type NodeProgram = {
  architecture: Architecture
  version: string
  binary: string
  licence: string
  libraries: Library[]
  /** What the libraries come from. */
  packages: DebianPackage[]
}

type Say = (line: string) => void

/** The Node that runs this, and the libraries that it runs with. */
export async function nodeOfMachine(): Promise<NodeProgram> {
  const binary = process.execPath
  const licence = join(dirname(dirname(binary)), "LICENSE")
  return { architecture: ownArchitecture, version: process.version, binary, licence, ...(await linkedTo(binary)) }
}

/**
 * The Node whose hashes are written in bin/prepare.cjs, for either architecture: two machines make the same image of it.
 * Libraries of the other architecture come from Debian, in the versions that this machine has for its own.
 */
export async function pinnedNode(architecture: Architecture, say: Say): Promise<NodeProgram> {
  const { version, integrity } = pinned()
  const fetch = (each: Architecture) => fetchNode({ version, cpu: cpuOf(each), integrity }, say)
  const own = await linkedTo((await fetch(ownArchitecture)).binary)
  const program = { architecture, version: `v${version}`, ...(await fetch(architecture)), packages: own.packages }
  if (architecture === ownArchitecture) return { ...program, libraries: own.libraries }
  const root = await fetchPackages(architecture, own.packages, say)
  return { ...program, libraries: own.libraries.map(({ path }) => inRoot(root, architecture, path)) }
}

function pinned(): { version: string; integrity: Record<string, string> } {
  const { fallbackNode: version, fallbackIntegrity: integrity } = createRequire(import.meta.url)(
    "../../bin/prepare.cjs",
  )
  return { version, integrity }
}

const cpuOf = (architecture: Architecture) => (architecture === "amd64" ? "x64" : "arm64")

/** `libm.so.6 => /lib/…/libm.so.6 (0x…)` and, for the loader, `/lib64/ld-linux-x86-64.so.2 (0x…)`. */
async function linkedTo(program: string): Promise<Pick<NodeProgram, "libraries" | "packages">> {
  const lines = (await run("ldd", [program])).split("\n")
  const lost = lines.filter(line => line.includes("not found"))
  if (lost.length > 0) throw new Error(`${program} lacks libraries on this machine: ${lost.join(", ")}`)
  const paths = lines.flatMap(line => /(\/\S+) \(0x/.exec(line)?.[1] ?? [])
  const owners = new Set((await Promise.all(paths.map(packageOf))).filter(owner => owner !== undefined))
  const packages = [...owners].sort().map(async name => ({ name, version: await versionOf(name) }))
  return { libraries: paths.map(path => ({ path, from: path })), packages: await Promise.all(packages) }
}

/** The Debian package a library comes from. Half of Debian's records say /usr/lib where the loader says /lib. */
async function packageOf(library: string): Promise<string | undefined> {
  const real = realpathSync(library)
  for (const path of [library, real, real.replace(/^\/usr/, "")]) {
    const owner = await run("dpkg-query", ["--search", path]).catch(() => "")
    if (owner) return owner.split(":")[0]
  }
}

async function versionOf(name: string): Promise<string> {
  const [, version] = /^Version: (.+)$/m.exec(await run("dpkg-query", ["--status", `${name}:${ownArchitecture}`])) ?? []
  if (!version) throw new Error(`dpkg knows no version of ${name}`)
  return version
}

type Wanted = { version: string; cpu: string; integrity: Record<string, string> }

/** From the npm registry, once; a package that has another hash is not unpacked. */
async function fetchNode({ version, cpu, integrity }: Wanted, say: Say): Promise<{ binary: string; licence: string }> {
  const folder = join(cacheFolder(), "node", `${version}-${cpu}`)
  await once(folder, async unfinished => {
    const name = `node-linux-${cpu}`
    say(`fetching ${name} ${version}`)
    const packed = await run("npm", ["pack", "--silent", "--pack-destination", unfinished, `${name}@${version}`])
    const archive = join(unfinished, packed.trim())
    const found = `sha512-${createHash("sha512").update(readFileSync(archive)).digest("base64")}`
    if (found !== integrity[cpu]) throw new Error(`${name} ${version} is ${found}, and ${integrity[cpu]} was expected`)
    const files = ["package/bin/node", "package/LICENSE"]
    await run("tar", ["--extract", "--file", archive, "--directory", unfinished, "--strip-components=1", ...files])
    rmSync(archive)
  })
  return { binary: join(folder, "bin", "node"), licence: join(folder, "LICENSE") }
}

/**
 * Debian packages of another architecture, unpacked into a folder and not installed. apt works on lists of its own, so
 * that this machine does not learn of another architecture.
 */
async function fetchPackages(architecture: Architecture, packages: DebianPackage[], say: Say): Promise<string> {
  const wanted = packages.map(({ name, version }) => `${name}=${version}`)
  const hash = createHash("sha256").update(wanted.join(" ")).digest("hex").slice(0, 16)
  const folder = join(cacheFolder(), "debian", `${architecture}-${hash}`)
  await once(folder, async unfinished => {
    say(`fetching ${wanted.join(", ")} for ${architecture}`)
    const state = join(unfinished, "apt")
    for (const part of ["lists/partial", "archives/partial"]) mkdirSync(join(state, part), { recursive: true })
    writeFileSync(join(state, "status"), "")
    const places = {
      State: state,
      "State::lists": join(state, "lists"),
      "State::status": join(state, "status"),
      Cache: state,
    }
    const options = [
      ...[`APT::Architecture=${architecture}`, `APT::Architectures=${architecture}`],
      ...Object.entries(places).map(([name, path]) => `Dir::${name}=${path}`),
    ].flatMap(option => ["-o", option])
    await run("apt-get", ["-qq", ...options, "update"])
    await run("apt-get", ["-qq", ...options, "download", ...wanted], { cwd: state }).catch(cause => {
      const remedy = "this machine's own may be older than what Debian has: apt-get update && apt-get upgrade"
      throw new Error(`fetching ${wanted.join(", ")} for ${architecture}; ${remedy}`, { cause })
    })
    for (const { name } of packages) {
      const [archive = ""] = (await run("find", [state, "-maxdepth", "1", "-name", `${name}_*.deb`])).trim().split("\n")
      await run("dpkg-deb", ["--extract", archive, unfinished])
    }
    rmSync(state, { recursive: true })
  })
  return folder
}

const triplets = { amd64: "x86_64-linux-gnu", arm64: "aarch64-linux-gnu" }
const loaders = { amd64: "/lib64/ld-linux-x86-64.so.2", arm64: "/lib/ld-linux-aarch64.so.1" }

/** The library of another architecture that has the part of this one. */
function inRoot(root: string, architecture: Architecture, own: string): Library {
  const path =
    own === loaders[ownArchitecture] ? loaders[architecture] : `/lib/${triplets[architecture]}/${basename(own)}`
  const from = [path, `/usr${path}`].map(each => join(root, each)).find(existsSync)
  if (!from) throw new Error(`${path} is in none of the packages that were fetched for ${architecture}`)
  return { path, from }
}

/** Makes a folder that is either whole or not there. */
async function once(folder: string, make: (unfinished: string) => Promise<void>): Promise<void> {
  if (existsSync(folder)) return
  await withLock(
    `${folder}.lock`,
    () => {},
    async () => {
      if (existsSync(folder)) return
      const unfinished = `${folder}.unfinished`
      rmSync(unfinished, { recursive: true, force: true })
      mkdirSync(unfinished, { recursive: true })
      await make(unfinished)
      renameSync(unfinished, folder)
    },
  )
}
