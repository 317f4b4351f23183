import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Hierarchy } from "./orders.ts"
import { isAlive, mark, type ProcessMark } from "./processes.ts"

/** What is written down about a running cluster, so that a later process can tell whether it still runs. */
type Owner = { owner: ProcessMark; sandbox?: ProcessMark; groups: string[] }

const prefix = "aim-cluster-"
const ownerFile = (folder: string) => join(folder, "owner.json")

/** A folder for everything one cluster keeps: short, because unix socket paths must stay below 108 bytes. */
export function makeStateFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), prefix))
  mkdirSync(join(folder, "logs"))
  return folder
}

export function writeOwner(folder: string, hierarchies: Hierarchy[], sandboxPid?: number): void {
  const groups = hierarchies.map(({ group }) => group)
  const owner: Owner = { owner: mark(process.pid), ...(sandboxPid ? { sandbox: mark(sandboxPid) } : {}), groups }
  // Renamed into place, because another process that looks for leftovers may read it at any moment.
  const unfinished = `${ownerFile(folder)}.unfinished`
  writeFileSync(unfinished, JSON.stringify(owner))
  renameSync(unfinished, ownerFile(folder))
}

/** Takes away what a cluster leaves when all its processes are gone: its cgroups and its folder. */
export async function removeState(folder: string, groups: string[]): Promise<void> {
  for (const group of groups) await removeGroup(group)
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
}

/** Finds clusters whose process was killed and removes what is left of them. Gives their folders. */
export async function removeLeftovers(): Promise<string[]> {
  const removed: string[] = []
  for (const folder of stateFolders()) {
    const left = readOwner(folder)
    if (left ? isAlive(left.owner) : isYoung(folder)) continue
    // The sandbox ends by itself when its owner does; this is for one that hangs.
    if (left?.sandbox) await end(left.sandbox)
    await removeState(folder, left?.groups ?? [])
    removed.push(folder)
  }
  return removed
}

async function end(sandbox: ProcessMark) {
  if (isAlive(sandbox)) process.kill(sandbox.pid, "SIGKILL")
  while (isAlive(sandbox)) await new Promise(resolve => setTimeout(resolve, 20))
}

function stateFolders(): string[] {
  return readdirSync(tmpdir())
    .filter(name => name.startsWith(prefix))
    .map(name => join(tmpdir(), name))
}

/** Undefined where there is none, or where its cluster ends at this very moment. */
function readOwner(folder: string): Owner | undefined {
  try {
    return JSON.parse(readFileSync(ownerFile(folder), "utf8"))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined
    throw error
  }
}

/** A folder without an owner is one that is being made right now, or one whose maker did not get far. */
function isYoung(folder: string): boolean {
  const seen = statSync(folder, { throwIfNoEntry: false })
  return seen === undefined || Date.now() - seen.mtimeMs < 60_000
}

/** Deepest first. A group stays busy for a moment after its last process ended. */
async function removeGroup(group: string): Promise<void> {
  for (const inner of innerGroups(group)) await removeGroup(inner)
  for (let attempt = 0; ; attempt++) {
    try {
      return rmdirSync(group)
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code === "ENOENT") return
      if (code !== "EBUSY" || attempt === 100) throw new Error(`removing cgroup ${group}`, { cause: error })
      await new Promise(resolve => setTimeout(resolve, 20))
    }
  }
}

function innerGroups(group: string): string[] {
  if (!existsSync(group)) return []
  const entries = readdirSync(group, { withFileTypes: true })
  return entries.filter(entry => entry.isDirectory()).map(entry => join(group, entry.name))
}
