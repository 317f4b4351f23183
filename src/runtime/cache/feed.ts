import { aborted } from "#lib/aborted.ts"
import { compareVersions, isVersion, noVersion } from "#lib/resource-version.ts"
import type { Client, WatchEvent } from "../client/client.ts"
import { type FailureKind, isFailure, KubeError } from "../client/errors.ts"
import { type Clock, sleep } from "../clock.ts"
import type { Logger } from "../log.ts"
import { jitter, type Random } from "../random.ts"
import type { KubeObject, Resource } from "../resource.ts"
import type { CacheOptions, Projected } from "./cache.ts"
import type { Store } from "./store.ts"

/** What a feed reports, for metrics. Staleness is read instead: `stalenessMs()`. */
export type FeedObserver = {
  onEvent?(type: WatchEvent<unknown>["type"]): void
  /** A list begins, as a stream or page by page. More than one in the life of a cache means that a watch was lost. */
  onList?(how: "stream" | "pages"): void
  /** A watch ended and will be replaced; `Ended` if the server ended it regularly. */
  onReconnect?(why: FailureKind | "Ended"): void
}

export type FeedDeps = {
  client: Client
  clock: Clock
  random: Random
  log?: Logger | undefined
  observer?: FeedObserver | undefined
  tuning?: Partial<Tuning> | undefined
}

/** Which objects of a resource are read, and how much of them. */
export type Selection = Pick<CacheOptions<Projected>, "namespace" | "labelSelector" | "fieldSelector" | "metadataOnly">

/** Receives everything that the feed reads: a store. */
export type Follower = Pick<
  Store<Projected>,
  "progress" | "hasSynced" | "beginList" | "put" | "remove" | "endList" | "beginWatch" | "bookmark"
>

export type Feed = {
  /**
   * Passes everything to the follower until the signal is aborted. Never rejects for trouble with the server. A late
   * follower triggers a relist, which it needs; the others ignore the repeats.
   */
  follow(follower: Follower, signal: AbortSignal): Promise<void>
  /**
   * Resolves when the follower shows everything that the server had committed when this was called. The version is read
   * from the server, so a watch that is behind or stuck is detected and replaced. Rejects on abort.
   */
  catchUp(follower: Pick<Store<Projected>, "reached">, signal?: AbortSignal): Promise<void>
  /** The last error while it is not connected. */
  readonly failure: KubeError | undefined
  /** Milliseconds since the server last sent anything. */
  stalenessMs(): number
}

type Tuning = {
  /** Ask for the first state as a stream (WatchList) where the server supports it. */
  stream: boolean
  pageSize: number
  /** A watch without a byte for this long is dead: a healthy server sends a bookmark about every minute. */
  silenceMs: number
  backoffMsMin: number
  backoffMsMax: number
  /** A watch that lived for this long was healthy, and the next failure starts a new count. */
  healthyMs: number
}

const usual: Tuning = {
  stream: true,
  pageSize: 500,
  silenceMs: 150_000,
  backoffMsMin: 800,
  backoffMsMax: 30_000,
  healthyMs: 10_000,
}

/** The longest Retry-After that we honour: a server may have meant seconds, or send nonsense. */
const retryAfterMsMax = 120_000
/** So many lists in a row older than a version already seen are no accident: the server was restored from a backup. */
const rewindsMax = 3
/** How long a working watch may take to show a commit. Where nothing changes, it shows nothing. */
const promptMs = 200
/**
 * A server sends a bookmark 2 s before a watch times out, and otherwise about once a minute. So a watch of 3 s reports
 * within some 2 s how far it has come, even where nothing changes.
 */
const hurriedSeconds = 3
/** After this time without the bookmark, the objects are listed again. */
const hurriedMs = 5_000
/** After so many silent watches in a row, resuming does not help, and neither would another attempt. */
const silencesMax = 2

