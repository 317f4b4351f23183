import fc from "fast-check"
import { expect, test } from "vitest"
import { compareVersions } from "#lib/resource-version.ts"
import { type Fault, hostileServer } from "../../../test/support/hostile-server.ts"
import { createClient } from "../client/create-client.ts"
import { virtualClock } from "../clock.ts"
import { seededRandom } from "../random.ts"
import { core, type KubeObject } from "../resource.ts"
import type { Cache, Change } from "./cache.ts"
import { sharedCaches } from "./create-cache.ts"

const pods = core("pods", "Pod")
const runs = Number(process.env.AIM_RUNS ?? 150)

type Row = { resourceVersion: string; uid: string; colors: readonly string[] }

const rowOf = (object: KubeObject): Row => {
  const { metadata, colors } = object as KubeObject & { colors: readonly string[] | null }
  if (!colors) throw new Error("no colors")
  return { resourceVersion: metadata.resourceVersion ?? "", uid: metadata.uid ?? "", colors }
}

const namesOf = ({ metadata: { name, resourceVersion = "" } }: KubeObject) => ({ name, resourceVersion })

const name = fc.record({ name: fc.constantFrom("a", "b", "c", "d"), namespace: fc.constantFrom("x", "y") })
const colors = fc.uniqueArray(fc.constantFrom("red", "green", "blue"), { maxLength: 2 })
const waitMs = fc.constantFrom(0, 50, 300, 1_000, 5_000, 20_000, 70_000, 200_000)
const fault: fc.Arbitrary<Fault> = fc.oneof(
  fc.record({
    do: fc.constant("answer" as const),
    status: fc.constantFrom(400, 403, 404, 410, 422, 429, 500, 503),
  }),
  fc.constant({ do: "answer", status: 429, retryAfterSeconds: 5 } as const),
  fc.constantFrom(
    { do: "refuse" } as const,
    { do: "hang" } as const,
    { do: "silence" } as const,
    { do: "garbage" } as const,
  ),
  fc.record({ do: fc.constant("cut" as const), afterBytes: fc.integer({ min: 0, max: 2_000 }) }),
  fc.record({
    do: fc.constant("dribble" as const),
    bytes: fc.integer({ min: 20, max: 500 }),
    everyMs: fc.constantFrom(1, 100),
  }),
  fc.record({ do: fc.constant("errorEvent" as const), code: fc.constantFrom(410, 429, 500, 504) }),
)

/** What happens to the objects, to the server, and to time. */
const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant("put" as const), name, colors }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("remove" as const), name }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("recreate" as const), name, colors }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("spoil" as const), name }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constant("wait" as const), ms: waitMs }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("cut" as const), cleanly: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("compact" as const), as: fc.constantFrom("status", "event") }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant("next" as const), verb: fc.constantFrom("list", "watch"), fault }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("misbehave" as const),
      how: fc.record({ duplicate: fc.boolean(), reorder: fc.boolean(), bookmarks: fc.boolean() }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("watchList" as const),
      how: fc.constantFrom("served", "refused", "ignored"),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.constantFrom(
      { do: "silent" as const },
      { do: "half" as const },
      { do: "bookmark" as const },
      { do: "others write" as const },
      { do: "down" as const },
      { do: "heal" as const },
      { do: "subscribe" as const },
      { do: "catch up" as const },
      { do: "come" as const },
      { do: "go" as const },
    ),
  },
)
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never

const newer = (one: string, other = one) => (compareVersions(one, other) >= 0 ? one : other)

/** Follows one subscription and checks its promises; what remains must be the state of the server. */
function replay(cache: Cache<Row>) {
  const rows = new Map<string, Row>()
  const stop = cache.subscribe(({ key, before, after }: Change<Row>) => {
    expect(before, `what ${key} was`).toBe(rows.get(key))
    expect(cache.get(key), `what the cache shows of ${key}`).toBe(after)
    for (const color of new Set([...(before?.colors ?? []), ...(after?.colors ?? [])]))
      expect(cache.keysBy("color", color).has(key)).toBe(after?.colors.includes(color) ?? false)
    if (before && after) expect(before.uid, "one change, one object").toBe(after.uid)
    if (after) rows.set(key, after)
    else rows.delete(key)
  })
  return { rows, stop }
}

