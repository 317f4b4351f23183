import fc from "fast-check"
import { describe, expect, test } from "vitest"
import type { Client } from "./client/client.ts"
import { KubeError } from "./client/errors.ts"
import { type Clock, type VirtualClock, virtualClock } from "./clock.ts"
import { type Election, type ElectionOptions, type Lease, takePartInElection } from "./leader.ts"
import { seededRandom } from "./random.ts"
import { silentLogger } from "./silent-logger.ts"

/** One Lease, kept as the API server keeps it. */
function leaseServer() {
  let version = 100
  let stored: Lease | undefined
  const microTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/
  const writes: Lease[] = []
  const store = (object: Lease, uid: string) => {
    const { acquireTime, renewTime, leaseDurationSeconds } = object.spec ?? {}
    for (const time of [acquireTime, renewTime]) {
      if (time !== undefined && !microTime.test(time)) throw new KubeError("Invalid", `cannot parse ${time}`)
    }
    if (leaseDurationSeconds !== undefined && !(leaseDurationSeconds > 0)) throw new KubeError("Invalid", "duration")
    stored = structuredClone({
      ...object,
      metadata: { ...object.metadata, uid, resourceVersion: String(++version) },
    })
    writes.push(structuredClone(stored))
    return structuredClone(stored)
  }
  return {
    get stored() {
      return stored
    },
    writes,
    get(): Lease {
      if (!stored) throw new KubeError("NotFound", "404")
      return structuredClone(stored)
    },
    create(object: Lease) {
      if (stored) throw new KubeError("Exists", "409")
      return store(object, `uid-${version}`)
    },
    replace(object: Lease) {
      const { uid, resourceVersion } = object.metadata
      if (uid && stored?.metadata.uid !== uid) throw new KubeError("Conflict", "uid precondition")
      if (!stored) return store(object, `uid-${version}`) // Leases may be created by a PUT
      if (stored.metadata.resourceVersion !== resourceVersion) throw new KubeError("Conflict", "409")
      return store(object, stored.metadata.uid!)
    },
    delete() {
      stored = undefined
    },
    annotate() {
      if (stored)
        store({ ...stored, metadata: { ...stored.metadata, annotations: { by: "hand" } } }, stored.metadata.uid!)
    },
  }
}
type Server = ReturnType<typeof leaseServer>
type Verb = "get" | "create" | "replace"
type Leg = { ms: number; lost?: boolean }
type Network = (verb: Verb) => { there: Leg; back: Leg; error?: KubeError | undefined }

const fast: Network = () => ({ there: { ms: 1 }, back: { ms: 1 } })

/**
 * A process: its clock may run fast or slow and knows nothing of the others' time of day, and it can be stopped
 * (SIGSTOP, a long garbage collection) while its monotonic clock goes on.
 */
function startProcess(world: { clock: VirtualClock; server: Server }, given: Partial<Given> & { identity: string }) {
  const { clock, server } = world
  const { identity, rate = 1, timeOfDay = 0, seed = 1, options = {} } = given
  const state = { network: given.network ?? fast, stopped: false, killed: false, reached: 0 }
  const held: (() => void)[] = []
  const whenRunning = (callback: () => void) => (state.stopped ? void held.push(callback) : callback())
  const own: Clock = {
    now: () => timeOfDay + clock.now() * rate,
    monotonic: () => clock.monotonic() * rate,
    after(ms, callback) {
      let cancelled = false
      const cancel = clock.after(ms / rate, () => whenRunning(() => cancelled || callback()))
      return () => {
        cancelled = true
        cancel()
      }
    },
  }
  const request =
    (verb: Verb) =>
    (...args: unknown[]) =>
      new Promise((resolve, reject) => {
        const { there, back, error } = state.network(verb)
        if (there.lost) return
        clock.after(there.ms, () => {
          let answer: () => void
          try {
            if (error) throw error
            const lease = verb === "get" ? server.get() : server[verb](structuredClone(args[1]) as Lease)
            state.reached++
            answer = () => resolve(lease)
          } catch (failure) {
            answer = () => reject(failure)
          }
          if (!back.lost) clock.after(back.ms, () => whenRunning(answer))
        })
      })
  const client = { get: request("get"), create: request("create"), replace: request("replace") }
  const election = takePartInElection(
    { client: client as unknown as Client, clock: own, random: seededRandom(seed), log: silentLogger },
    { namespace: "aim", name: "aim", identity, ...options },
  )
  return Object.assign(election as Election, {
    identity,
    state,
    passes() {
      try {
        election.guard()
        return true
      } catch (error) {
        expect(error).toMatchObject({ kind: "WritesRefused" })
        return false
      }
    },
    stop() {
      state.stopped = true
    },
    kill() {
      state.stopped = state.killed = true
    },
    resume() {
      if (state.killed) return
      state.stopped = false
      for (const callback of held.splice(0)) clock.after(0, callback) // one by one, promises settle in between
    },
  })
}
type Given = {
  identity: string
  network: Network
  rate: number
  timeOfDay: number
  seed: number
  options: Partial<ElectionOptions>
}

