import { mkdir, readFile, rename, stat, writeFile } from "node:fs/promises"
import { dirname, join, resolve } from "node:path"
import type { Cluster } from "#cluster-sim/index.ts"
import { type Clock, sleep } from "#runtime/clock.ts"
import { Failure } from "./command.ts"

type Saved = ReturnType<Cluster["store"]["dump"]>

/** How much a crash of this process may lose; a clean end loses nothing. */
const saveMs = 5000

const stateFile = (folder: string) => join(folder, "cluster.json")

/** The saved cluster of the folder, or nothing. A file of another program is refused, because saving would replace it. */
export async function loadCluster(folder: string): Promise<Saved | undefined> {
  const file = stateFile(folder)
  const text = await readFile(file, "utf8").catch(error => {
    if (error.code === "ENOENT") return undefined
    throw unusable(folder, error)
  })
  if (text === undefined) return undefined
  const value = parsed(text)
  if (!isSaved(value))
    throw new Failure(
      `--data ${folder}: ${file} is not a saved cluster of aim; move it away to start with an empty one`,
    )
  return value
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null

const isSaved = (value: unknown): value is Saved =>
  isRecord(value) &&
  Number.isSafeInteger(value.revision) &&
  Array.isArray(value.objects) &&
  value.objects.every(
    entry =>
      isRecord(entry) && typeof entry.place === "string" && isRecord(entry.object) && isRecord(entry.object.metadata),
  )

/** Written to a second file and renamed: a reader always finds one complete state, also after a crash. */
export async function saveCluster(cluster: Cluster, folder: string): Promise<void> {
  const file = stateFile(folder)
  try {
    await makeFolder(resolve(folder))
    await writeFile(`${file}.new`, JSON.stringify(cluster.store.dump()))
    await rename(`${file}.new`, file)
  } catch (error) {
    throw unusable(folder, error as Error)
  }
}

/**
 * Step by step, because Node's own `recursive` never returns where the system reports an existing folder as missing,
 * as procfs does.
 */
async function makeFolder(path: string): Promise<void> {
  try {
    await mkdir(path)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (await isFolder(path)) return
    const parent = dirname(path)
    if (code !== "ENOENT" || (await isFolder(parent))) throw error
    await makeFolder(parent)
    await mkdir(path)
  }
}

const isFolder = (path: string) =>
  stat(path).then(
    found => found.isDirectory(),
    () => false,
  )

const unusable = (folder: string, { message }: Error) =>
  new Failure(`--data ${folder}: the cluster cannot be kept there: ${message}`)

/** Saves what has changed, every few seconds until it is aborted. A disk that is full for a while is reported and tried again. */
export async function keepSaving(
  cluster: Cluster,
  folder: string,
  { clock, signal, say }: { clock: Clock; signal: AbortSignal; say(line: string): void },
): Promise<void> {
  let revision = -1
  let reported = ""
  while (!signal.aborted) {
    await sleep(clock, saveMs, signal).catch(() => {})
    if (cluster.store.revision === revision) continue
    const next = cluster.store.revision
    try {
      await saveCluster(cluster, folder)
      revision = next
      reported = ""
    } catch (error) {
      const { message } = error as Error
      if (message !== reported) say(`${message}; retrying every ${saveMs / 1000} s`)
      reported = message
    }
  }
}