async function play(steps: readonly Step[], { seed, stream }: { seed: number; stream: boolean }) {
  const clock = virtualClock()
  const random = seededRandom(seed)
  const server = hostileServer({ resource: pods, clock })
  const client = createClient({ transport: server.transport, clock, random })
  const listenerErrors: unknown[] = []
  const say = () => {}
  const error = (message: string, facts?: Record<string, unknown>) => {
    if (message.includes("listener")) listenerErrors.push(facts?.error)
  }
  const log = { debug: say, info: say, warn: say, error, with: () => log }
  const open = sharedCaches({ client, clock, random, log, tuning: { stream, pageSize: 2 } })
  const cache = open<Row>(pods, { project: rowOf, indexes: { color: row => row.colors } })
  // A follower that comes and goes, and keeps something else of the same objects.
  const other = open(pods, { project: namesOf })
  let stopOther: AbortController | undefined
  const catchUps = { open: 0 }
  let hasReordered = false
  const anchors = ["0", "m", "z"].map(name => server.put({ name, namespace: "x" }, { colors: ["red"] }))
  const replays = [replay(cache)]
  let syncedOnce = false
  cache.subscribe(({ key, after }) => {
    if (!after && anchors.some(anchor => `x/${anchor.metadata.name}` === key)) listenerErrors.push(`lost ${key}`)
    if (syncedOnce && !cache.hasSynced) listenerErrors.push("no longer synced")
    syncedOnce ||= cache.hasSynced
  })
  const stop = new AbortController()
  const ended = [cache.run(stop.signal)]

  const act = {
    put: ({ name, colors }) => void server.put(name, { colors }),
    remove: ({ name }) => server.remove(name),
    recreate({ name, colors }) {
      server.remove(name)
      server.put(name, { colors })
    },
    spoil: ({ name }) => void server.put(name, { colors: null }),
    wait: ({ ms }) => clock.advance(ms),
    cut: ({ cleanly }) => server.cut({ cleanly }),
    compact: ({ as }) => server.compact(as),
    next: ({ verb, fault }) => server.next(verb, fault),
    misbehave({ how }) {
      hasReordered ||= how.reorder
      server.misbehave(how)
    },
    watchList: ({ how }) => server.serveWatchList(how),
    silent: () => server.goSilent(),
    half: () => server.sendHalf(),
    bookmark: () => server.bookmark(),
    "others write": () => server.skipVersions(5),
    down: () => server.breakDown({ do: "refuse" }),
    heal: () => server.breakDown(),
    subscribe: () => void replays.push(replay(cache)),
    "catch up"() {
      const had = new Map([...server.objects].map(([key, { metadata }]) => [key, metadata.resourceVersion ?? ""]))
      const version = server.version
      catchUps.open++
      cache.catchUp(stop.signal).then(
        () => {
          catchUps.open--
          // By design of this server, an event that changes places with another is behind for a moment.
          if (hasReordered) return
          for (const [key, least] of had) {
            const shown = cache.get(key)?.resourceVersion ?? cache.unreadable.get(key)
            const isGone = server.objects.get(key)?.metadata.resourceVersion !== least
            if (shown === undefined ? !isGone : compareVersions(newer(shown, cache.unreadable.get(key)), least) < 0)
              listenerErrors.push(`${key} was at ${least}, and is shown at ${shown}`)
          }
          for (const [key, { resourceVersion }] of cache.entries())
            if (!had.has(key) && !cache.unreadable.has(key) && compareVersions(resourceVersion, version) <= 0)
              listenerErrors.push(`${key} was gone, and is shown`)
        },
        () => {},
      )
    },
    come() {
      if (stopOther) return
      stopOther = new AbortController()
      ended.push(other.run(stopOther.signal))
    },
    async go() {
      stopOther?.abort()
      stopOther = undefined
      await Promise.resolve() // it ends with that
    },
  } satisfies { [Kind in Step["do"]]: (step: Extract<Step, { do: Kind }>) => void | Promise<void> }
  for (const one of steps) await (act[one.do] as (step: Step) => void | Promise<void>)(one)

  const reached = cache.reached({ name: "a", namespace: "x" }, server.version)
  server.heal()
  await clock.advance(20 * 60_000)
  await reached
  expect(catchUps.open, "requests to catch up that never ended").toBe(0)
  const watches = server.openWatches
  const names = stopOther && new Map(other.entries())
  stop.abort()
  stopOther?.abort()
  await Promise.all(ended)
  await clock.advance(0)
  return { server, cache, names, watches, replays, listenerErrors }
}

for (const stream of [true, false])
  test(`whatever happened, once it is over the cache shows what is (${stream ? "streamed" : "paged"})`, async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), fc.nat(), async (steps, seed) => {
        const { server, cache, names, watches, replays, listenerErrors } = await play(steps, { seed, stream })
        expect(listenerErrors).toEqual([])
        expect(cache.failure).toBeUndefined()
        expect(cache.hasSynced).toBe(true)

        const spoiled = [...server.objects].filter(([, object]) => !(object as unknown as Row).colors)
        expect(cache.unreadable).toEqual(new Map(spoiled.map(([key, { metadata }]) => [key, metadata.resourceVersion])))
        const expected = new Map<string, Row>()
        for (const [key, object] of server.objects) {
          // For an unreadable object the last readable version is shown, if one of the same object was ever seen.
          const known = cache.get(key)
          if (!cache.unreadable.has(key)) expected.set(key, rowOf(object))
          else if (known && known.uid === object.metadata.uid) expected.set(key, known)
        }
        expect(new Map(cache.entries())).toEqual(expected)
        expect(cache.size).toBe(expected.size)
        for (const color of ["red", "green", "blue"])
          expect(new Set(cache.keysBy("color", color)), color).toEqual(
            new Set([...expected].filter(([, { colors }]) => colors.includes(color)).map(([key]) => key)),
          )
        for (const { rows } of replays) expect(rows).toEqual(expected)
        if (names) expect(names).toEqual(new Map([...server.objects].map(([key, object]) => [key, namesOf(object)])))
        expect(watches, "one for both").toBe(1)
        expect(server.openWatches).toBe(0)
      }),
      { numRuns: runs },
    )
  }, 120_000)