function newWorld() {
  const clock = virtualClock()
  const server = leaseServer()
  return {
    clock,
    server,
    start: (given: Partial<Given> & { identity: string }) => startProcess({ clock, server }, given),
  }
}

const first = { trustAbsence: true }

/** Advances until it holds, and returns how long that took. */
async function until(clock: VirtualClock, holds: () => boolean, limitMs = 120_000) {
  const began = clock.now()
  while (!holds()) {
    if (clock.now() - began > limitMs) throw new Error(`not within ${limitMs} ms`)
    await clock.advance(10)
  }
  return clock.now() - began
}

describe("where there is no Lease", () => {
  const leadsAfter = async (trustAbsence: ElectionOptions["trustAbsence"]) => {
    const { clock, start } = newWorld()
    const a = start({ identity: "a", options: trustAbsence === undefined ? {} : { trustAbsence } })
    return until(clock, () => a.isLeader)
  }
  test("it leads at once where no other can have acted", async () =>
    expect(await leadsAfter(async () => true)).toBeLessThan(100))
  for (const [name, trustAbsence] of Object.entries({
    "another may have acted": async (): Promise<boolean> => false,
    "that cannot be found out": async (): Promise<boolean> => {
      throw new KubeError("Forbidden", "403")
    },
    "no answer comes": () => new Promise<boolean>(() => {}),
  }))
    test(`it waits for a whole lease where ${name}`, async () =>
      expect(await leadsAfter(trustAbsence)).toBeGreaterThanOrEqual(15_000))

  test("of two that come at once one leads, and the other stands by", async () => {
    const { clock, start } = newWorld()
    const options = { trustAbsence: async () => true }
    const both = ["a", "b"].map((identity, seed) => start({ identity, options, seed }))
    await until(clock, () => both.some(each => each.isLeader), 1000)
    await clock.advance(60_000)
    expect(both.filter(each => each.passes())).toHaveLength(1)
  })

  test("one that finds the Lease of another while it looks around does not take it", async () => {
    const { clock, server, start } = newWorld()
    const look = Promise.withResolvers<boolean>()
    const a = start({ identity: "a", options: { trustAbsence: () => look.promise } })
    await until(clock, () => server.stored !== undefined, 100)
    const stored = server.get()
    server.replace({ ...stored, spec: { ...stored.spec, holderIdentity: "b" } })
    look.resolve(true)
    await clock.advance(5000)
    expect(a.passes()).toBe(false)
  })
})

