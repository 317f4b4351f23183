import { describe, expect, test } from "vitest"
import type { Cache, CacheOptions, Projected } from "./cache/cache.ts"
import type { Client } from "./client/client.ts"
import { KubeError } from "./client/errors.ts"
import { virtualClock } from "./clock.ts"
import {
  type Controller,
  type OpenCache,
  type ReconcileResult,
  type RunningController,
  startController,
  type Wiring,
} from "./controller.ts"
import { createLogger } from "./log.ts"
import { seededRandom } from "./random.ts"
import { core, type Resource } from "./resource.ts"

const pods = core("pods", "Pod")
const options: CacheOptions<Projected> = { project: object => ({ resourceVersion: object.metadata.resourceVersion! }) }

/** A cache that is in sync on command, and remembers whether it runs. */
function fakeCache() {
  const sync = Promise.withResolvers<void>()
  const run = Promise.withResolvers<void>()
  const state = { running: false, aborted: false }
  const cache = {
    size: 3,
    stalenessMs: () => 7,
    synced: (signal?: AbortSignal) =>
      new Promise<void>((resolve, reject) => {
        signal?.addEventListener("abort", () => reject(signal.reason))
        sync.promise.then(resolve)
      }),
    run(signal: AbortSignal) {
      state.running = true
      signal.addEventListener("abort", () => {
        state.aborted = true
        run.resolve()
      })
      return run.promise
    },
  }
  return { cache: cache as unknown as Cache<Projected>, state, sync: sync.resolve, die: run.reject }
}

type Setup = Partial<Controller> & {
  reconcile: (key: string, wiring: Wiring) => Promise<number | undefined> | never
  synced?: boolean
  graceMs?: number
}

function start({ reconcile, synced = true, graceMs = 20_000, ...rest }: Setup) {
  const clock = virtualClock(1_000_000)
  const stop = new AbortController()
  const lines: { level: string; message: string; [fact: string]: unknown }[] = []
  const caches: (ReturnType<typeof fakeCache> & { resource: Resource })[] = []
  const results: ReconcileResult[] = []
  let openCaches = 0
  let wiring!: Wiring
  const openCache: OpenCache = resource => {
    const fake = fakeCache()
    if (synced) fake.sync()
    caches.push({ ...fake, resource })
    return fake.cache as never
  }
  const controller: Controller = {
    name: "tester",
    permissions: [],
    setup(given) {
      wiring = given
      wiring.watch(pods, options)
      return { reconcile: async key => reconcile(key, wiring) }
    },
    ...rest,
  }
  const running: RunningController = startController(
    controller,
    {
      client: {} as Client,
      clock,
      random: seededRandom(1),
      log: createLogger({ clock, level: "debug", write: line => lines.push(JSON.parse(line)) }),
      events: { record() {}, flush: async () => {} },
      identity: "me",
      signal: stop.signal,
    },
    {
      openCache,
      graceMs,
      observer: {
        queue: { added() {}, taken() {}, retried() {} },
        reconciled: result => results.push(result),
        cacheOpened() {
          openCaches++
          return () => openCaches--
        },
      },
    },
  )
  let ended: string | undefined
  running.done.then(
    () => (ended = "ended"),
    error => (ended = `failed: ${error.message}`),
  )
  const said = (level: string) => lines.filter(line => line.level === level)
  return {
    clock,
    running,
    stop: () => stop.abort(new Error("told to stop")),
    caches,
    results,
    said,
    get wiring() {
      return wiring
    },
    get openCaches() {
      return openCaches
    },
    get ended() {
      return ended
    },
  }
}

const trouble = (...errors: unknown[]) => {
  const looks: string[] = []
  return {
    looks,
    async reconcile(key: string): Promise<number | undefined> {
      looks.push(key)
      if (errors.length > 0) throw errors.shift()
      return undefined
    },
  }
}

