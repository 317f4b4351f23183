import { describe, expect, test } from "vitest"
import { KubeError } from "./client/errors.ts"
import { virtualClock } from "./clock.ts"
import { createEventRecorder } from "./events.ts"
import { seededRandom } from "./random.ts"
import { silentLogger } from "./silent-logger.ts"

type Stored = { metadata: { name: string; namespace: string } } & Record<string, unknown>

/** Keeps events as an API server does; `fail` may throw before or after a write took place. */
function world(fail: (verb: string, when: "before" | "after") => void = () => {}) {
  const clock = virtualClock(Date.UTC(2026, 0, 1))
  const stored = new Map<string, Stored>()
  let writes = 0
  const client = {
    async create(_resource: unknown, object: Stored) {
      writes++
      fail("create", "before")
      const key = `${object.metadata.namespace}/${object.metadata.name}`
      if (stored.has(key)) throw new KubeError("Exists", "409")
      stored.set(key, structuredClone(object))
      fail("create", "after")
      return object
    },
    async patch(_resource: unknown, name: { namespace: string; name: string }, patch: { body: object }) {
      writes++
      fail("patch", "before")
      const found = stored.get(`${name.namespace}/${name.name}`)
      if (!found) throw new KubeError("NotFound", "404")
      Object.assign(found, patch.body)
      fail("patch", "after")
      return found
    },
  }
  const recorder = createEventRecorder({
    client: client as never,
    clock,
    random: seededRandom(3),
    log: silentLogger,
    identity: "i".repeat(200),
  })
  return {
    clock,
    recorder,
    stored,
    all: () => [...stored.values()],
    get writes() {
      return writes
    },
  }
}

const web = {
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "web", namespace: "shop", uid: "u-1", resourceVersion: "5" },
}
const updated = { type: "Normal" as const, reason: "Updated", message: "web:2 everywhere" }

describe("an event", () => {
  test("has every field that kubectl shows and both APIs check", async () => {
    const { recorder, all } = world()
    recorder.record(web, updated)
    await recorder.flush()
    const [event] = all()
    expect(event!.metadata.name).toMatch(/^web\.[0-9a-f]{16}$/)
    expect(event).toMatchObject({
      apiVersion: "v1",
      kind: "Event",
      metadata: { namespace: "shop" },
      involvedObject: { apiVersion: "apps/v1", kind: "Deployment", name: "web", namespace: "shop", uid: "u-1" },
      type: "Normal",
      reason: "Updated",
      action: "Updated",
      message: "web:2 everywhere",
      count: 1,
      firstTimestamp: "2026-01-01T00:00:00Z",
      lastTimestamp: "2026-01-01T00:00:00Z",
      eventTime: "2026-01-01T00:00:00.000000Z",
      reportingComponent: "autoimagemanager.io/controller",
      reportingInstance: `${"i".repeat(125)}…`,
      source: { component: "autoimagemanager.io/controller" },
    })
  })

  test("of a cluster-scoped object lives in default, without a namespace of its own", async () => {
    const { recorder, all } = world()
    recorder.record({ apiVersion: "v1", kind: "Node", metadata: { name: "n1" } }, updated)
    await recorder.flush()
    expect(all()[0]!.metadata.namespace).toBe("default")
    expect(all()[0]!.involvedObject).toEqual({ apiVersion: "v1", kind: "Node", name: "n1" })
  })

  test("has a valid name whatever the object is called", async () => {
    const { recorder, all } = world()
    for (const name of ["system:node", "a.".repeat(126), "x".repeat(253)]) {
      recorder.record({ apiVersion: "v1", kind: "Thing", metadata: { name } }, updated)
    }
    await recorder.flush()
    for (const { metadata } of all()) {
      expect(metadata.name).toMatch(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/)
      expect(metadata.name.length).toBeLessThanOrEqual(253)
    }
    expect(all()).toHaveLength(3)
    expect(all()[1]!.metadata.name).toContain("a.a.")
  })

  test.each(["x", "xx", "xxx", "xxxx"])("is cut at 1024 bytes, between letters (%s)", async start => {
    const { recorder, all } = world()
    recorder.record(web, { ...updated, message: `${start}${"😀".repeat(500)}` })
    await recorder.flush()
    const message = all()[0]!.message as string
    expect(Buffer.byteLength(message)).toBeLessThanOrEqual(1024)
    expect(Buffer.byteLength(message)).toBeGreaterThan(1015)
    expect(message).toMatch(/^x+😀+…$/u)
  })
})