describe("an election", () => {
  test("the first to come leads, and writes the Lease as client-go does", async () => {
    const { clock, server, start } = newWorld()
    const a = start({ identity: "a", options: first })
    expect(a.passes()).toBe(false)
    await until(clock, () => a.isLeader, 100)
    expect(a.passes()).toBe(true)
    expect(server.stored).toMatchObject({
      metadata: { name: "aim", namespace: "aim" },
      spec: { holderIdentity: "a", leaseDurationSeconds: 15, leaseTransitions: 0 },
    })
    await clock.advance(60_000)
    expect(a.passes()).toBe(true)
    expect(server.stored!.spec!.renewTime! > server.stored!.spec!.acquireTime!).toBe(true)
    expect(server.writes.length).toBeGreaterThan(24)
    expect(server.writes.length).toBeLessThan(40)
  })

  test("where there is no Lease, it waits for a holder that may not know yet", async () => {
    const { clock, server, start } = newWorld()
    const a = start({ identity: "a" })
    await clock.advance(14_900)
    expect(server.stored!.spec!.holderIdentity).toBeUndefined()
    expect(a.isLeader).toBe(false)
    expect(await until(clock, () => a.isLeader)).toBeLessThan(300)
  })

  test("a second stands by until the first dies, then takes over within 15 s and a retry", async () => {
    const { clock, server, start } = newWorld()
    const a = start({ identity: "a", options: first })
    await until(clock, () => a.isLeader)
    const b = start({ identity: "b", seed: 2, timeOfDay: 1e12 })
    await clock.advance(120_000)
    expect([a.passes(), b.passes()]).toEqual([true, false])
    a.stop()
    const took = await until(clock, () => b.isLeader)
    expect(took).toBeGreaterThan(13_000)
    expect(took).toBeLessThan(15_000 + 2_400 + 100)
    expect(server.stored!.spec).toMatchObject({ holderIdentity: "b", leaseTransitions: 1 })
    expect(a.passes()).toBe(false)
    a.resume()
    await clock.advance(60_000)
    expect([a.passes(), b.passes()]).toEqual([false, true])
    expect(await a.lost).toContain("not renewed for 10 s")
  })

  test("a stopped process refuses writes the moment it goes on, before any timer of its own", async () => {
    const { clock, start } = newWorld()
    const a = start({ identity: "a", options: first })
    await until(clock, () => a.isLeader)
    a.stop()
    await clock.advance(7_000)
    expect(a.isLeader).toBe(true)
    await clock.advance(3_000)
    expect(a.isLeader).toBe(false)
    expect(a.passes()).toBe(false)
    a.resume() // a late answer or renewal does not bring it back
    await clock.advance(60_000)
    expect(a.passes()).toBe(false)
  })

  test("a renewal that was sent in time and answered too late does not bring the lead back", async () => {
    const { clock, start } = newWorld()
    const a = start({ identity: "a", options: first })
    await until(clock, () => a.isLeader)
    const renewedAt = clock.now()
    await clock.advance(3_000)
    let sent = 0
    a.state.network = () => {
      sent = clock.now()
      return { there: { ms: 1 }, back: { ms: 100 } }
    }
    await until(clock, () => sent > 0)
    a.stop()
    await until(clock, () => !a.isLeader)
    expect(sent - renewedAt).toBeGreaterThan(3_000)
    a.resume() // and the answer is there
    await clock.advance(0)
    expect(a.passes()).toBe(false)
    expect(await a.lost).toContain("not renewed")
  })

  test("a candidate that was stopped while it took the Lease leads a little later", async () => {
    const { clock, server, start } = newWorld()
    const a = start({ identity: "a", options: first, network: () => ({ there: { ms: 1 }, back: { ms: 100 } }) })
    await until(clock, () => server.stored?.spec?.holderIdentity === "a")
    a.stop()
    await clock.advance(11_000)
    let lost = false
    a.lost.then(() => (lost = true))
    a.resume()
    expect(await until(clock, () => a.isLeader)).toBeLessThan(3_000)
    expect(lost).toBe(false)
    expect(server.stored!.spec!.leaseTransitions).toBe(0)
  })

  test("the time counts from when the renewal was sent, not from when its answer came", async () => {
    const { clock, start } = newWorld()
    const a = start({ identity: "a", options: first })
    await until(clock, () => a.isLeader)
    a.state.network = () => ({ there: { ms: 4000 }, back: { ms: 900 } })
    await clock.advance(60_000)
    expect(a.isLeader).toBe(true) // slow, but in time
    let lastSent = 0
    a.state.network = () => {
      lastSent = clock.now()
      return { there: { ms: 4000 }, back: { ms: 900 } }
    }
    await until(clock, () => lastSent > 0)
    const sent = lastSent
    a.state.network = () => ({ there: { ms: 0, lost: true }, back: { ms: 0 } })
    await until(clock, () => !a.isLeader)
    expect(clock.now() - sent).toBeGreaterThanOrEqual(10_000)
    expect(clock.now() - sent).toBeLessThan(10_020)
  })

  test("without the server it refuses after 10 s and reports the loss, though the guard is not called", async () => {
    const { clock, server, start } = newWorld()
    const a = start({ identity: "a", options: first })
    await until(clock, () => a.isLeader)
    let lost: string | undefined
    a.lost.then(why => (lost = why))
    a.state.network = () => ({ there: { ms: 1 }, back: { ms: 1 }, error: new KubeError("Unreachable", "no route") })
    await clock.advance(7_500)
    expect(lost).toBeUndefined()
    await clock.advance(2_500)
    expect(lost).toContain("not renewed")
    a.state.network = fast
    const { length } = server.writes
    await Promise.all([a.release(), clock.advance(10_000)])
    expect(server.writes).toHaveLength(length) // writes of ours may be under way: it runs out by itself
  })

  test("short trouble is survived", async () => {
    const { clock, start } = newWorld()
    const a = start({ identity: "a", options: first })
    await until(clock, () => a.isLeader)
    const errors = ["Unreachable", "Throttled", "UnknownOutcome", "Forbidden"] as const
    for (const kind of errors) {
      a.state.network = () => ({ there: { ms: 1 }, back: { ms: 1 }, error: new KubeError(kind, kind) })
      await clock.advance(5000)
      expect(a.trouble).toBeDefined()
      a.state.network = fast
      await clock.advance(5000)
      expect(a.trouble).toBeUndefined()
    }
    expect(a.passes()).toBe(true)
  })

  test("a renewal whose answer was lost, or a foreign label, is no reason to give up", async () => {
    const { clock, server, start } = newWorld()
    const a = start({ identity: "a", options: first })
    await until(clock, () => a.isLeader)
    a.state.network = verb => ({ there: { ms: 1 }, back: { ms: 1, lost: verb === "replace" } })
    await clock.advance(3_000)
    a.state.network = fast
    await clock.advance(8_000)
    server.annotate()
    const { length } = server.writes
    expect(await until(clock, () => server.writes.length > length)).toBeLessThan(2_450) // not a retry later
    await clock.advance(30_000)
    expect(a.passes()).toBe(true)
    expect(server.stored!.spec!.leaseTransitions).toBe(0)
  })

  test("released, it hands the Lease on at once and refuses writes before that", async () => {
    const { clock, server, start } = newWorld()
    const a = start({ identity: "a", options: first })
    const b = start({ identity: "b", seed: 2 })
    await until(clock, () => a.isLeader)
    await clock.advance(5_000)
    const released = a.release()
    expect(a.passes()).toBe(false)
    expect(server.stored!.spec!.holderIdentity).toBe("a")
    const took = await until(clock, () => b.isLeader)
    expect(took).toBeLessThan(2_500)
    await released
    expect(server.writes.find(({ spec }) => spec?.holderIdentity === "")?.spec).toMatchObject({
      leaseDurationSeconds: 1,
      leaseTransitions: 0,
    })
    expect(server.stored!.spec).toMatchObject({ holderIdentity: "b", leaseDurationSeconds: 15, leaseTransitions: 1 })
  })

  test("released while a renewal of its own is under way, it still hands on", async () => {
    const { clock, server, start } = newWorld()
    const a = start({ identity: "a", options: first })
    await until(clock, () => a.isLeader)
    a.state.network = verb => ({ there: { ms: 100 }, back: { ms: 1, lost: verb === "replace" } })
    await clock.advance(2_350) // a renewal was sent and its answer will not come
    a.state.network = fast
    const released = a.release()
    await clock.advance(10_000)
    await released
    expect(server.stored!.spec!.holderIdentity).toBe("")
  })

  test.each([2_100, 2_700])("released while its taking is under way (%d ms), it leaves nothing behind", async ms => {
    const { clock, server, start } = newWorld()
    const a = start({ identity: "a", options: first, network: () => ({ there: { ms: 500 }, back: { ms: 500 } }) })
    await clock.advance(ms) // get, create, and the PUT was sent at 2000, applied at 2500
    expect(server.stored!.spec!.holderIdentity).toBe(ms < 2_500 ? undefined : "a")
    const released = a.release()
    await clock.advance(10_000)
    await released
    expect(server.stored!.spec!.holderIdentity).toBe("")
    expect(a.isLeader).toBe(false)
    expect(clock.nextAt()).toBeUndefined() // nothing keeps the process alive
  })

  test("released as a candidate, it stops asking", async () => {
    const { clock, server, start } = newWorld()
    const a = start({ identity: "a", options: first })
    await until(clock, () => a.isLeader)
    const b = start({ identity: "b" })
    await clock.advance(100)
    const { reached } = b.state
    await Promise.all([b.release(), clock.advance(10_000)])
    a.stop()
    await clock.advance(60_000)
    expect(b.state.reached).toBe(reached)
    expect(server.stored!.spec!.holderIdentity).toBe("a")
  })

  test("abandoned, it refuses writes and lets the Lease run out", async () => {
    const { clock, server, start } = newWorld()
    const a = start({ identity: "a", options: first })
    await until(clock, () => a.isLeader)
    const b = start({ identity: "b" })
    await clock.advance(1000)
    await Promise.all([a.abandon(), clock.advance(0)])
    expect(a.passes()).toBe(false)
    expect(server.stored!.spec!.holderIdentity).toBe("a")
    expect(await until(clock, () => b.isLeader)).toBeGreaterThan(12_000)
  })

  test("a deleted Lease ends the lead, and no process follows before the old leader has surely noticed", async () => {
    const { clock, server, start } = newWorld()
    const a = start({ identity: "a", options: first })
    await until(clock, () => a.isLeader)
    const b = start({ identity: "b", seed: 2 })
    await clock.advance(5_000)
    server.delete()
    await clock.advance(2_600)
    expect(a.passes()).toBe(false)
    expect(await a.lost).toMatch(/deleted|replaced/)
    expect(await until(clock, () => b.isLeader)).toBeGreaterThan(11_000)
  })

  test("a Lease taken by force ends the lead", async () => {
    const { clock, server, start } = newWorld()
    const a = start({ identity: "a", options: first })
    await until(clock, () => a.isLeader)
    const taken = server.get()
    server.replace({ ...taken, spec: { ...taken.spec, holderIdentity: "another" } })
    await clock.advance(2_600)
    expect(a.passes()).toBe(false)
    expect(await a.lost).toContain("held by another")
  })

  test("a Lease that was restored under our name ends the lead: what happened in between is unknown", async () => {
    const { clock, server, start } = newWorld()
    const a = start({ identity: "a", options: first })
    await until(clock, () => a.isLeader)
    const backup = server.get()
    server.delete()
    server.create(backup)
    await clock.advance(2_600)
    expect(await a.lost).toContain("replaced by another")
  })

  test("a holder's own duration counts, and a senseless one is not believed", async () => {
    for (const [leaseDurationSeconds, wait] of [
      [40, 40_000],
      [undefined, 15_000],
    ] as const) {
      const { clock, server, start } = newWorld()
      server.create({
        metadata: { name: "aim", namespace: "aim" },
        spec: { holderIdentity: "old", ...(leaseDurationSeconds && { leaseDurationSeconds }) },
      })
      const a = start({ identity: "a" })
      const took = await until(clock, () => a.isLeader)
      expect(took).toBeGreaterThanOrEqual(wait)
      expect(took).toBeLessThan(wait + 100)
    }
  })

  test("a candidate that may not touch the Lease reports it", async () => {
    const { clock, start } = newWorld()
    const a = start({
      identity: "a",
      network: () => ({ there: { ms: 1 }, back: { ms: 1 }, error: new KubeError("Forbidden", "rbac") }),
    })
    await clock.advance(20_000)
    expect(a.trouble).toMatchObject({ since: 2, error: { kind: "Forbidden" } })
  })
})

