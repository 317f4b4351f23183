import { expect, onTestFinished, test } from "vitest"
import { type HostileServer, hostileServer } from "../../../test/support/hostile-server.ts"
import type { Client, WatchEvent } from "../client/client.ts"
import { createClient } from "../client/create-client.ts"
import { httpsTransport } from "../client/https-transport.ts"
import { fixedCredentials } from "../client/server-config.ts"
import { systemClock, virtualClock } from "../clock.ts"
import type { Logger } from "../log.ts"
import { seededRandom } from "../random.ts"
import { core, type KubeObject } from "../resource.ts"
import type { Change } from "./cache.ts"
import { type CacheDeps, createCache, sharedCaches } from "./create-cache.ts"

const pods = core("pods", "Pod")
const pod = (name: string) => ({ name, namespace: "web" })
const minute = 60_000

type Row = { resourceVersion: string; image: string }

const rowOf = (object: KubeObject): Row => {
  const { metadata, spec } = object as KubeObject & { spec: { image: string } }
  return { resourceVersion: metadata.resourceVersion ?? "", image: spec.image }
}
const options = { project: rowOf, indexes: { image: ({ image }: Row) => [image] } }
const running = (image: string) => ({ spec: { image } })

/** A cache over a server that follows the test's commands, in virtual time. */
function world({ tuning = {}, client }: { tuning?: CacheDeps["tuning"] & {}; client?: Client } = {}) {
  const clock = virtualClock()
  const random = seededRandom(7)
  const server = hostileServer({ resource: pods, clock })
  const told: string[] = []
  const logged: string[] = []
  const say = (message: string, facts?: object) => void logged.push(`${message} ${JSON.stringify(facts)}`)
  const log: Logger = { debug: say, info: say, warn: say, error: say, with: () => log }
  const cache = createCache<Row>(
    {
      client: client ?? createClient({ transport: server.transport, clock, random }),
      clock,
      random,
      log,
      tuning,
      observer: { onList: how => told.push(how), onReconnect: why => told.push(why) },
    },
    pods,
    options,
  )
  const changes: Change<Row>[] = []
  cache.subscribe(change => changes.push(change))
  const stop = new AbortController()
  let ended: Promise<void> | undefined
  return {
    clock,
    server,
    cache,
    /** `stream` and `pages` for lists, the reason for each reconnect. */
    told,
    logged,
    changes,
    async start() {
      ended = cache.run(stop.signal)
      await clock.advance(10)
    },
    async stop() {
      stop.abort()
      await ended
    },
    expectInStep: () => expectInStep(cache, server),
  }
}

function expectInStep(cache: ReturnType<typeof createCache<Row>>, server: HostileServer) {
  expect(new Map(cache.entries())).toEqual(new Map([...server.objects].map(([key, object]) => [key, rowOf(object)])))
  const images = new Map<string, string[]>()
  for (const [key, { image }] of cache.entries()) images.set(image, [...(images.get(image) ?? []), key].sort())
  for (const [image, keys] of images) expect([...cache.keysBy("image", image)].sort()).toEqual(keys)
}

test("streams the first state, then follows it on the same connection", async () => {
  const { server, cache, clock, start, expectInStep, changes } = world()
  server.put(pod("a"), running("web:1"))
  expect(cache.hasSynced).toBe(false)
  await start()
  expect(cache.hasSynced).toBe(true)
  await cache.synced()
  server.put(pod("b"), running("web:1"))
  server.remove(pod("a"))
  await clock.advance(10)
  expectInStep()
  expect(server.requests).toHaveLength(1)
  expect(server.requests[0]).toContain("sendInitialEvents=true")
  expect(server.requests[0]).toContain("allowWatchBookmarks=true")
  expect(changes.map(({ key, initial }) => `${key} ${initial}`)).toEqual(["web/a true", "web/b false", "web/a false"])
})

test("lists in pages where the server refuses to stream, and does not ask again", async () => {
  const { server, cache, clock, start, told, expectInStep } = world()
  server.serveWatchList("refused")
  for (let index = 0; index < 1_201; index++) server.put(pod(`p${index}`), running("web:1"))
  await start()
  expectInStep()
  expect(cache.failure).toBeUndefined()
  expect(server.requests.filter(request => request.startsWith("list"))).toHaveLength(3)
  server.cut()
  server.put(pod("late"), running("web:2"))
  server.compact()
  server.put(pod("later"), running("web:2"))
  await clock.advance(10_000)
  expectInStep()
  expect(told).toEqual(["stream", "pages", "Unreachable", "Gone", "pages"])
})

