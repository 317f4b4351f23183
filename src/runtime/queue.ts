import { Heap } from "#lib/heap.ts"
import type { Clock } from "./clock.ts"

/**
 * The objects that need another look: keys only, each at most once in the queue and at most once in work. A key added
 * while it is in work is looked at again afterwards (dirty/processing, as in client-go's workqueue).
 */
export type Queue = {
  /** Background keys (start-up events) are taken only when no ordinary one waits; an ordinary add promotes. */
  add(key: string, options?: { background?: boolean }): void
  /** After `ms`; of several delays for one key the earliest counts. */
  addAfter(key: string, ms: number): void
  /** With exponential back-off per key, or after `atLeastMs` if that is longer. */
  addRateLimited(key: string, atLeastMs?: number): void
  /** Ends the back-off of a key, after a success. */
  forget(key: string): void
  /** How often the key was added rate limited since it was last forgotten. */
  attempts(key: string): number
  /** The next key, or undefined once the queue is shut down. */
  take(): Promise<string | undefined>
  /** Must follow every take. */
  done(key: string): void
  /** Accepts no more keys, returns none, and wakes the takers. Keys in work are finished by their takers. */
  shutDown(): void
  /** Keys that wait to be taken, without those that wait for a time. */
  readonly depth: number
}

/** Receives what happens in a queue, for its metrics. */
export type QueueObserver = {
  added(): void
  taken(waitedMs: number): void
  retried(): void
}

export type QueueOptions = {
  clock: Clock
  observer?: QueueObserver
  backoffMsBase?: number
  backoffMsMax?: number
  turns?: Turns | undefined
}

/** Parties that share a queue: each has its turn, however many keys the others have. */
export type Turns = {
  of(key: string): string
  /** How many keys of one party may be in work at once. */
  most: number
}

/**
 * The first retry is after 5 ms, because most failures are a cache that is a moment behind. Retries are at most five
 * minutes apart: a hopeless object costs twelve looks an hour, and a fix waits five minutes at worst (client-go:
 * seventeen).
 */
export function createQueue(options: QueueOptions): Queue {
  const { clock, observer, backoffMsBase = 5, backoffMsMax = 5 * 60_000 } = options
  const { turns = noTurns } = options
  const working = new Set<string>()
  /** How many keys of each party are in work. */
  const busy = new Map<string, number>()
  const isFree = (party: string) => (busy.get(party) ?? 0) < turns.most
  const ordinary = createLines(turns, isFree)
  const background = createLines(turns, isFree)
  /** Keys added while in work, which `done` will queue, and whether they can wait. */
  const again = new Map<string, { background: boolean; at: number }>()
  const attempts = new Map<string, number>()
  const takers: ((key: string | undefined) => void)[] = []
  const delays = createDelays(clock, key => add(key))
  let down = false

  function add(key: string, { background: canWait = false } = {}) {
    if (down) return
    const now = clock.monotonic()
    if (working.has(key)) {
      const earlier = again.get(key)
      if (!earlier) observer?.added()
      again.set(key, { background: canWait && (earlier?.background ?? true), at: earlier?.at ?? now })
      return
    }
    if (ordinary.has(key)) return
    const waitsSince = background.since(key)
    if (waitsSince === undefined) observer?.added()
    else if (canWait) return
    else background.remove(key)
    put(key, canWait, waitsSince ?? now)
  }

  function put(key: string, canWait: boolean, since: number) {
    const line = canWait ? background : ordinary
    line.append(key, since)
    serve()
  }

  function serve() {
    while (takers.length > 0) {
      const key = hand()
      if (key === undefined) return
      takers.shift()!(key)
    }
  }

  function hand(): string | undefined {
    const next = ordinary.shift() ?? background.shift()
    if (!next) return undefined
    working.add(next.key)
    const party = turns.of(next.key)
    busy.set(party, (busy.get(party) ?? 0) + 1)
    observer?.taken(clock.monotonic() - next.since)
    return next.key
  }

  return {
    add,
    addAfter(key, ms) {
      if (down) return
      if (ms <= 0) add(key)
      else delays.add(key, ms)
    },
    addRateLimited(key, atLeastMs = 0) {
      if (down) return
      const failed = attempts.get(key) ?? 0
      attempts.set(key, failed + 1)
      observer?.retried()
      delays.add(key, Math.max(atLeastMs, Math.min(backoffMsMax, backoffMsBase * 2 ** failed)))
    },
    forget: key => void attempts.delete(key),
    attempts: key => attempts.get(key) ?? 0,
    take() {
      if (down) return Promise.resolve(undefined)
      const key = hand()
      return key === undefined ? new Promise(resolve => takers.push(resolve)) : Promise.resolve(key)
    },
    done(key) {
      if (!working.delete(key)) return
      const party = turns.of(key)
      const left = (busy.get(party) ?? 1) - 1
      if (left > 0) busy.set(party, left)
      else busy.delete(party)
      const wanted = again.get(key)
      again.delete(key)
      if (wanted) put(key, wanted.background, wanted.at)
      else serve()
    },
    shutDown() {
      down = true
      delays.clear()
      for (const taker of takers.splice(0)) taker(undefined)
    },
    get depth() {
      return ordinary.size + background.size
    },
  }
}

