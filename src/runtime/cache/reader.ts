import { compareVersions, isVersion } from "#lib/resource-version.ts"
import type { WatchEvent } from "../client/client.ts"
import { type FailureKind, isFailure, KubeError } from "../client/errors.ts"
import type { Clock } from "../clock.ts"
import type { KubeObject, Resource } from "../resource.ts"
import type { FeedDeps, Selection } from "./feed.ts"
import type { Followers } from "./followers.ts"
import type { Tuning } from "./tuning.ts"

/** Where a feed stands: what one connection leaves to the next. */
export type Position = {
  /** The position to resume from is unknown, or no longer known to the server. */
  mustList: boolean
  streamIsNext: boolean
  /** The next watch is a short one, for the bookmark at its end. */
  isHurried: boolean
  /** When the present watch finished its list; undefined before. */
  watchingSince: number | undefined
  /** How many watches in a row the server sent nothing to. */
  silences: number
  /** When the server last sent anything. */
  heardAt: number
  /** The last error while it is not connected. */
  failure: KubeError | undefined
}

/** The server has sent something. */
export function heard(position: Position, clock: Clock): void {
  position.heardAt = clock.monotonic()
  if (!position.mustList) position.failure = undefined
}

/** So many lists in a row older than a version already seen are no accident: the server was restored from a backup. */
const rewindsMax = 3
/**
 * A server sends a bookmark 2 s before a watch times out, and otherwise about once a minute. So a watch of 3 s reports
 * within some 2 s how far it has come, even where nothing changes.
 */
const hurriedSeconds = 3

/** Returns the function that reads from the present position to the end of one watch. */
export function createReader(
  { client, clock, random, log, observer, tuning }: FeedDeps & { tuning: Tuning },
  resource: Resource,
  selection: Selection,
  position: Position,
  followers: Followers,
) {
  let streamIsServed = tuning.stream
  let rewinds = 0

  function endList(version: string) {
    position.mustList = false
    rewinds = 0
    heard(position, clock)
    followers.endList(version)
  }

  /** A quorum read older than a version already seen comes from a server that is behind, or was restored. */
  function refuseOlder(version: string) {
    if (!isVersion(version))
      throw new KubeError("Unreachable", `the list has resourceVersion ${JSON.stringify(version)}`)
    const { progress } = followers
    if (compareVersions(version, progress) >= 0) return
    rewinds++
    throw new KubeError("Unreachable", `the server is at ${version}, ${progress} was already seen`)
  }

  async function listPages(signal: AbortSignal) {
    position.streamIsNext = true
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
        followers.beginList({ historyIsNew })
      }
      // Pages of two states are no list: an object that moved behind the cursor between them would be swept.
      if (page.metadata.resourceVersion !== version) throw new KubeError("Gone", "the state changed between two pages")
      for (const item of page.items) followers.put(item)
      heard(position, clock)
      next = page.metadata.continue
    } while (next)
    endList(version)
  }

  /** Follows the changes until the watch ends; begins with the present state if that is not known yet. */
  async function watch(signal: AbortSignal) {
    const streaming = position.mustList
    const isShort = position.isHurried && !streaming
    position.isHurried = false
    if (streaming) {
      position.streamIsNext = false
      observer?.onList?.("stream")
      followers.beginList({ historyIsNew: false })
    } else {
      position.watchingSince = clock.monotonic()
      followers.beginWatch()
    }
    const events = client.watch<KubeObject>(
      resource,
      {
        ...selection,
        ...(streaming ? { sendInitialEvents: true } : { resourceVersion: followers.progress }),
        timeoutSeconds: isShort ? hurriedSeconds : 290 + Math.floor(random.next() * 291),
        silenceMs: tuning.silenceMs,
      },
      signal,
    )
    for await (const event of events) {
      if (signal.aborted) return
      position.silences = 0
      observer?.onEvent?.(event.type)
      take(event)
      heard(position, clock)
    }
    if (position.mustList) throw new KubeError("Unreachable", "the stream ended before the end of the list")
    if (isShort && !signal.aborted) await watch(signal)
  }

  function take(event: WatchEvent<KubeObject>) {
    switch (event.type) {
      case "ADDED":
      case "MODIFIED":
        return followers.put(event.object)
      case "DELETED":
        return followers.remove(event.object)
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
    if (position.mustList) {
      // A server that sends ordinary bookmarks here did not understand the request.
      if (metadata?.annotations?.["k8s.io/initial-events-end"] !== "true")
        throw new KubeError("Unreachable", "a bookmark came before the end of the list")
      refuseOlder(version)
      position.streamIsNext = true
      position.watchingSince = clock.monotonic()
      return endList(version)
    }
    if (!isVersion(version)) return
    const { progress } = followers
    if (compareVersions(version, progress) < 0)
      throw new KubeError("Gone", `the server is at ${version}, ${progress} was already seen`)
    followers.bookmark(version)
  }

  return async function read(signal: AbortSignal): Promise<void> {
    position.watchingSince = undefined
    const streaming = position.mustList && streamIsServed && position.streamIsNext && rewinds < rewindsMax
    if (position.mustList && !streaming) await listPages(signal)
    if (signal.aborted) return
    try {
      await watch(signal)
    } catch (error) {
      if (!(streaming && position.mustList && isFailure(error, "Invalid"))) throw error
      streamIsServed = false
      log?.info("the server does not stream lists; listing in pages")
      return read(signal)
    }
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