test("lists in pages when a server treats the stream as an ordinary watch", async () => {
  const { server, cache, clock, start, told, expectInStep } = world()
  server.serveWatchList("ignored")
  server.put(pod("a"), running("web:1"))
  await start()
  expect(cache.hasSynced).toBe(false)
  await clock.advance(2 * minute)
  expectInStep()
  expect(cache.hasSynced).toBe(true)
  expect(told.slice(0, 3)).toEqual(["stream", "Unreachable", "pages"])
})

test("asks for watches of 290 to 580 seconds, each resumed where the last one ended", async () => {
  const { server, cache, clock, start, told } = world()
  server.put(pod("a"), running("web:1"))
  await start()
  await clock.advance(60 * minute)
  const seconds = server.requests.map(request => Number(/timeoutSeconds=(\d+)/.exec(request)?.[1]))
  expect(Math.min(...seconds)).toBeGreaterThanOrEqual(290)
  expect(Math.max(...seconds)).toBeLessThanOrEqual(580)
  expect(new Set(seconds).size).toBeGreaterThan(3)
  expect(told[0]).toBe("stream")
  expect(new Set(told.slice(1))).toEqual(new Set(["Ended"]))
  expect(cache.failure).toBeUndefined()

  // Each at once: a pause here would be staleness every few minutes for nothing.
  for (let ends = 0; ends < 3; ends++) {
    const before = told.length
    while (told.length === before) await clock.advance(500)
    expect(server.openWatches).toBe(1)
  }
})

test("a broken connection is resumed from the last version, and what was deleted meanwhile is deleted", async () => {
  const { server, cache, clock, start, told, expectInStep } = world()
  server.put(pod("a"), running("web:1"))
  server.put(pod("b"), running("web:1"))
  await start()
  server.cut()
  server.remove(pod("a"))
  await clock.advance(1)
  expect(cache.failure?.kind).toBe("Unreachable")
  expect(cache.hasSynced).toBe(true)
  await clock.advance(2_000)
  expectInStep()
  expect(cache.failure).toBeUndefined()
  expect(told).toEqual(["stream", "Unreachable"])
  expect(server.requests[1]).toContain("resourceVersion=3")
})

test("bookmarks move the point of resumption, so that a quiet resource survives compaction", async () => {
  const { server, clock, start, told } = world()
  server.put(pod("a"), running("web:1"))
  await start()
  server.skipVersions(1_000)
  await clock.advance(minute + 1)
  server.compact()
  server.cut()
  await clock.advance(10_000)
  expect(told).toEqual(["stream", "Unreachable"])
})

for (const as of ["status", "event"] as const)
  test(`410 as ${as}: lists again and sweeps, without looking emptier in between`, async () => {
    const { server, cache, clock, start, told, changes, expectInStep } = world()
    for (const name of ["a", "b", "c"]) server.put(pod(name), running("web:1"))
    await start()
    server.cut()
    server.remove(pod("b"))
    server.put(pod("d"), running("web:2"))
    server.compact(as)
    let smallest = cache.size
    cache.subscribe(() => {
      smallest = Math.min(smallest, cache.size)
    })
    changes.length = 0
    await clock.advance(5_000)
    expectInStep()
    expect(told).toEqual(["stream", "Unreachable", "Gone", "stream"])
    expect(smallest).toBe(3)
    expect(changes.map(({ key }) => key)).toEqual(["web/d", "web/b"])
    expect(cache.hasSynced).toBe(true)
  })

test("410 after an outage, as a restarted server answers: lists at once, and pauses if that was no help", async () => {
  const { server, cache, clock, start, told } = world()
  await start()
  await clock.advance(minute)
  server.breakDown({ do: "refuse" })
  server.cut()
  await clock.advance(minute)
  server.breakDown()
  server.put(pod("a"), running("web:1"))
  server.compact("event")
  while (told.at(-1) !== "stream") await clock.advance(100)
  expect(told.slice(-2)).toEqual(["Gone", "stream"])
  expect(cache.size).toBe(1)
  expect(cache.failure).toBeUndefined()

  server.breakDown({ do: "answer", status: 410 })
  server.cut()
  const before = server.requests.length
  await clock.advance(10 * minute)
  expect(server.requests.length - before).toBeLessThan(100)
})

test("410 in the middle of paging starts the list again", async () => {
  const { server, cache, clock, start, expectInStep } = world({ tuning: { stream: false, pageSize: 2 } })
  for (const name of ["a", "b", "c", "d", "e"]) server.put(pod(name), running("web:1"))
  server.next("list", { do: "answer", status: 500 })
  let pages = 0
  cache.subscribe(() => {
    // Between the first page and the second.
    if (pages++ !== 0) return
    server.remove(pod("e"))
    server.remove(pod("a"))
    server.compact()
  })
  await start()
  await clock.advance(5_000)
  expectInStep()
  expect(server.requests.filter(request => request.startsWith("list"))).toHaveLength(5)
})

