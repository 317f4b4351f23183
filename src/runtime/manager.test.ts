import { describe, expect, test } from "vitest"
import { KubeError, type Request, type Response, type Transport } from "./client/index.ts"
import { sleep, type VirtualClock, virtualClock } from "./clock.ts"
import type { Controller, Wiring } from "./controller.ts"
import { createLogger } from "./log.ts"
import { type ManagerOptions, runManager } from "./manager.ts"
import { seededRandom } from "./random.ts"
import { core, type KubeObject } from "./resource.ts"

const configMaps = core("configmaps", "ConfigMap")

type Stored = KubeObject & Record<string, unknown>

/** Enough of an API server for a manager: objects by path, conditional PUTs, a watch that shows the first state. */
function apiServer() {
  const objects = new Map<string, Stored>()
  let version = 1
  const state = { down: false, log: [] as string[], beforeEvents: async () => {} }
  const json = (status: number, body: unknown): Response => ({
    status,
    headers: { "content-type": "application/json" },
    body: (async function* () {
      yield Buffer.from(JSON.stringify(body))
    })(),
  })
  const failure = (code: number, reason: string) => json(code, { kind: "Status", status: "Failure", reason, code })
  const store = (path: string, object: Stored) => {
    object.metadata.uid ??= `uid-${version}`
    object.metadata.resourceVersion = String(++version)
    objects.set(path, object)
    return object
  }
  async function* watch(plural: string, isFirst: boolean, signal: AbortSignal) {
    const line = (type: string, object: unknown) => Buffer.from(`${JSON.stringify({ type, object })}\n`)
    for (const [at, object] of objects) if (isFirst && at.includes(`/${plural}/`)) yield line("ADDED", object)
    const annotations = { "k8s.io/initial-events-end": "true" }
    yield line("BOOKMARK", { metadata: { resourceVersion: String(version), annotations } })
    await new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)))
  }
  const transport: Transport & { closed: boolean } = {
    closed: false,
    close() {
      transport.closed = true
    },
    async send({ method, path, body, signal, guard }: Request): Promise<Response> {
      if (state.down) throw new Error("connection refused")
      if (path.includes("/events")) await state.beforeEvents()
      guard?.()
      const [plain, query = ""] = path.split("?")
      const sent = body ? (JSON.parse(body) as Stored) : undefined
      if (method !== "GET") state.log.push(`${method} ${plain}`)
      if (query.includes("watch="))
        return {
          status: 200,
          headers: {},
          body: watch(plain!.split("/").at(-1)!, query.includes("sendInitialEvents"), signal),
        }
      if (method === "POST") {
        const at = `${plain}/${sent!.metadata.name}`
        return objects.has(at) ? failure(409, "AlreadyExists") : json(201, store(at, sent!))
      }
      if (query.includes("limit=1")) return json(200, { metadata: { resourceVersion: String(version) }, items: [] })
      const found = objects.get(plain!)
      if (!found) return failure(404, "NotFound")
      if (method === "GET") return json(200, found)
      const { resourceVersion } = sent!.metadata
      if (resourceVersion !== found.metadata.resourceVersion) return failure(409, "Conflict")
      return json(200, store(plain!, sent!))
    },
  }
  return {
    transport,
    state,
    objects,
    store,
    lease: () => objects.get(leasePath) as Stored & { spec: { holderIdentity?: string } },
  }
}
const leasePath = "/apis/coordination.k8s.io/v1/namespaces/aim/leases/aim"
const mapPath = (name: string) => `/api/v1/namespaces/shop/configmaps/${name}`

const told = (reason: string, message: string) => ({ type: "Normal" as const, reason, message })

/** Writes each config map it sees; `hold` keeps it in the middle of that. */
function writer(hold?: () => Promise<unknown>) {
  const looks: string[] = []
  let wiring!: Wiring
  const controller: Controller = {
    name: "writer",
    permissions: [],
    setup(given) {
      wiring = given
      const maps = wiring.watch(configMaps, {
        project: object => ({ resourceVersion: object.metadata.resourceVersion!, object }),
      })
      maps.subscribe(({ key, initial }) => wiring.enqueue(key, { background: initial }))
      return {
        async reconcile(key) {
          looks.push(key)
          const map = maps.get(key)!.object
          wiring.events.record({ ...map, apiVersion: "v1", kind: "ConfigMap" }, told("Seen", key))
          await hold?.()
          await wiring.client.replace(configMaps, map)
          wiring.events.record({ ...map, apiVersion: "v1", kind: "ConfigMap" }, told("Written", key))
        },
      }
    },
  }
  return { controller, looks, enqueue: (key: string) => wiring.enqueue(key) }
}