const noTurns: Turns = { of: () => "", most: Number.POSITIVE_INFINITY }

/** A line for each party. After its turn, a party waits until the others had theirs. */
function createLines({ of }: Turns, isFree: (party: string) => boolean) {
  const lines = new Map<string, ReturnType<typeof createLine>>()
  const front = lines.entries() // the same for as long as the queue lives, as in a line
  const lineOf = (key: string) => lines.get(of(key))
  let size = 0
  return {
    has: (key: string) => lineOf(key)?.has(key) ?? false,
    since: (key: string) => lineOf(key)?.since(key),
    append(key: string, since: number) {
      const line = lineOf(key) ?? createLine()
      lines.set(of(key), line)
      line.append(key, since)
      size++
    },
    remove(key: string) {
      const line = lineOf(key)
      if (!line?.has(key)) return
      line.remove(key)
      size--
      if (line.size === 0) lines.delete(of(key))
    },
    shift(): { key: string; since: number } | undefined {
      for (let tries = lines.size; tries > 0; tries--) {
        const [party, line] = front.next().value!
        lines.delete(party) // and back at the end: all that is in the map lies ahead
        const next = isFree(party) ? line.shift() : undefined
        if (line.size > 0) lines.set(party, line)
        if (!next) continue
        size--
        return next
      }
      return undefined
    },
    get size() {
      return size
    },
  }
}

/**
 * First in, first out, each key once. One long-lived iterator walks the map, because a fresh one would step over every
 * key that was removed at the front: quadratic when a hundred thousand keys come in at start-up.
 */
function createLine() {
  const sinceByKey = new Map<string, number>()
  const front = sinceByKey.entries()
  return {
    has: (key: string) => sinceByKey.has(key),
    since: (key: string) => sinceByKey.get(key),
    append: (key: string, since: number) => void sinceByKey.set(key, since),
    remove: (key: string) => void sinceByKey.delete(key),
    shift(): { key: string; since: number } | undefined {
      if (sinceByKey.size === 0) return undefined
      // Never called on an empty map, so it never ends: all entries of the map lie ahead of it.
      const [key, since] = front.next().value!
      sinceByKey.delete(key)
      return { key, since }
    },
    get size() {
      return sinceByKey.size
    },
  }
}

/** `order` decides between keys due at one instant, so that a run repeats exactly. */
type Delay = { key: string; at: number; order: number }

const isBefore = (a: Delay, b: Delay) => a.at < b.at || (a.at === b.at && a.order < b.order)

/** Keys that wait for a time: one heap and one timer, however many keys there are. */
function createDelays(clock: Clock, due: (key: string) => void) {
  const byKey = new Map<string, Delay>()
  const heap = new Heap(isBefore) // may hold delays that were replaced by earlier ones, which are dropped when they come up
  let order = 0
  let timer: { at: number; cancel: () => void } | undefined

  function arm() {
    let first = heap.first()
    for (; first && byKey.get(first.key) !== first; first = heap.first()) heap.pop()
    const at = first?.at
    if (timer?.at === at) return
    timer?.cancel()
    timer = at === undefined ? undefined : { at, cancel: clock.after(at - clock.monotonic(), fire) }
  }

  function fire() {
    timer = undefined
    const now = clock.monotonic()
    for (let first = heap.first(); first && first.at <= now; first = heap.first()) {
      heap.pop()
      if (byKey.get(first.key) !== first) continue
      byKey.delete(first.key)
      due(first.key)
    }
    arm()
  }

  function dropReplaced() {
    heap.clear()
    for (const delay of byKey.values()) heap.push(delay)
  }

  return {
    add(key: string, ms: number) {
      const delay = { key, at: clock.monotonic() + ms, order: order++ }
      const known = byKey.get(key)
      if (known && known.at <= delay.at) return
      byKey.set(key, delay)
      heap.push(delay)
      if (heap.size > 64 && heap.size > 2 * byKey.size) dropReplaced()
      arm()
    },
    clear() {
      byKey.clear()
      heap.clear()
      arm()
    },
  }
}