test("pages of different versions are not taken for one list", async () => {
  const { cache, clock, start } = world({
    client: clientOf({
      lists: [
        { version: "10", names: ["a"], next: "1" },
        { version: "11", names: ["b"] },
        { version: "12", names: ["a", "b"] },
      ],
    }),
    tuning: { stream: false },
  })
  const versions: string[] = []
  cache.synced().then(() => versions.push("synced"))
  await start()
  await clock.advance(5_000)
  expect([...cache.entries()].map(([key]) => key)).toEqual(["web/a", "web/b"])
  await cache.reached(pod("a"), "12")
})

test("a list that fails half-way keeps what was known", async () => {
  const { server, cache, clock, start, expectInStep } = world({ tuning: { stream: false, pageSize: 2 } })
  for (const name of ["a", "b", "c", "d"]) server.put(pod(name), running("web:1"))
  await start()
  server.cut()
  server.remove(pod("d"))
  server.compact()
  for (let tries = 0; tries < 12; tries++) server.next("list", { do: "cut", afterBytes: 100 })
  await clock.advance(5_000)
  expect(cache.size).toBe(4)
  expect(cache.failure?.kind).toBe("Unreachable")
  await clock.advance(minute)
  expectInStep()
  expect(cache.failure).toBeUndefined()
})

test("one good page does not end a failure, the whole list does", async () => {
  const { server, cache, clock, start } = world({ tuning: { stream: false, pageSize: 2 } })
  for (const name of ["a", "b", "c"]) server.put(pod(name), running("web:1"))
  await start()
  server.cut()
  server.put(pod("d"), running("web:1"))
  server.compact()
  server.next("list", { do: "dribble", bytes: 10_000, everyMs: 1 })
  server.next("list", { do: "dribble", bytes: 10_000, everyMs: 30_000 })
  await clock.advance(20_000)
  expect(server.requests.at(-1)).toContain("continue=")
  expect(cache.failure?.kind).toBe("Gone")
  await clock.advance(30_000)
  expect(cache.failure).toBeUndefined()
})

test("an ERROR event is a 410 by its code or by its reason", async () => {
  for (const status of [{ code: 410 }, { reason: "Expired" }, { reason: "Gone" }]) {
    const client = clientOf({
      lists: [
        { version: "10", names: ["a"] },
        { version: "20", names: ["b"] },
      ],
      events: [{ type: "ERROR", object: status }],
    })
    const { cache, clock, start, stop, told } = world({ client, tuning: { stream: false } })
    await start()
    await clock.advance(100)
    expect(told.slice(0, 3)).toEqual(["pages", "Gone", "pages"])
    expect([...cache.entries()].map(([key]) => key)).toEqual(["web/b"])
    await stop()
  }
})

test("a bookmark that goes back means that the server did: it lists", async () => {
  const { server, clock, start, told, expectInStep } = world()
  server.skipVersions(100)
  server.put(pod("a"), running("web:1"))
  await start()
  await clock.advance(20_000)
  server.rewind({ version: 50, objects: [] })
  server.bookmark()
  await clock.advance(minute)
  expect(told.slice(0, 3)).toEqual(["stream", "Gone", "stream"])
  expectInStep()
})

test("events that come twice or change places converge", async () => {
  const { server, clock, start, expectInStep, told } = world()
  server.put(pod("a"), running("web:1"))
  await start()
  server.misbehave({ duplicate: true, reorder: true })
  for (let round = 0; round < 5; round++) {
    server.put(pod("a"), running(`web:${round}`))
    server.remove(pod("a"))
    server.put(pod("b"), running(`web:${round}`))
    server.put(pod("a"), running(`web:${round}`))
    server.remove(pod("b"))
  }
  await clock.advance(1_000)
  expectInStep()
  expect(told).toEqual(["stream"])
})

test("a silent watch is noticed and replaced from the last version", async () => {
  const { server, cache, clock, start, told, expectInStep } = world()
  server.put(pod("a"), running("web:1"))
  await start()
  server.goSilent()
  server.put(pod("b"), running("web:1"))
  await clock.advance(149_000)
  expect(told).toEqual(["stream"])
  expect(cache.stalenessMs()).toBeGreaterThan(148_000)
  await clock.advance(5_000)
  expectInStep()
  expect(told).toEqual(["stream", "Unreachable"])
  expect(cache.stalenessMs()).toBeLessThan(5_000)
})

test("when the next watch is silent as well, it lists", async () => {
  const { server, clock, start, told, expectInStep } = world()
  await start()
  server.goSilent()
  server.put(pod("b"), running("web:1"))
  server.next("watch", { do: "silence" })
  await clock.advance(6 * minute)
  expectInStep()
  expect(told).toEqual(["stream", "Unreachable", "Unreachable", "stream"])
})