function start(
  server: ReturnType<typeof apiServer>,
  options: Partial<ManagerOptions> & { clock: VirtualClock; seed?: number },
) {
  const stop = new AbortController()
  const lines: { level: string; message: string; [fact: string]: unknown }[] = []
  const { seed = 1, ...rest } = options
  let exitCode: number | undefined
  const done = runManager({
    transport: server.transport,
    controllers: [],
    leaderElect: { namespace: "aim", name: "aim", trustAbsence: true },
    random: seededRandom(seed),
    log: createLogger({ level: "debug", clock: options.clock, write: line => lines.push(JSON.parse(line)) }),
    signal: stop.signal,
    ...rest,
  }).then(code => (exitCode = code))
  return {
    done,
    stop: () => stop.abort(),
    lines,
    said: (words: string) => lines.some(({ message }) => message.includes(words)),
    get exitCode() {
      return exitCode
    },
    /** The real server listens in real time. */
    async port() {
      while (!lines.some(({ message }) => message === "serving health and metrics")) await new Promise(setImmediate)
      return lines.find(({ message }) => message === "serving health and metrics")!.port as number
    },
  }
}

function oneMap() {
  const server = apiServer()
  server.store(mapPath("a"), { metadata: { name: "a", namespace: "shop" } })
  return server
}