type Fault =
  | { kind: "stop"; who: number; ms: number }
  | { kind: "cut"; who: number; ms: number; leg: "there" | "back" | "both" }
  | { kind: "slow"; who: number; ms: number; by: number }
  | { kind: "error"; who: number; ms: number; error: "Unreachable" | "UnknownOutcome" | "Throttled" }
  | { kind: "kill"; who: number }
  | { kind: "release"; who: number }
  | { kind: "delete" }
  | { kind: "annotate" }

const who = fc.nat({ max: 2 })
const ms = fc.oneof(fc.integer({ min: 0, max: 3_000 }), fc.integer({ min: 4_000, max: 40_000 }))
const fault: fc.Arbitrary<Fault> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("stop" as const), who, ms }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("cut" as const),
      who,
      ms,
      leg: fc.constantFrom("there" as const, "back" as const, "both" as const),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant("slow" as const), who, ms, by: fc.integer({ max: 25_000, min: 1 }) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("error" as const),
      who,
      ms,
      error: fc.constantFrom("Unreachable" as const, "UnknownOutcome" as const, "Throttled" as const),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("kill" as const), who }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("release" as const), who }) },
  { weight: 2, arbitrary: fc.constant({ kind: "delete" as const }) },
  { weight: 1, arbitrary: fc.constant({ kind: "annotate" as const }) },
)