test("bookmarks alone keep a watch alive and fresh", async () => {
  const { cache, clock, start, told } = world()
  await start()
  await clock.advance(4 * minute)
  expect(told).toEqual(["stream"])
  expect(cache.stalenessMs()).toBeLessThanOrEqual(minute)
})

test("half an event is not an event", async () => {
  const { server, cache, clock, start, expectInStep } = world()
  server.put(pod("a"), running("web:1"))
  await start()
  server.sendHalf()
  await clock.advance(2_000)
  expectInStep()
  expect(cache.unreadable.size).toBe(0)
})

test("an object of 10 MB passes, and only its projection stays", async () => {
  const { server, cache, clock, start } = world()
  await start()
  server.put(pod("big"), { ...running("web:1"), padding: "x".repeat(10 << 20) })
  server.put(pod("small"), running("web:1"))
  await clock.advance(10)
  expect(cache.get("web/big")).toEqual({ resourceVersion: "2", image: "web:1" })
  expect(cache.size).toBe(2)
})

test("a body that drips is read to its end", async () => {
  const { server, clock, start, expectInStep } = world({ tuning: { stream: false } })
  server.put(pod("a"), running("web:1"))
  server.next("list", { do: "dribble", bytes: 16, everyMs: 100 })
  server.next("watch", { do: "dribble", bytes: 7, everyMs: 100 })
  await start()
  await clock.advance(5_000)
  server.put(pod("b"), running("web:ü\u2028"))
  await clock.advance(10_000)
  expectInStep()
})

for (const status of [500, 503, 429, 403, 401, 404])
  test(`${status}: keeps what it has, reports it, and tries again with growing pauses`, async () => {
    const { server, cache, clock, start, expectInStep } = world()
    server.put(pod("a"), running("web:1"))
    await start()
    server.breakDown({ do: "answer", status })
    server.cut()
    const before = server.requests.length
    await clock.advance(10 * minute)
    expect(cache.failure?.status).toBe(status)
    expect(cache.size).toBe(1)
    expect(cache.hasSynced).toBe(true)
    // 20 pauses of 30 s, 15 s at least, and the client's own few retries of each list.
    expect(server.requests.length - before).toBeLessThan(160)
    server.remove(pod("a"))
    server.put(pod("b"), running("web:2"))
    server.heal()
    await clock.advance(2 * minute)
    expectInStep()
    expect(cache.failure).toBeUndefined()
  })

test("a resource whose definition was removed and made again is listed afresh", async () => {
  const { server, clock, start, told, expectInStep } = world()
  server.put(pod("a"), running("web:1"))
  await start()
  server.next("watch", { do: "answer", status: 404 })
  server.cut()
  await clock.advance(10_000)
  expectInStep()
  expect(told).toEqual(["stream", "Unreachable", "NotFound", "stream"])
})

test("waits for as long as it is asked to, within reason", async () => {
  const { server, clock, start, told } = world()
  await start()
  server.next("watch", { do: "answer", status: 429, retryAfterSeconds: 60 })
  server.cut()
  await clock.advance(3_000)
  const asked = server.requests.length
  await clock.advance(55_000)
  expect(server.requests).toHaveLength(asked)
  await clock.advance(10_000)
  expect(server.requests).toHaveLength(asked + 1)
  expect(told).toEqual(["stream", "Unreachable", "Throttled"])
})

test("an ERROR event that is not a 410 is resumed from, after a pause", async () => {
  const { server, cache, clock, start, told, expectInStep } = world()
  server.put(pod("a"), running("web:1"))
  await start()
  server.next("watch", { do: "errorEvent", code: 500 })
  server.cut()
  server.put(pod("b"), running("web:1"))
  await clock.advance(1_500)
  expect(cache.failure).toBeDefined()
  await clock.advance(5_000)
  expectInStep()
  expect(told).toEqual(["stream", "Unreachable", "Unreachable"])
})

test("a page that is not JSON, a refused connection and an answer that never comes are survived", async () => {
  const { server, clock, start, expectInStep } = world()
  server.put(pod("a"), running("web:1"))
  for (const verb of ["watch", "list"] as const) {
    server.next(verb, { do: "garbage" })
    server.next(verb, { do: "refuse" })
    server.next(verb, { do: "hang" })
  }
  await start()
  await clock.advance(10 * minute)
  expectInStep()
})

test("a server that ends every watch at once is not asked in a tight loop", async () => {
  const { server, cache, clock, start } = world()
  await start()
  for (let second = 0; second < 600; second++) {
    server.cut({ cleanly: true })
    await clock.advance(1_000)
  }
  expect(server.requests.length).toBeLessThan(50)
  expect(cache.failure?.message).toContain("the watch ended after")
  await clock.advance(2 * minute)
  expect(cache.failure).toBeUndefined()
})