/**
 * The objects of one resource and their changes, read and parsed once for any number of followers. It begins with the
 * present state, then goes on with the changes:
 *
 *   stream (WatchList)   put … put, bookmark "initial events end" → sweep, and the same stream goes on as the watch
 *   pages                list(limit) … list(continue) → sweep → watch from the version of the list
 *
 * The stream is preferred: neither side ever holds more than one object of it, it is consistent by itself, and no token
 * can expire half-way. Pages are for servers that refuse it (it is not on in every version) and for the attempt after a
 * stream that failed. Either way objects are passed on as they arrive, and nothing is removed before the end is known.
 * So a list that fails half-way has only made the followers more recent.
 */
export function createFeed(deps: FeedDeps, resource: Resource, selection: Selection): Feed {
  const { client, clock, random, log, observer } = deps
  const tuning = { ...usual, ...deps.tuning }
  /** A new array for each change: a follower added during a delivery does not receive the rest of it. */
  let followers: readonly Follower[] = []

  let running: { ended: Promise<void>; end: () => void } | undefined
  /** Ends only the present connection. */
  let beginAgain = () => {}
  let failure: KubeError | undefined
  let heardAt = clock.monotonic()
  /** The position to resume from is unknown, or no longer known to the server. */
  let mustList = true
  let streamIsServed = tuning.stream
  let streamIsNext = true
  let rewinds = 0
  let silences = 0
  /** When the present watch finished its list; undefined before. */
  let watchingSince: number | undefined
  /** The next watch is a short one, for the bookmark at its end. */
  let isHurried = false
  /** Reads of the server's version: the one under way, and the one for all requests made since it began. */
  let versionRead: Promise<string> | undefined
  let nextVersionRead: Promise<string> | undefined

  const heard = () => {
    heardAt = clock.monotonic()
    if (!mustList) failure = undefined
  }

  const tell = (how: (follower: Follower) => void) => {
    for (const follower of followers) how(follower)
  }

  /** The newest version that any follower shows; a new follower shows none yet. */
  function progress(): string {
    let most = noVersion
    for (const { progress } of followers) if (compareVersions(progress, most) > 0) most = progress
    return most
  }

  function endList(version: string) {
    mustList = false
    rewinds = 0
    heard()
    tell(follower => follower.endList(version))
  }

  /** A quorum read older than a version already seen comes from a server that is behind, or was restored. */
  function refuseOlder(version: string) {
    if (!isVersion(version))
      throw new KubeError("Unreachable", `the list has resourceVersion ${JSON.stringify(version)}`)
    if (compareVersions(version, progress()) >= 0) return
    rewinds++
    throw new KubeError("Unreachable", `the server is at ${version}, ${progress()} was already seen`)
  }

  async function listPages(signal: AbortSignal) {
    streamIsNext = true
    observer?.onList?.("pages")
    const historyIsNew = rewinds >= rewindsMax
    let version: string | undefined
    let next: string | undefined
    do {
      const page = await client.list<KubeObject>(
        resource,
        { ...selection, limit: tuning.pageSize, ...(next && { continue: next }) },
        signal,
      )
      if (signal.aborted) return
      if (version === undefined) {
        version = page.metadata.resourceVersion
        if (!historyIsNew) refuseOlder(version)
        tell(follower => follower.beginList({ historyIsNew }))
      }
      // Pages of two states are no list: an object that moved behind the cursor between them would be swept.
      if (page.metadata.resourceVersion !== version) throw new KubeError("Gone", "the state changed between two pages")
      for (const item of page.items) tell(follower => follower.put(item))
      heard()
      next = page.metadata.continue
    } while (next)
    endList(version)
  }

  /** Follows the changes until the watch ends; begins with the present state if that is not known yet. */
  async function watch(signal: AbortSignal) {
    const streaming = mustList
    const isShort = isHurried && !streaming
    isHurried = false
    if (streaming) {
      streamIsNext = false
      observer?.onList?.("stream")
      tell(follower => follower.beginList({ historyIsNew: false }))
    } else {
      watchingSince = clock.monotonic()
      tell(follower => follower.beginWatch())
    }
    const events = client.watch<KubeObject>(
      resource,
      {
        ...selection,
        ...(streaming ? { sendInitialEvents: true } : { resourceVersion: progress() }),
        timeoutSeconds: isShort ? hurriedSeconds : 290 + Math.floor(random.next() * 291),
        silenceMs: tuning.silenceMs,
      },
      signal,
    )
    for await (const event of events) {
      if (signal.aborted) return
      silences = 0
      observer?.onEvent?.(event.type)
      take(event)
      heard()
    }
    if (mustList) throw new KubeError("Unreachable", "the stream ended before the end of the list")
    if (isShort && !signal.aborted) await watch(signal)
  }

  function take(event: WatchEvent<KubeObject>) {
    switch (event.type) {
      case "ADDED":
      case "MODIFIED":
        return tell(follower => follower.put(event.object))
      case "DELETED":
        return tell(follower => follower.remove(event.object))
      case "BOOKMARK":
        return takeBookmark(event.object)
      case "ERROR":
        throw errorOf(event.object)
      default:
        log?.warn("an event of an unknown type is skipped", { type: String((event as { type: unknown }).type) })
    }
  }

  function takeBookmark({ metadata }: KubeObject) {
    const version = metadata?.resourceVersion ?? ""
    if (mustList) {
      // A server that sends ordinary bookmarks here did not understand the request.
      if (metadata?.annotations?.["k8s.io/initial-events-end"] !== "true")
        throw new KubeError("Unreachable", "a bookmark came before the end of the list")
      refuseOlder(version)
      streamIsNext = true
      watchingSince = clock.monotonic()
      return endList(version)
    }
    if (!isVersion(version)) return
    if (compareVersions(version, progress()) < 0)
      throw new KubeError("Gone", `the server is at ${version}, ${progress()} was already seen`)
    tell(follower => follower.bookmark(version))
  }

  /** From the present position to the end of one watch. */
  async function connect(signal: AbortSignal): Promise<void> {
    watchingSince = undefined
    const streaming = mustList && streamIsServed && streamIsNext && rewinds < rewindsMax
    if (mustList && !streaming) await listPages(signal)
    if (signal.aborted) return
    try {
      await watch(signal)
    } catch (error) {
      if (!(streaming && mustList && isFailure(error, "Invalid"))) throw error
      streamIsServed = false
      log?.info("the server does not stream lists; listing in pages")
      return connect(signal)
    }
  }

  /** Whether resuming from the present position is pointless after this failure. */
  function isLost(error: KubeError, livedMs: number) {
    // 404: the definition was removed, and would come back as another one. Invalid: the position means nothing.
    if (error.kind === "Gone" || error.kind === "NotFound" || error.kind === "Invalid") return true
    if (error.causes.some(({ reason }) => reason === "ResourceVersionTooLarge")) return true
    // A server whose history was rewritten sends nothing to a watch that is ahead of it.
    if (error.kind === "Unreachable" && livedMs >= tuning.silenceMs) silences++
    if (silences < silencesMax) return false
    silences = 0
    return true
  }

  async function run(signal: AbortSignal) {
    let attempt = 0
    let wasPrompt = false
    while (!signal.aborted) {
      const connection = new AbortController()
      beginAgain = () => connection.abort(new Error("another follower was added"))
      const end = () => connection.abort(signal.reason)
      signal.addEventListener("abort", end, { once: true })
      let error: KubeError | undefined
      await connect(connection.signal).catch(thrown => {
        error = asKubeError(thrown)
      })
      signal.removeEventListener("abort", end)
      if (signal.aborted) return
      if (connection.signal.aborted) continue

      const livedMs = watchingSince === undefined ? 0 : clock.monotonic() - watchingSince
      const wasHealthy = livedMs >= tuning.healthyMs
      if (wasHealthy) {
        attempt = 0
        wasPrompt = false
      }
      // A server that ends every watch at once is in trouble too, and must not be asked in a tight loop.
      if (!error && !wasHealthy) error = new KubeError("Unreachable", `the watch ended after ${Math.round(livedMs)} ms`)
      observer?.onReconnect?.(error?.kind ?? "Ended")
      if (error) {
        failure = error
        mustList ||= isLost(error, livedMs)
        log?.warn("the watch broke", { kind: error.kind, error: error.message, relist: mustList, attempt })
      } else heard()

      // A watch that timed out and a 410 (the usual answer after a restart of the server) need no pause, unless they
      // come one after the other.
      wasPrompt = !wasPrompt && (!error || error.kind === "Gone")
      if (!wasPrompt) await sleep(clock, delayMs(attempt++, error), signal).catch(() => {})
    }
  }

  function delayMs(attempt: number, error: KubeError | undefined) {
    const backoffMs = Math.min(tuning.backoffMsMax, tuning.backoffMsMin * 2 ** Math.min(attempt, 30))
    return Math.max(jitter(random, backoffMs, 0.5), Math.min(error?.retryAfterMs ?? 0, retryAfterMsMax))
  }

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
        await sleep(clock, delayMs(attempt, asKubeError(thrown)), signal)
      }
    }
  }

  /** Replaces the connection by one that reports soon how far it has come. */
  function hurry(version: string) {
    if (mustList || isHurried || compareVersions(progress(), version) >= 0) return
    isHurried = true
    beginAgain()
  }

  function listAgain(version: string) {
    if (compareVersions(progress(), version) >= 0) return
    log?.warn("the watch does not show what the server has; listing again", { version })
    mustList = streamIsNext = true
    beginAgain()
  }

  /** Whether the event happens within that time. */
  function isWithin(ms: number, event: Promise<void>): Promise<boolean> {
    return new Promise((resolve, reject) => {
      const cancel = clock.after(ms, () => resolve(false))
      event.then(() => resolve(true), reject).finally(cancel)
    })
  }

  function start() {
    const life = new AbortController()
    failure = undefined
    heardAt = clock.monotonic()
    const ended = run(life.signal)
    return { ended, end: () => life.abort(new Error("no follower is left")) }
  }

  return {
    async follow(follower, signal) {
      if (signal.aborted) return
      followers = [...followers, follower]
      // A returning sole follower resumes from its last version.
      if (running || !follower.hasSynced) mustList = streamIsNext = true
      if (running) beginAgain()
      else running = start()
      const { ended, end } = running
      try {
        await Promise.race([ended, aborted(signal)])
      } finally {
        followers = followers.filter(other => other !== follower)
        if (followers.length === 0) {
          running = undefined
          end()
          await ended
        }
      }
    },
    async catchUp(follower, signal) {
      const version = await currentVersion(signal)
      const shown = follower.reached("", version, signal)
      if (await isWithin(promptMs, shown)) return
      hurry(version)
      if (await isWithin(hurriedMs, shown)) return
      listAgain(version)
      await shown
    },
    get failure() {
      return failure
    },
    stalenessMs: () => clock.monotonic() - heardAt,
  }
}

function errorOf({ code, reason, message }: { code?: number; reason?: string; message?: string }): KubeError {
  const kind: FailureKind =
    code === 410 || reason === "Expired" || reason === "Gone"
      ? "Gone"
      : code === 404
        ? "NotFound"
        : code === 401 || code === 403
          ? "Forbidden"
          : code === 429
            ? "Throttled"
            : "Unreachable"
  return new KubeError(kind, message ?? "the watch reported an error", { status: code, reason })
}

const asKubeError = (thrown: unknown) =>
  thrown instanceof KubeError ? thrown : new KubeError("Unreachable", String(thrown), { cause: thrown })