test("no two guards ever pass at once, whatever is stopped, cut, slow, killed or deleted; and afterwards one leads", async () => {
  let leads = 0
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ afterMs: fc.integer({ min: 0, max: 15_000 }), fault }), { maxLength: 14 }),
      fc.array(fc.record({ rate: fc.double({ min: 0.85, max: 1.15, noNaN: true }), timeOfDay: fc.nat(1e12) }), {
        minLength: 3,
        maxLength: 3,
      }),
      fc.nat(),
      async (faults, machines, seed) => {
        const world = newWorld()
        const { clock } = world
        const random = seededRandom(seed)
        /** The processes on the three machines; one that ends is started again under another identity. */
        const processes: ReturnType<typeof startProcess>[] = []
        const all: ReturnType<typeof startProcess>[] = []
        const check = () => {
          const leading = all.filter(process => process.isLeader).map(({ identity }) => identity)
          if (leading.length > 1) throw new Error(`at ${clock.now()} ms both lead: ${leading.join(", ")}`)
        }
        let violation: unknown
        const begin = (machine: number) => {
          const process = startProcess(world, {
            ...machines[machine]!,
            identity: `${machine}.${all.length}`,
            seed: seed + all.length,
            network: () => ({ there: { ms: random.next() * 50 }, back: { ms: random.next() * 50 } }),
          })
          processes[machine] = process
          all.push(process)
          process.acquired.then(() => {
            leads++
            try {
              check()
            } catch (error) {
              violation ??= error
            }
          })
          process.lost.then(() => clock.after(1_000, () => processes[machine] === process && begin(machine)))
        }
        for (const machine of [0, 1, 2]) begin(machine)

        const inject = (fault: Fault) => {
          if (fault.kind === "delete") return world.server.delete()
          if (fault.kind === "annotate") return world.server.annotate()
          const process = processes[fault.who]!
          const usual = () => ({ there: { ms: random.next() * 50 }, back: { ms: random.next() * 50 } })
          const forAWhile = (network: Network, ms: number) => {
            process.state.network = network
            clock.after(ms, () => {
              if (process.state.network === network) process.state.network = usual
            })
          }
          switch (fault.kind) {
            case "stop":
              process.stop()
              return void clock.after(fault.ms, () => process.resume())
            case "kill":
              process.kill()
              return begin(fault.who)
            case "release":
              void process.release()
              return begin(fault.who)
            case "cut":
              return forAWhile(
                () => ({
                  there: { ms: 10, lost: fault.leg !== "back" },
                  back: { ms: 10, lost: fault.leg !== "there" },
                }),
                fault.ms,
              )
            case "slow":
              return forAWhile(
                () => ({ there: { ms: random.next() * fault.by }, back: { ms: random.next() * fault.by } }),
                fault.ms,
              )
            case "error":
              return forAWhile(
                () => ({ there: { ms: 5 }, back: { ms: 5 }, error: new KubeError(fault.error, fault.error) }),
                fault.ms,
              )
          }
        }

        const run = async (ms: number) => {
          for (let left = ms; left > 0; left -= 250) {
            await clock.advance(Math.min(left, 250))
            check()
            if (violation) throw violation
          }
        }
        await run(5_000 + random.next() * 20_000)
        for (const { afterMs, fault } of faults) {
          await run(afterMs)
          inject(fault)
        }
        await run(40_000) // the last fault ends
        await run(60_000) // what may have to run out runs out
        expect(processes.filter(process => process.isLeader)).toHaveLength(1)
      },
    ),
    { numRuns: Number(process.env.AIM_ELECTION_RUNS ?? 300) },
  )
  expect(leads).toBeGreaterThan(100)
})