test("failures that lie far apart are each met with a short pause", async () => {
  const { server, cache, clock, start } = world()
  await start()
  for (let hour = 0; hour < 20; hour++) {
    server.cut()
    server.put(pod("a"), running(`web:${hour}`))
    await clock.advance(1_300)
    expect(cache.get("web/a")?.image).toBe(`web:${hour}`)
    await clock.advance(minute)
  }
})

test("a list older than what was seen is refused, and accepted after the third time", async () => {
  const { server, cache, clock, start, expectInStep } = world()
  server.skipVersions(100)
  const old = server.put(pod("a"), running("web:1"))
  server.skipVersions(100)
  server.put(pod("a"), running("web:2"))
  server.put(pod("b"), running("web:2"))
  await start()
  server.rewind({ version: 150, objects: [old] })
  server.next("watch", { do: "answer", status: 410 })
  server.cut()
  await clock.advance(4_000)
  expect(cache.get("web/a")?.image).toBe("web:2")
  expect(cache.size).toBe(2)
  expect(cache.failure?.message).toContain("was already seen")
  await clock.advance(minute)
  expectInStep()
  server.put(pod("c"), running("web:3"))
  await clock.advance(10)
  expectInStep()
})

test("an object that cannot be read is skipped, logged once, and does not stop the others", async () => {
  const { server, cache, clock, start, logged } = world()
  server.put(pod("odd"), { spec: null })
  server.put(pod("a"), running("web:1"))
  await start()
  server.put(pod("odd"), { spec: null })
  server.put(pod("b"), running("web:1"))
  await clock.advance(10)
  expect(cache.size).toBe(2)
  expect([...cache.unreadable.keys()]).toEqual(["web/odd"])
  expect(logged.filter(line => line.includes("web/odd"))).toHaveLength(1)
})

test("read-your-writes: waits for the version of a write, for its deletion, and no longer than wanted", async () => {
  const { server, cache, clock, start, stop } = world()
  server.put(pod("a"), running("web:1"))
  await start()
  server.cut()
  const written = server.put(pod("a"), running("web:2")).metadata.resourceVersion ?? ""
  const shown = cache.reached(pod("a"), written).then(() => cache.get("web/a")?.image)
  const deletedLater = server.put(pod("b"), running("web:2")).metadata.resourceVersion ?? ""
  const gone = cache.reached(pod("b"), deletedLater).then(() => cache.get("web/b"))
  const patience = new AbortController()
  const tooMuch = cache.reached(pod("a"), "1000000", patience.signal)
  server.remove(pod("b"))
  server.compact()
  await clock.advance(10_000)
  expect(await shown).toBe("web:2")
  expect(await gone).toBeUndefined()
  patience.abort(new Error("enough"))
  await expect(tooMuch).rejects.toThrow("enough")
  await stop()
})

test("read-your-writes: a bookmark past the version settles it", async () => {
  const { server, cache, clock, start } = world()
  await start()
  server.skipVersions(10)
  const reached = cache.reached(pod("elsewhere"), server.version)
  server.bookmark()
  await clock.advance(1)
  await reached
})

/** The moment (virtual) at which it resolved. */
function resolvedAt(clock: { monotonic(): number }, promise: Promise<void>) {
  let at: number | undefined
  promise.then(() => (at = clock.monotonic()))
  return () => at
}

const shortWatches = (server: HostileServer) =>
  server.requests.filter(request => /^watch .*timeoutSeconds=3(&|$)/.test(request)).length

test("catching up: where things happen, the watch itself shows it", async () => {
  const { server, cache, clock, start } = world()
  await start()
  server.put(pod("a"), running("web:1"))
  const done = resolvedAt(clock, cache.catchUp())
  await clock.advance(10)
  expect(done()).toBeDefined()
  expect(cache.get("web/a")?.image).toBe("web:1")
  expect(server.requests.map(request => request.split(" ")[0])).toEqual(["watch", "list"])
})

test("catching up: where nothing happens, a short watch reports it within two seconds, and the next is an ordinary one", async () => {
  const { server, cache, clock, start, told } = world()
  server.put(pod("a"), running("web:1"))
  await start()
  server.skipVersions(10)
  const from = clock.monotonic()
  const done = resolvedAt(clock, cache.catchUp())
  await clock.advance(10_000)
  expect(done()! - from).toBeLessThan(2_000)
  expect(shortWatches(server)).toBe(1)
  expect(server.openWatches).toBe(1)
  expect(cache.failure).toBeUndefined()
  expect(told).toEqual(["stream"])
  server.put(pod("b"), running("web:1"))
  await clock.advance(10)
  expect(cache.get("web/b")?.image).toBe("web:1")
})