describe("repeats", () => {
  test("are counted on one event", async () => {
    const { clock, recorder, all } = world()
    for (let i = 0; i < 3; i++) {
      recorder.record(web, updated)
      await recorder.flush()
      await clock.advance(60_000)
    }
    expect(all()).toHaveLength(1)
    expect(all()[0]).toMatchObject({
      count: 3,
      firstTimestamp: "2026-01-01T00:00:00Z",
      lastTimestamp: "2026-01-01T00:02:00Z",
    })
  })

  test("in one turn are one write", async () => {
    const here = world()
    for (let i = 0; i < 100; i++) here.recorder.record(web, updated)
    await here.recorder.flush()
    expect(here.writes).toBe(1)
    expect(here.all()[0]!.count).toBe(100)
  })

  test("of another object, type, reason or uid are another event", async () => {
    const { recorder, all } = world()
    recorder.record(web, updated)
    recorder.record(web, { ...updated, type: "Warning" })
    recorder.record(web, { ...updated, reason: "Other" })
    recorder.record({ ...web, metadata: { ...web.metadata, uid: "u-2" } }, updated)
    recorder.record({ ...web, metadata: { ...web.metadata, name: "api" } }, updated)
    await recorder.flush()
    expect(all().map(event => event.count)).toEqual([1, 1, 1, 1, 1])
  })

  test("after the server has forgotten the event begin a new one", async () => {
    const { clock, recorder, all, stored } = world()
    recorder.record(web, updated)
    await recorder.flush()
    stored.clear()
    recorder.record(web, updated)
    await recorder.flush()
    expect(all()).toHaveLength(1)
    await clock.advance(51 * 60_000)
    recorder.record(web, updated)
    await recorder.flush()
    expect(all().map(event => event.count)).toEqual([2, 1])
  })

  test("with ever new messages end in one event that shows the latest", async () => {
    const { recorder, all } = world()
    for (let i = 1; i <= 20; i++) {
      recorder.record(web, { ...updated, message: `step ${i}` })
      await recorder.flush()
    }
    expect(all()).toHaveLength(11)
    expect(all().at(-1)).toMatchObject({ message: "(combined from similar events): step 20", count: 10 })
  })
})

describe("limits", () => {
  test("one object writes 25 at once, then one in five minutes; others are not held up", async () => {
    const here = world()
    const burst = async (count: number) => {
      const before = here.writes
      for (let i = 0; i < count; i++) {
        here.recorder.record(web, { ...updated, reason: `R${i}` })
        await here.recorder.flush()
      }
      return here.writes - before
    }
    expect(await burst(40)).toBe(25)
    await here.clock.advance(5 * 60_000)
    expect(await burst(40)).toBe(1)
    here.recorder.record({ ...web, metadata: { ...web.metadata, name: "api" } }, updated)
    await here.recorder.flush()
    expect(here.all().at(-1)!.involvedObject).toMatchObject({ name: "api" })
  })

  test("what waits is bounded", async () => {
    const here = world()
    for (let i = 0; i < 5000; i++) {
      here.recorder.record({ apiVersion: "v1", kind: "Pod", metadata: { name: `p${i}`, namespace: "x" } }, updated)
    }
    await here.recorder.flush()
    expect(here.all()).toHaveLength(1024)
  })
})

describe("trouble", () => {
  test("a lost answer does not record an event twice", async () => {
    let failures = 0
    const here = world((verb, when) => {
      if (verb === "create" && when === "after" && failures++ === 0) throw new KubeError("UnknownOutcome", "reset")
    })
    here.recorder.record(web, updated)
    await here.clock.advance(10_000)
    await here.recorder.flush()
    expect(here.all()).toHaveLength(1)
    expect(here.writes).toBe(2)
    here.recorder.record(web, updated)
    await here.recorder.flush()
    expect(here.all().map(event => event.count)).toEqual([2])
  })

  test("a server that stays away costs four attempts, and flush ends", async () => {
    const here = world(() => {
      throw new KubeError("Unreachable", "no route")
    })
    here.recorder.record(web, updated)
    const flushed = here.recorder.flush().then(() => "flushed")
    await here.clock.advance(30_000)
    expect(await flushed).toBe("flushed")
    expect(here.writes).toBe(4)
  })

  test("a refusal is not repeated, and the next event is sent", async () => {
    let refuse = true
    const here = world(() => {
      if (refuse) throw new KubeError("Forbidden", "namespace is being terminated")
    })
    here.recorder.record(web, updated)
    await here.recorder.flush()
    expect(here.writes).toBe(1)
    refuse = false
    here.recorder.record(web, updated)
    await here.recorder.flush()
    expect(here.all().map(event => event.count)).toEqual([2])
  })

  test("nothing is ever thrown at the caller", () => {
    const { recorder } = world()
    expect(() => recorder.record({ apiVersion: "v1", kind: "Pod" } as never, updated)).not.toThrow()
  })
})