describe("a controller", () => {
  test("begins to look only when the caches it opened are in sync", async () => {
    const looks: string[] = []
    const world = start({ synced: false, reconcile: async key => void looks.push(key) as undefined })
    world.wiring.enqueue("a")
    await world.clock.advance(60_000)
    expect(looks).toEqual([])
    expect(world.running.hasSynced).toBe(false)
    expect(world.caches[0]!.state.running).toBe(true)
    world.caches[0]!.sync()
    await world.clock.advance(0)
    expect(looks).toEqual(["a"])
    expect(world.running.hasSynced).toBe(true)
  })

  test("looks at as many keys at once as it may, never twice at one", async () => {
    const open = new Map<string, () => void>()
    const world = start({
      concurrency: 2,
      reconcile: key => new Promise(resolve => open.set(key, () => resolve(undefined))),
    })
    for (const key of ["a", "b", "c"]) world.wiring.enqueue(key)
    await world.clock.advance(1500)
    world.wiring.enqueue("a")
    expect([...open.keys()]).toEqual(["a", "b"])
    expect(world.running.inWork()).toEqual([
      { key: "a", ms: 1500 },
      { key: "b", ms: 1500 },
    ])
    open.get("b")!()
    await world.clock.advance(10)
    expect([...open.keys()]).toEqual(["a", "b", "c"])
    expect(world.running.inWork()).toEqual([
      { key: "a", ms: 1510 },
      { key: "c", ms: 10 },
    ])
    expect(world.running.depth).toBe(0)
  })

  test("looks again at the instant a reconcile returned", async () => {
    const looks: number[] = []
    const world = start({
      reconcile: async (_key, { clock }) => {
        looks.push(clock.now())
        return looks.length === 1 ? clock.now() + 90_000 : looks.length === 2 ? clock.now() - 5 : undefined
      },
    })
    world.wiring.enqueue("a")
    await world.clock.advance(3_600_000)
    expect(looks).toEqual([1_000_000, 1_090_000, 1_090_000])
    expect(world.results).toEqual(["requeue_after", "requeue_after", "success"])
  })

  test("an instant that is none is a failure of that key", async () => {
    const looks: number[] = []
    const world = start({ reconcile: async () => (looks.push(1) === 1 ? Number.NaN : undefined) })
    world.wiring.enqueue("a")
    await world.clock.advance(1000)
    expect(world.results).toEqual(["error", "success"])
    expect(JSON.stringify(world.said("error"))).toContain("NaN, which is no instant")
  })

  test("a reconcile that throws, even at once, is tried again later and disturbs no other key", async () => {
    const looks: string[] = []
    const world = start({
      reconcile: key => {
        looks.push(key)
        if (key === "bad" && looks.filter(look => look === "bad").length < 4) {
          throw new Error("evicting pod web-0", { cause: new TypeError("no such thing") })
        }
        return Promise.resolve(undefined)
      },
    })
    world.wiring.enqueue("bad")
    world.wiring.enqueue("good")
    await world.clock.advance(34)
    expect(looks).toEqual(["bad", "good", "bad", "bad"]) // 0, 5 and 15 ms
    await world.clock.advance(1)
    expect(looks.at(-1)).toBe("bad")
    expect(world.said("error")).toHaveLength(3)
    expect(world.said("error")[1]).toMatchObject({
      key: "bad",
      attempt: 2,
      controller: "tester",
      error: { message: "evicting pod web-0", cause: { type: "TypeError", message: "no such thing" } },
    })
    world.wiring.enqueue("bad")
    await world.clock.advance(10_000)
    expect(looks.filter(look => look === "bad")).toHaveLength(5) // it went well: nothing is left to retry
  })

  test("a look that went well ends the back-off", async () => {
    const outcomes = [new Error("1"), new Error("2"), new Error("3"), undefined, new Error("4")]
    const looks: number[] = []
    const world = start({
      reconcile: async (_key, { clock }) => {
        looks.push(clock.monotonic())
        const error = outcomes.shift()
        if (error) throw error
        return undefined
      },
    })
    world.wiring.enqueue("a")
    await world.clock.advance(1000)
    world.wiring.enqueue("a")
    await world.clock.advance(1000)
    expect(looks).toEqual([0, 5, 15, 35, 1000, 1005])
  })

  test("waits as long as the server asked, wherever in the chain it said so", async () => {
    const throttled = new KubeError("Throttled", "429", { retryAfterMs: 30_000 })
    const { looks, reconcile } = trouble(new Error("stamping", { cause: throttled }))
    const world = start({ reconcile })
    world.wiring.enqueue("a")
    await world.clock.advance(29_999)
    expect(looks).toHaveLength(1)
    await world.clock.advance(1)
    expect(looks).toHaveLength(2)
    expect(world.said("error")).toEqual([])
    expect(world.said("warn")).toHaveLength(1)
  })

  test("a Retry-After of a year does not bury an object", async () => {
    const { looks, reconcile } = trouble(new KubeError("Throttled", "429", { retryAfterMs: 3e10 }))
    const world = start({ reconcile })
    world.wiring.enqueue("a")
    await world.clock.advance(600_000)
    expect(looks).toHaveLength(2)
  })

  test("a conflict is no error: a quick second look, and a warning when they do not end", async () => {
    const conflict = () => new Error("stamping", { cause: new KubeError("Conflict", "409") })
    const { looks, reconcile } = trouble(...Array.from({ length: 10 }, conflict))
    const world = start({ reconcile })
    world.wiring.enqueue("a")
    await world.clock.advance(5)
    expect(looks).toHaveLength(2)
    expect([...world.said("error"), ...world.said("warn")]).toEqual([])
    await world.clock.advance(60_000)
    expect(looks).toHaveLength(11)
    expect(world.said("warn")).toHaveLength(1)
    expect(world.results.filter(result => result === "requeue")).toHaveLength(10)
  })

  test("ends quietly when it may not write any more", async () => {
    const { looks, reconcile } = trouble(new Error("stamping", { cause: new KubeError("WritesRefused", "deposed") }))
    const world = start({ reconcile })
    world.wiring.enqueue("a")
    world.wiring.enqueue("b")
    await world.clock.advance(60_000)
    expect(looks).toEqual(["a"])
    expect(world.ended).toBe("ended")
    expect([...world.said("error"), ...world.said("warn")]).toEqual([])
    expect(world.results).toEqual(["refused"])
  })

  test("at its end it finishes the work in hand, begins nothing, and only then closes its caches", async () => {
    const looks: string[] = []
    let finish!: (value: undefined) => void
    const world = start({
      reconcile: key => {
        looks.push(key)
        return new Promise(resolve => (finish = resolve))
      },
    })
    world.wiring.enqueue("a")
    world.wiring.enqueue("b")
    await world.clock.advance(0)
    world.stop()
    await world.clock.advance(19_999)
    expect(world.ended).toBeUndefined()
    expect(world.caches[0]!.state.aborted).toBe(false)
    finish(undefined)
    await world.clock.advance(0)
    expect(world.ended).toBe("ended")
    expect(looks).toEqual(["a"])
    expect(world.caches[0]!.state.aborted).toBe(true)
    expect(world.openCaches).toBe(0)
    expect(world.clock.nextAt()).toBeUndefined() // nothing keeps the process alive
  })

  test("at its end it waits a while for a look that hangs, and names it", async () => {
    const world = start({ reconcile: () => new Promise(() => {}), graceMs: 5000 })
    world.wiring.enqueue("stuck")
    await world.clock.advance(0)
    world.stop()
    await world.clock.advance(4999)
    expect(world.ended).toBeUndefined()
    await world.clock.advance(1)
    expect(world.ended).toBe("ended")
    expect(world.said("warn")[0]).toMatchObject({ keys: ["stuck"] })
    expect(world.running.inWork()).toHaveLength(1)
  })

  test("aborted before it is in sync, it ends", async () => {
    const world = start({ synced: false, reconcile: async () => undefined })
    await world.clock.advance(1000)
    world.stop()
    await world.clock.advance(0)
    expect(world.ended).toBe("ended")
    expect(world.caches[0]!.state.aborted).toBe(true)
  })

  test("a look that ends because of the signal is no error", async () => {
    const world = start({
      reconcile: (_key, { signal }) =>
        new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
    })
    world.wiring.enqueue("a")
    await world.clock.advance(0)
    world.stop()
    await world.clock.advance(0)
    expect(world.ended).toBe("ended")
    expect([...world.said("error"), ...world.said("warn")]).toEqual([])
  })

  test("a cache opened later does not hold up the looks, and can be closed alone", async () => {
    const looks: string[] = []
    const world = start({ reconcile: async key => void looks.push(key) as undefined })
    await world.clock.advance(0)
    const later = world.wiring.watch(core("nodes", "Node", false), options)
    world.wiring.enqueue("a")
    await world.clock.advance(0)
    expect(looks).toEqual(["a"])
    expect(world.openCaches).toBe(2)
    later.close()
    later.close()
    expect(world.openCaches).toBe(1)
    expect(world.caches.map(({ state }) => state.aborted)).toEqual([false, true])
    await world.clock.advance(0)
    expect(world.ended).toBeUndefined()
  })

  test("fails when it cannot be set up, and when a cache dies under it", async () => {
    const world = start({
      reconcile: async () => undefined,
      setup() {
        throw new Error("no such field")
      },
    })
    await world.clock.advance(0)
    expect(world.ended).toBe("failed: no such field")

    for (const synced of [true, false]) {
      const other = start({ reconcile: async () => undefined, synced })
      await other.clock.advance(0)
      other.caches[0]!.die(new Error("a bug"))
      await other.clock.advance(0)
      expect(other.ended).toBe("failed: the cache of pods died")
      expect(other.openCaches).toBe(0)
    }
  })
})