test("catching up: a silent watch is detected and replaced", async () => {
  const { server, cache, clock, start } = world()
  server.put(pod("a"), running("web:1"))
  await start()
  server.goSilent()
  server.put(pod("a"), running("web:2"))
  await clock.advance(10)
  expect(cache.get("web/a")?.image).toBe("web:1")
  const done = resolvedAt(clock, cache.catchUp())
  await clock.advance(500)
  expect(done()).toBeDefined()
  expect(cache.get("web/a")?.image).toBe("web:2")
})

test("catching up: a server that sends no bookmarks is asked for a list", async () => {
  const { server, cache, clock, start, told } = world()
  await start()
  server.misbehave({ bookmarks: false })
  server.skipVersions(10)
  const done = resolvedAt(clock, cache.catchUp())
  await clock.advance(5_000)
  expect(done()).toBeUndefined()
  await clock.advance(1_000)
  expect(done()).toBeDefined()
  expect(told).toEqual(["stream", "stream"])
})

test("catching up: the version is read after each request for it, once for all that come meanwhile", async () => {
  const { server, cache, clock, start } = world()
  await start()
  const all = Array.from({ length: 100 }, () => resolvedAt(clock, cache.catchUp()))
  await clock.advance(10)
  expect(all.every(done => done() !== undefined)).toBe(true)
  expect(server.requests.filter(request => request.startsWith("list"))).toHaveLength(2)
  server.goSilent()
  server.put(pod("a"), running("web:1"))
  const later = resolvedAt(clock, cache.catchUp())
  await clock.advance(10)
  expect(later()).toBeUndefined()
})

const someOf = (...names: string[]) => ({ labelSelector: "app=web", keys: new Set(names.map(name => `web/${name}`)) })

test("catching up on some objects: where nothing happens, a list of them says that they are shown", async () => {
  const { server, cache, clock, start } = world()
  server.put(pod("a"), running("web:1"))
  await start()
  server.skipVersions(10)
  const from = clock.monotonic()
  const done = resolvedAt(clock, cache.catchUp(undefined, someOf("a")))
  await clock.advance(10)
  expect(done()! - from).toBeLessThan(10)
  expect(server.requests.at(-1)).toMatch(/^list .*labelSelector=app%3Dweb/)
})

for (const [what, change] of Object.entries({
  "is new": server => server.put(pod("b"), running("web:2")),
  "has changed": server => server.put(pod("a"), running("web:2")),
  "is gone": server => server.remove(pod("a")),
} satisfies Record<string, (server: HostileServer) => void>))
  test(`catching up on some objects: one that ${what} is waited for, and a silent watch is replaced`, async () => {
    const { server, cache, clock, start } = world()
    server.put(pod("a"), running("web:1"))
    await start()
    server.goSilent()
    change(server)
    const done = resolvedAt(clock, cache.catchUp(undefined, someOf("a")))
    await clock.advance(100)
    expect(done()).toBeUndefined()
    await clock.advance(400)
    expect(done()).toBeDefined()
    const shown = [...cache.entries()].map(([key, { image }]) => `${key} ${image}`)
    expect(shown).toEqual(
      what === "is gone" ? [] : what === "is new" ? ["web/a web:1", "web/b web:2"] : ["web/a web:2"],
    )
  })

test("catching up on some objects: more than a page of them are not listed", async () => {
  const { server, cache, clock, start } = world({ tuning: { pageSize: 1 } })
  server.put(pod("a"), running("web:1"))
  server.put(pod("b"), running("web:1"))
  await start()
  server.skipVersions(10)
  for (const some of [someOf("a", "b"), someOf("a")]) {
    const done = resolvedAt(clock, cache.catchUp(undefined, some))
    await clock.advance(100)
    expect(done()).toBeUndefined()
    await clock.advance(2_000)
    expect(done()).toBeDefined()
    server.skipVersions(10)
  }
})

test("catching up: goes on when the server cannot be asked for a while, and can be given up", async () => {
  const { server, cache, clock, start } = world()
  await start()
  server.breakDown({ do: "answer", status: 503 })
  const patience = new AbortController()
  const given = expect(cache.catchUp(patience.signal)).rejects.toThrow("enough")
  const done = resolvedAt(clock, cache.catchUp())
  await clock.advance(5_000)
  patience.abort(new Error("enough"))
  await given
  expect(done()).toBeUndefined()
  server.breakDown()
  await clock.advance(minute)
  expect(done()).toBeDefined()
})

test("synced can be given up", async () => {
  const { cache } = world()
  await expect(cache.synced(AbortSignal.abort(new Error("enough")))).rejects.toThrow("enough")
  const patience = new AbortController()
  const waiting = cache.synced(patience.signal)
  patience.abort(new Error("enough"))
  await expect(waiting).rejects.toThrow("enough")
})

