import { isVersion } from "#lib/resource-version.ts"
import { KubeError } from "../client/errors.ts"
import { type Clock, sleep } from "../clock.ts"
import { type KubeObject, keyOf, type Resource } from "../resource.ts"
import type { Projected, Some } from "./cache.ts"
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

/** Versions that a follower has to show, by key, and the version of the server at which they were read. */
type Wanted = { readonly version: string; readonly versions: ReadonlyMap<string, string> }

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
    const read = client.list<KubeObject>(resource, { ...selection, limit: 1 }).then(page => versionIn(page.metadata))
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

  /**
   * The versions of these objects, by their keys, at the version of the list. With the key of none, everything up to that
   * version has to be shown: some are gone, or there are more than a page of them.
   */
  async function listSome({ labelSelector, keys }: Some): Promise<Wanted> {
    const shown = [...keys]
    const of = [selection.labelSelector, labelSelector].filter(each => each !== undefined).join(",")
    const options = { ...selection, labelSelector: of, metadataOnly: true, limit: tuning.pageSize }
    const { items, metadata } = await client.list<KubeObject>(resource, options)
    const version = versionIn(metadata)
    const versions = new Map(items.map(({ metadata: each }) => [keyOf(each), versionIn(each)]))
    const isWhole = !metadata.continue && shown.every(key => versions.has(key))
    return { version, versions: isWhole ? versions : new Map([["", version]]) }
  }

  async function wantedNow(some: Some | undefined): Promise<Wanted> {
    // A longer list would cost the server more than the second that it saves.
    if (some && some.keys.size <= tuning.pageSize) return listSome(some)
    const version = await versionFromNow()
    return { version, versions: new Map([["", version]]) }
  }

  async function wanted(some: Some | undefined, signal: AbortSignal | undefined): Promise<Wanted> {
    for (let attempt = 0; ; attempt++) {
      try {
        return await wantedNow(some)
      } catch (thrown) {
        await sleep(clock, delayMs(tuning, random, attempt, asKubeError(thrown)), signal)
      }
    }
  }

  return async function catchUp(follower: Pick<Store<Projected>, "reached">, signal?: AbortSignal, some?: Some) {
    const { version, versions } = await wanted(some, signal)
    const shown = Promise.all([...versions].map(([key, each]) => follower.reached(key, each, signal)))
    if (await isWithin(clock, promptMs, shown)) return
    hurry(version)
    if (await isWithin(clock, hurriedMs, shown)) return
    listAgain(version)
    await shown
  }
}

function versionIn({ resourceVersion }: { resourceVersion?: string | undefined }): string {
  if (isVersion(resourceVersion)) return resourceVersion
  throw new KubeError("Unreachable", `the list has resourceVersion ${resourceVersion}`)
}

/** Whether the event happens within that time. */
function isWithin(clock: Clock, ms: number, event: Promise<unknown>): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const cancel = clock.after(ms, () => resolve(false))
    event.then(() => resolve(true), reject).finally(cancel)
  })
}