describe("a manager", () => {
  test("leads, looks, ends on the signal: events sent, Lease released, nothing left open", async () => {
    const clock = virtualClock()
    const server = oneMap()
    const { controller, looks } = writer()
    const manager = start(server, { clock, controllers: [controller] })
    await clock.advance(1_000)
    expect(looks).toEqual(["shop/a"])
    expect(server.lease().spec.holderIdentity).toMatch(/^[0-9a-f-]{36}$/)
    manager.stop()
    await clock.advance(1_000)
    expect(manager.exitCode).toBe(0)
    expect(server.state.log.filter(line => !line.includes("leases")).sort()).toEqual([
      expect.stringMatching(/^POST .*events$/),
      expect.stringMatching(/^POST .*events$/),
      `PUT ${mapPath("a")}`,
    ])
    expect(server.state.log.at(-1)).toBe(`PUT ${leasePath}`)
    expect(server.lease().spec.holderIdentity).toBe("")
    expect(server.transport.closed).toBe(true)
    expect(clock.nextAt()).toBeUndefined()
  })

  test("on the signal, finishes the write in hand before it releases the Lease", async () => {
    const clock = virtualClock()
    const server = oneMap()
    let release!: (value?: unknown) => void
    const { controller } = writer(() => new Promise(resolve => (release = resolve)))
    const manager = start(server, { clock, controllers: [controller] })
    await clock.advance(1_000)
    manager.stop()
    await clock.advance(8_000)
    expect(manager.exitCode).toBeUndefined()
    expect(server.lease().spec.holderIdentity).not.toBe("") // renewed meanwhile
    server.state.beforeEvents = () => sleep(clock, 200)
    release()
    await clock.advance(500)
    expect(manager.exitCode).toBe(0)
    expect(server.state.log.slice(server.state.log.indexOf(`PUT ${mapPath("a")}`))).toEqual([
      `PUT ${mapPath("a")}`,
      "POST /api/v1/namespaces/shop/events", // the event of the last look
      `PUT ${leasePath}`,
    ])
    expect(server.lease().spec.holderIdentity).toBe("")
  })

  test("with work in hand that does not end, lets the Lease expire instead of releasing it", async () => {
    const clock = virtualClock()
    const server = oneMap()
    const { controller } = writer(() => new Promise(() => {}))
    const manager = start(server, { clock, controllers: [controller], graceMs: 5_000 })
    await clock.advance(1_000)
    manager.stop()
    await clock.advance(6_000)
    expect(manager.exitCode).toBe(0)
    expect(server.lease().spec.holderIdentity).not.toBe("")
  })

  test("deposed, refuses the write in hand and ends with 1", async () => {
    const clock = virtualClock()
    const server = oneMap()
    let release!: (value?: unknown) => void
    const { controller } = writer(() => new Promise(resolve => (release = resolve)))
    const manager = start(server, { clock, controllers: [controller] })
    await clock.advance(1_000)
    const taken = server.lease()
    server.store(leasePath, { ...structuredClone(taken), spec: { ...taken.spec, holderIdentity: "another" } } as never)
    await clock.advance(2_500)
    expect(manager.said("lost the lead")).toBe(true)
    release()
    await clock.advance(2_000)
    expect(manager.exitCode).toBe(1)
    expect(server.state.log).not.toContain(`PUT ${mapPath("a")}`)
    expect(manager.lines.filter(({ level }) => level === "error")).toEqual([])
    expect(server.lease().spec.holderIdentity).toBe("another")
  })

  test("two of them: one looks, the other stands by and takes over when the first has ended", async () => {
    const clock = virtualClock()
    const server = oneMap()
    const [one, two] = [writer(), writer()]
    const first = start(server, { clock, controllers: [one.controller] })
    await clock.advance(500)
    const second = start(server, { clock, controllers: [two.controller], seed: 2 })
    await clock.advance(60_000)
    expect([one.looks, two.looks]).toEqual([["shop/a"], []])
    first.stop()
    await clock.advance(4_000)
    expect(two.looks).toEqual(["shop/a"])
    second.stop()
    await clock.advance(1_000)
    expect([first.exitCode, second.exitCode]).toEqual([0, 0])
  })

  test("ends on the signal while it stands by", async () => {
    const clock = virtualClock()
    const server = oneMap()
    const first = start(server, { clock })
    await clock.advance(500)
    const { controller, looks } = writer()
    const second = start(server, { clock, controllers: [controller], seed: 2 })
    await clock.advance(5_000)
    second.stop()
    await clock.advance(500)
    expect(second.exitCode).toBe(0)
    expect(looks).toEqual([])
    first.stop()
    await clock.advance(500)
  })

  test("without election it writes no Lease and needs no guard", async () => {
    const clock = virtualClock()
    const server = oneMap()
    const { controller } = writer()
    const manager = start(server, { clock, controllers: [controller], leaderElect: false })
    await clock.advance(1_000)
    expect(server.state.log).toContain(`PUT ${mapPath("a")}`)
    expect(server.state.log.join()).not.toContain("leases")
    manager.stop()
    await clock.advance(1_000)
    expect(manager.exitCode).toBe(0)
  })

  test("a controller that cannot be set up ends the process with 1, the Lease released", async () => {
    const clock = virtualClock()
    const server = oneMap()
    const broken: Controller = {
      name: "broken",
      permissions: [],
      setup() {
        throw new KubeError("Invalid", "a bug")
      },
    }
    for (const warm of [false, true]) {
      const manager = start(server, { clock, controllers: [writer().controller, broken], warm })
      await clock.advance(2_000)
      expect(manager.exitCode).toBe(1)
      expect(manager.lines.find(({ level }) => level === "error")).toMatchObject({ controller: "broken" })
      expect(server.lease().spec.holderIdentity).toBe("")
    }
  })

  /** Another process has the Lease; the candidate's controller opens a cache for each key, and writes when it looks. */
  function standingBy({ warm = true } = {}) {
    const clock = virtualClock()
    const server = oneMap()
    const first = start(server, { clock })
    const looks: string[] = []
    const secrets = core("secrets", "Secret")
    const project = (object: KubeObject) => ({ resourceVersion: object.metadata.resourceVersion! })
    const controller: Controller = {
      name: "warmed",
      permissions: [],
      setup(wiring) {
        const maps = wiring.watch(configMaps, { project })
        maps.subscribe(({ key }) => wiring.enqueue(key))
        let more: ReturnType<typeof wiring.watch> | undefined
        return {
          warm(key) {
            looks.push(`warm ${key}`)
            more ??= wiring.watch(secrets, { project })
            // The write that must not happen is tried, and refused.
            wiring.client
              .patch(configMaps, { name: "a", namespace: "shop" }, { type: "merge", body: {} })
              .catch(error => looks.push(error.kind))
          },
          async reconcile(key) {
            looks.push(`${key} ${more?.hasSynced} ${more?.isCurrent}`)
            await more?.current()
            looks.push(`${key} ${more?.isCurrent}`)
          },
        }
      },
    }
    const metrics = { host: "127.0.0.1", port: 0 }
    const second = () => start(server, { clock, controllers: [controller], seed: 2, warm, metrics })
    return { clock, server, first, second, looks }
  }

  test("a warm candidate has opened what it will need, wrote nothing, and looks at once when it leads", async () => {
    const { clock, server, first, second, looks } = standingBy()
    await clock.advance(500)
    const candidate = second()
    const port = await candidate.port()
    const ask = async (path: string) => (await fetch(`http://127.0.0.1:${port}${path}`)).text()
    await clock.advance(60_000)
    const written = server.state.log.filter(line => !line.includes("leases"))
    expect(written).toEqual([])
    expect(looks).toEqual(["warm shop/a", "WritesRefused"])
    expect(await ask("/readyz")).toBe("ok")
    const text = await ask("/metrics")
    expect(text).toContain('aim_standby_warm{name="aim"} 1')
    expect(text).toContain('aim_cache_objects{controller="warmed",resource="secrets"}')
    expect(text).toContain('workqueue_depth{name="warmed",controller="warmed"} 0')

    first.stop()
    await clock.advance(700)
    expect(looks.slice(2)).toEqual(["shop/a true false", "shop/a true"])
    expect(await ask("/metrics")).toContain('aim_standby_warm{name="aim"} 0')
    candidate.stop()
    await clock.advance(1_000)
    expect(candidate.exitCode).toBe(0)
  })

  test("with --warm=false a candidate opens nothing before it leads", async () => {
    const { clock, first, second, looks } = standingBy({ warm: false })
    await clock.advance(500)
    const candidate = second()
    const port = await candidate.port()
    await clock.advance(60_000)
    const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
    expect(metrics).toContain('aim_standby_warm{name="aim"} 0')
    expect(metrics).not.toContain("aim_cache_objects{")
    expect(looks).toEqual([])
    first.stop()
    await clock.advance(1_000)
    expect(looks).toEqual(["shop/a undefined undefined", "shop/a undefined"])
    candidate.stop()
    await clock.advance(1_000)
  })

  test("a warm candidate is ready when its caches are in sync, those it opened for a key too", async () => {
    const { clock, server, first, second } = standingBy()
    await clock.advance(500)
    const { send } = server.transport
    const held = Promise.withResolvers<void>()
    server.transport.send = async request => {
      if (request.path.includes("/secrets")) await held.promise
      return send(request)
    }
    const candidate = second()
    const port = await candidate.port()
    const ready = async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).text()
    await clock.advance(5_000)
    expect(await ready()).toContain("[-]caches failed: standing by, and warming the caches of warmed")
    held.resolve()
    await clock.advance(1_000)
    expect(await ready()).toBe("ok")
    for (const each of [first, candidate]) each.stop()
    await clock.advance(1_000)
  })

  test("reports its health: standing by is ready, caches that wait are not, a look that hangs is dead", async () => {
    const clock = virtualClock()
    const server = oneMap()
    const metrics = { host: "127.0.0.1", port: 0 }
    const { controller } = writer(() => new Promise(() => {}))
    const first = start(server, { clock, controllers: [controller], metrics })
    const port = await first.port()
    const ask = async (path: string, at = port) => {
      const response = await fetch(`http://127.0.0.1:${at}${path}`)
      return `${response.status} ${await response.text()}`
    }
    expect(await ask("/readyz")).toBe("200 ok") // a candidate
    await clock.advance(1_000)
    expect(await ask("/readyz")).toBe("200 ok")
    const text = await ask("/metrics")
    expect(text).toContain('leader_election_master_status{name="aim"} 1')
    expect(text).toContain('aim_cache_objects{controller="writer",resource="configmaps"} 1')
    expect(text).toMatch(/rest_client_requests_total\{code="404",method="GET",verb="get",resource="leases[^"]*"\} 1/)
    expect(text).toContain("aim_event_loop_lag_seconds 0")

    const second = start(server, { clock, metrics, seed: 2 })
    const standby = await second.port()
    await clock.advance(1_000)
    expect(await ask("/readyz", standby)).toBe("200 ok")
    expect(await ask("/metrics", standby)).toContain('leader_election_master_status{name="aim"} 0')

    await clock.advance(15 * 60_000)
    expect(await ask("/livez")).toContain("[-]workers failed: writer has looked at shop/a for 15 minutes")
    expect(await ask("/livez", standby)).toBe("200 ok")

    server.state.down = true
    await clock.advance(20_000)
    expect(await ask("/readyz", standby)).toBe("200 ok")
    await clock.advance(20_000)
    expect(await ask("/readyz", standby)).toContain("the Lease is out of reach")
    second.stop()
    await clock.advance(30_000)
    expect([await first.done, await second.done]).toEqual([1, 0])
  })

  test("is not ready before its caches are in sync", async () => {
    const clock = virtualClock()
    const server = oneMap()
    const never: Transport = {
      ...server.transport,
      send: request =>
        request.path.includes("configmaps")
          ? new Promise((_resolve, reject) => request.signal.addEventListener("abort", () => reject(new Error("cut"))))
          : server.transport.send(request),
    }
    const manager = start(server, {
      clock,
      transport: never,
      controllers: [writer().controller],
      leaderElect: false,
      metrics: { host: "127.0.0.1", port: 0 },
    })
    const port = await manager.port()
    await clock.advance(5_000)
    const response = await fetch(`http://127.0.0.1:${port}/readyz`)
    expect(await response.text()).toContain("[-]caches failed: waiting for the caches of writer")
    manager.stop()
    await clock.advance(1_000)
    expect(await manager.done).toBe(0)
  })

  test("a kind that is not installed keeps nothing else unready, and is reconciled when it is installed", async () => {
    const clock = virtualClock()
    const server = oneMap()
    let isInstalled = false
    const missing = { kind: "Status", status: "Failure", reason: "NotFound", code: 404 }
    const transport: Transport = {
      ...server.transport,
      send: async request =>
        request.path.includes("podtemplates") && !isInstalled
          ? {
              status: 404,
              headers: { "content-type": "application/json" },
              body: (async function* () {
                yield Buffer.from(JSON.stringify(missing))
              })(),
            }
          : server.transport.send(request),
    }
    const optional: Controller = {
      name: "optional",
      permissions: [],
      setup({ watch, log }) {
        watch(core("podtemplates", "PodTemplate"), {
          project: ({ metadata }) => ({ resourceVersion: metadata.resourceVersion! }),
        })
        log.info("set up")
        return { reconcile: async () => {} }
      },
    }
    const readiness = async (controllers: Controller[]) => {
      const metrics = { host: "127.0.0.1", port: 0 }
      const manager = start(server, { clock, transport, controllers, leaderElect: false, metrics })
      const port = await manager.port()
      await clock.advance(5_000)
      const ask = async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).text()
      return { manager, ask }
    }
    const { manager, ask } = await readiness([writer().controller, optional])
    const alone = await readiness([optional])
    expect(await ask()).toBe("ok")
    expect(await alone.ask()).toContain("[-]caches failed: waiting for the caches of optional")
    isInstalled = true
    await clock.advance(60_000)
    expect(await ask()).toBe("ok")
    expect(await alone.ask()).toBe("ok")
    const inSync = manager.lines.filter(({ message }) => message.includes("caches are in sync"))
    expect(inSync.map(({ controller }) => controller)).toEqual(["writer", "optional"])
    manager.stop()
    alone.manager.stop()
    await clock.advance(1_000)
    expect([await manager.done, await alone.manager.done]).toEqual([0, 0])
  })

  test("a port that is taken ends it with 1 before anything begins", async () => {
    const clock = virtualClock()
    const server = oneMap()
    const metrics = { host: "127.0.0.1", port: 0 }
    const first = start(server, { clock, metrics, leaderElect: false })
    const port = await first.port()
    const second = start(server, { clock, metrics: { ...metrics, port }, controllers: [writer().controller] })
    expect(await second.done).toBe(1)
    expect(server.state.log).toEqual([])
    first.stop()
    expect(await first.done).toBe(0)
  })
})