for (const when of ["watching", "listing", "in a pause", "before it began"] as const)
  test(`stopped while ${when}: nothing is open, due or reported afterwards`, async () => {
    const { server, cache, clock, start, stop, changes } = world()
    server.put(pod("a"), running("web:1"))
    if (when === "listing") server.next("watch", { do: "dribble", bytes: 1, everyMs: 1_000 })
    if (when === "before it began") await stop()
    await start()
    if (when === "in a pause") {
      server.breakDown({ do: "refuse" })
      server.cut()
      await clock.advance(10)
    }
    await stop()
    const asked = server.requests.length
    const said = changes.length
    server.put(pod("b"), running("web:1"))
    await clock.advance(0)
    expect(clock.nextAt()).toBeUndefined()
    await clock.advance(10 * minute)
    expect(server.openWatches).toBe(0)
    expect(server.requests).toHaveLength(asked)
    expect(changes).toHaveLength(said)
    expect(cache.get("web/b")).toBeUndefined()
  })

test("a cache runs once at a time, and again after it was stopped", async () => {
  const { server, cache, clock, start, stop, expectInStep } = world()
  await start()
  await expect(cache.run(new AbortController().signal)).rejects.toThrow("running already")
  await stop()
  server.put(pod("a"), running("web:1"))
  const again = new AbortController()
  const ended = cache.run(again.signal)
  await clock.advance(10)
  expectInStep()
  again.abort()
  await ended
})

/** Caches of the same pods with different projections. */
function sharedWorld() {
  const clock = virtualClock()
  const random = seededRandom(7)
  const server = hostileServer({ resource: pods, clock })
  const open = sharedCaches({ client: createClient({ transport: server.transport, clock, random }), clock, random })
  let parsed = 0
  const images = open<Row>(pods, options)
  const names = open(pods, {
    project({ metadata: { name, resourceVersion = "" } }) {
      parsed++
      return { resourceVersion, name }
    },
  })
  const follow = (cache: Pick<typeof names, "run">) => {
    const stop = new AbortController()
    const ended = cache.run(stop.signal)
    return async () => {
      stop.abort()
      await ended
    }
  }
  return { clock, server, open, images, names, follow, projections: () => parsed }
}

test("caches of the same objects share one connection, each with what it keeps of them", async () => {
  const { clock, server, images, names, follow } = sharedWorld()
  server.put(pod("a"), running("web:1"))
  follow(images)
  await clock.advance(10)
  follow(names)
  await clock.advance(10)
  server.put(pod("b"), running("web:2"))
  server.remove(pod("a"))
  await clock.advance(10)
  expectInStep(images, server)
  expect([...names.entries()].map(([key, { name }]) => [key, name])).toEqual([["web/b", "b"]])
  expect(server.openWatches).toBe(1)
})

test("a late follower gets a list, and the others ignore the repeats", async () => {
  const { clock, server, images, names, follow } = sharedWorld()
  for (let index = 0; index < 20; index++) server.put(pod(`p${index}`), running("web:1"))
  follow(images)
  await clock.advance(10)
  const told: string[] = []
  images.subscribe(({ key, initial }) => void (initial || told.push(key)))
  const initial: boolean[] = []
  names.subscribe(change => initial.push(change.initial))
  follow(names)
  server.put(pod("new"), running("web:2"))
  await clock.advance(10)
  expect(names.hasSynced).toBe(true)
  expect(initial).toEqual(Array.from({ length: 21 }, () => true))
  expect(told).toEqual(["web/new"])
  expect(server.requests).toHaveLength(2)
  expect(server.openWatches).toBe(1)
})

test("a follower that leaves affects no other; after the last, nothing is open; the next begins with a list", async () => {
  const { clock, server, open, images, names, follow, projections } = sharedWorld()
  server.put(pod("a"), running("web:1"))
  const leaveImages = follow(images)
  const leaveNames = follow(names)
  await clock.advance(10)
  const requests = server.requests.length
  await leaveNames()
  const before = projections()
  server.put(pod("b"), running("web:1"))
  await clock.advance(10)
  expectInStep(images, server)
  expect({ requests: server.requests.length, projections: projections() }).toEqual({ requests, projections: before })
  await leaveImages()
  await clock.advance(10)
  expect(server.openWatches).toBe(0)
  server.remove(pod("a"))
  const next = open<Row>(pods, options)
  const leaveNext = follow(next)
  await clock.advance(10)
  expect(server.requests.slice(requests)).toEqual([expect.stringContaining("sendInitialEvents=true")])
  expectInStep(next, server)
  await leaveNext()
  follow(names)
  await clock.advance(10)
  expect([...names.entries()].map(([key]) => key)).toEqual(["web/b"])
  expect(server.openWatches).toBe(1)
})

