import { isVersion } from "#lib/resource-version.ts"
import { KubeError } from "../client/errors.ts"
import { type Clock, sleep } from "../clock.ts"
import type { KubeObject, Resource } from "../resource.ts"
import type { Projected } from "./cache.ts"
import type { Feed, FeedDeps, Selection } from "./feed.ts"
import type { Store } from "./store.ts"
import { asKubeError, delayMs, type Tuning } from "./tuning.ts"

/** How long a working watch may take to show a commit. Where nothing changes, it shows nothing. */
const promptMs = 200
/** After this time without the bookmark of a short watch, the objects are listed again. */
const hurriedMs = 5_000

/** What a feed can do for a follower that is behind. */
type Means = {
  tuning: Tuning
  /** Replaces the connection by one that reports soon how far it has come. */
  hurry(version: string): void
  listAgain(version: string): void
}

export function createCatchUp(
  { client, clock, random }: Pick<FeedDeps, "client" | "clock" | "random">,
  resource: Resource,
  selection: Selection,
  { tuning, hurry, listAgain }: Means,
): Feed["catchUp"] {
  /** Reads of the server's version: the one under way, and the one for all requests made since it began. */
  let versionRead: Promise<string> | undefined
  let nextVersionRead: Promise<string> | undefined

  /** A quorum read: at this version the server shows everything that was committed before the read. */
  function readVersion(): Promise<string> {
    const read = client.list<KubeObject>(resource, { ...selection, limit: 1 }).then(page => {
      const version = page.metadata.resourceVersion
      if (!isVersion(version)) throw new KubeError("Unreachable", `the list has resourceVersion ${version}`)
      return version
    })
    const isOver = () => {
      versionRead = nextVersionRead
      nextVersionRead = undefined
    }
    read.then(isOver, isOver)
    return read
  }

  /** A read that begins after this call, shared by all callers that wait for it. */
  function versionFromNow(): Promise<string> {
    if (versionRead) {
      nextVersionRead ??= versionRead.then(readVersion, readVersion)
      return nextVersionRead
    }
    versionRead = readVersion()
    return versionRead
  }

  async function currentVersion(signal: AbortSignal | undefined): Promise<string> {
    for (let attempt = 0; ; attempt++) {
      try {
        return await versionFromNow()
      } catch (thrown) {
        await sleep(clock, delayMs(tuning, random, attempt, asKubeError(thrown)), signal)
      }
    }
  }

  return async function catchUp(follower: Pick<Store<Projected>, "reached">, signal?: AbortSignal) {
    const version = await currentVersion(signal)
    const shown = follower.reached("", version, signal)
    if (await isWithin(clock, promptMs, shown)) return
    hurry(version)
    if (await isWithin(clock, hurriedMs, shown)) return
    listAgain(version)
    await shown
  }
}

/** Whether the event happens within that time. */
function isWithin(clock: Clock, ms: number, event: Promise<void>): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const cancel = clock.after(ms, () => resolve(false))
    event.then(() => resolve(true), reject).finally(cancel)
  })
}
