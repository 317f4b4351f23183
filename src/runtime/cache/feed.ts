import { aborted } from "#lib/aborted.ts"
import { compareVersions } from "#lib/resource-version.ts"
import type { Client, WatchEvent } from "../client/client.ts"
import { type FailureKind, KubeError } from "../client/errors.ts"
import { type Clock, sleep } from "../clock.ts"
import type { Logger } from "../log.ts"
import type { Random } from "../random.ts"
import type { Resource } from "../resource.ts"
import type { CacheOptions, Projected, Some } from "./cache.ts"
import { createCatchUp } from "./catch-up.ts"
import { createFollowers, type Follower } from "./followers.ts"
import { createReader, heard, type Position } from "./reader.ts"
import type { Store } from "./store.ts"
import { asKubeError, delayMs, type Tuning, usualTuning } from "./tuning.ts"

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
  catchUp(follower: Pick<Store<Projected>, "reached">, signal?: AbortSignal, some?: Some): Promise<void>
  /** The last error while it is not connected. */
  readonly failure: KubeError | undefined
  /** Milliseconds since the server last sent anything. */
  stalenessMs(): number
}

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
  const { clock, random, log, observer } = deps
  const tuning = { ...usualTuning, ...deps.tuning }
  const followers = createFollowers()
  const position: Position = {
    mustList: true,
    streamIsNext: true,
    isHurried: false,
    watchingSince: undefined,
    silences: 0,
    heardAt: clock.monotonic(),
    failure: undefined,
  }
  const read = createReader({ ...deps, tuning }, resource, selection, position, followers)
  const catchUp = createCatchUp(deps, resource, selection, { tuning, hurry, listAgain })

  let running: { ended: Promise<void>; end: () => void } | undefined
  /** Ends only the present connection. */
  let beginAgain = () => {}

  /** Whether resuming from the present position is pointless after this failure. */
  function isLost(error: KubeError, livedMs: number) {
    // 404: the definition was removed, and would come back as another one. Invalid: the position means nothing.
    if (error.kind === "Gone" || error.kind === "NotFound" || error.kind === "Invalid") return true
    if (error.causes.some(({ reason }) => reason === "ResourceVersionTooLarge")) return true
    // A server whose history was rewritten sends nothing to a watch that is ahead of it.
    if (error.kind === "Unreachable" && livedMs >= tuning.silenceMs) position.silences++
    if (position.silences < silencesMax) return false
    position.silences = 0
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
      await read(connection.signal).catch(thrown => {
        error = asKubeError(thrown)
      })
      signal.removeEventListener("abort", end)
      if (signal.aborted) return
      if (connection.signal.aborted) continue

      const livedMs = position.watchingSince === undefined ? 0 : clock.monotonic() - position.watchingSince
      const wasHealthy = livedMs >= tuning.healthyMs
      if (wasHealthy) {
        attempt = 0
        wasPrompt = false
      }
      // A server that ends every watch at once is in trouble too, and must not be asked in a tight loop.
      if (!error && !wasHealthy) error = new KubeError("Unreachable", `the watch ended after ${Math.round(livedMs)} ms`)
      observer?.onReconnect?.(error?.kind ?? "Ended")
      if (error) {
        position.failure = error
        position.mustList ||= isLost(error, livedMs)
        log?.warn("the watch broke", { kind: error.kind, error: error.message, relist: position.mustList, attempt })
      } else heard(position, clock)

      // A watch that timed out and a 410 (the usual answer after a restart of the server) need no pause, unless they
      // come one after the other.
      wasPrompt = !wasPrompt && (!error || error.kind === "Gone")
      if (!wasPrompt) await sleep(clock, delayMs(tuning, random, attempt++, error), signal).catch(() => {})
    }
  }

  function hurry(version: string) {
    if (position.mustList || position.isHurried || compareVersions(followers.progress, version) >= 0) return
    position.isHurried = true
    beginAgain()
  }

  function listAgain(version: string) {
    if (compareVersions(followers.progress, version) >= 0) return
    log?.warn("the watch does not show what the server has; listing again", { version })
    position.mustList = position.streamIsNext = true
    beginAgain()
  }

  function start() {
    const life = new AbortController()
    position.failure = undefined
    position.heardAt = clock.monotonic()
    const ended = run(life.signal)
    return { ended, end: () => life.abort(new Error("no follower is left")) }
  }

  return {
    async follow(follower, signal) {
      if (signal.aborted) return
      followers.add(follower)
      // A returning sole follower resumes from its last version.
      if (running || !follower.hasSynced) position.mustList = position.streamIsNext = true
      if (running) beginAgain()
      else running = start()
      const { ended, end } = running
      try {
        await Promise.race([ended, aborted(signal)])
      } finally {
        followers.delete(follower)
        if (followers.size === 0) {
          running = undefined
          end()
          await ended
        }
      }
    },
    catchUp,
    get failure() {
      return position.failure
    },
    stalenessMs: () => clock.monotonic() - position.heardAt,
  }
}