test("a follower added during a delivery receives nothing before its own list", async () => {
  const { clock, server, images, names, follow } = sharedWorld()
  server.put(pod("a"), running("web:1"))
  server.put(pod("b"), running("web:1"))
  const leave = follow(images)
  await clock.advance(10)
  await leave()
  server.remove(pod("a"))
  server.compact()
  server.put(pod("c"), running("web:1")) // where to go on is lost: the end of a new list sweeps a
  let wasSynced: boolean | undefined
  images.subscribe(({ key, after }) => {
    if (key !== "web/a" || after) return
    follow(names)
    queueMicrotask(() => {
      wasSynced = names.hasSynced
    })
  })
  follow(images)
  await clock.advance(5000)
  expect(wasSynced).toBe(false)
  expect([...names.entries()].map(([key]) => key).sort()).toEqual(["web/b", "web/c"])
  expectInStep(images, server)
  expect(server.openWatches).toBe(1)
})

test("caches of different objects of a resource share nothing", async () => {
  const { clock, server, open, images, follow } = sharedWorld()
  follow(images)
  follow(open(pods, { ...options, labelSelector: "app=web" }))
  follow(open(pods, { ...options, namespace: "web" }))
  await clock.advance(10)
  expect(server.openWatches).toBe(3)
})

test("asks for its selection", async () => {
  const asked: object[] = []
  const client = clientOf({ lists: [{ version: "10", names: ["a"] }], onAsk: options => asked.push(options) })
  const cache = createCache<Row>(
    { client, clock: virtualClock(), random: seededRandom(1), tuning: { stream: false } },
    pods,
    { ...options, namespace: "web", labelSelector: "app=web", fieldSelector: "spec.nodeName=n1", metadataOnly: true },
  )
  const stop = new AbortController()
  const ended = cache.run(stop.signal)
  await cache.synced()
  await Promise.resolve()
  const selection = {
    namespace: "web",
    labelSelector: "app=web",
    fieldSelector: "spec.nodeName=n1",
    metadataOnly: true,
  }
  expect(asked).toEqual([
    { ...selection, limit: 500 },
    { ...selection, resourceVersion: "10", timeoutSeconds: expect.any(Number), silenceMs: 150_000 },
  ])
  stop.abort()
  await ended
})

for (const stream of [true, false])
  test(`over a real socket, ${stream ? "streamed" : "paged"}: cut, half events, 410 and broken lists`, async () => {
    const server = hostileServer({ resource: pods, clock: systemClock })
    for (let index = 0; index < 50; index++) server.put(pod(`p${index}`), running("web:1"))
    const { url, close } = await server.listen()
    const transport = httpsTransport({
      server: url,
      namespace: "web",
      tls: { verify: true },
      credentials: fixedCredentials({}),
      headers: {},
    })
    const random = seededRandom(3)
    const client = createClient({ transport, clock: systemClock, random })
    const tuning = { stream, pageSize: 10, backoffMsMin: 2, backoffMsMax: 20 }
    const cache = createCache<Row>({ client, clock: systemClock, random, tuning }, pods, options)
    const stop = new AbortController()
    const ended = cache.run(stop.signal)
    onTestFinished(async () => {
      stop.abort()
      await ended
      client.close()
      await close()
    })
    await cache.synced()
    expectInStep(cache, server)

    const faults: (() => void)[] = [
      () => server.cut(),
      () => server.cut({ cleanly: true }),
      () => server.sendHalf(),
      () => {
        server.cut()
        server.compact("event")
      },
      () => {
        server.next("list", { do: "cut", afterBytes: 300 })
        server.next("watch", { do: "answer", status: 500 })
        server.cut()
        server.compact()
      },
      () => server.misbehave({ duplicate: true }),
    ]
    for (const [round, fault] of faults.entries()) {
      fault()
      server.remove(pod(`p${round}`))
      server.put(pod(`p${round + 10}`), { ...running(`web:ü\u2028${round}`), padding: "x".repeat(200_000) })
      await cache.reached(pod(`p${round + 10}`), server.version)
      expectInStep(cache, server)
    }
  })

/** A client that answers from a script: for answers that no server would give, in an order no network would choose. */
function clientOf(script: {
  lists?: { version: string; names: string[]; next?: string }[]
  events?: WatchEvent<KubeObject>[]
  onAsk?: (options: object) => void
}): Client {
  const lists = [...(script.lists ?? [])]
  const answer = {
    async list(_: unknown, options: object) {
      script.onAsk?.(options)
      const { version, names, next } = lists.shift() ?? { version: "1", names: [], next: undefined }
      const items = names.map(name => ({ metadata: { ...pod(name), resourceVersion: "5" }, ...running("web:1") }))
      return { metadata: { resourceVersion: version, ...(next && { continue: next }) }, items }
    },
    async *watch(_: unknown, options: object, signal: AbortSignal) {
      script.onAsk?.(options)
      yield* script.events ?? []
      if (!signal.aborted) await new Promise(resolve => signal.addEventListener("abort", resolve, { once: true }))
    },
  }
  return answer as unknown as Client
}
