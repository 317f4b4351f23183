import { setImmediate as nextTurn } from "node:timers/promises"
import { describe, expect, test } from "vitest"
import { json } from "#runtime/client/test-server.ts"
import { systemClock } from "#runtime/clock.ts"
import type { Destination } from "./connect.ts"
import { nameLookup } from "./names.ts"
import type { ServiceSeen } from "./rules.ts"
import { egressOf, requestAt } from "./test-egress.ts"
import { nameServer } from "./test-name-server.ts"
import { cleanups, internet, serve, serveRaw } from "./test-servers.ts"

describe("a request", () => {
  test("has what it was given and nothing of ours", async () => {
    const server = await serve((_, response) => json(response, { value: 1 }, 200, { "set-cookie": "a=b" }))
    for (const name of ["http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy"]) {
      process.env[name] = "http://127.0.0.1:1"
      cleanups.push(() => delete process.env[name])
    }
    const ask = egressOf({ allow: [`shop=127.0.0.1:${server.port}`] })
    const headers = { authorization: "Bearer theirs", "X-Scope": ["a", "b"] }
    const answer = await ask(`http://127.0.0.1:${server.port}/q?a=%20#x`, { method: "POST", headers, body: '{"ä":1}' })
    expect(answer).toMatchObject({ ok: true, status: 200, body: Buffer.from('{"value":1}') })
    await ask(`http://127.0.0.1:${server.port}/`)
    expect(server.seen.map(({ method, url, body }) => `${method} ${url} ${body}`)).toEqual([
      'POST /q?a=%20 {"ä":1}',
      "GET / ",
    ])
    expect(server.seen.map(seen => seen.headers)).toEqual([
      {
        authorization: "Bearer theirs",
        "x-scope": "a, b",
        host: `127.0.0.1:${server.port}`,
        "accept-encoding": "identity",
        "content-length": "8",
        connection: "close",
      },
      { host: `127.0.0.1:${server.port}`, "accept-encoding": "identity", connection: "close" },
    ])
    expect(server.connections).toBe(2) // one each
  })

  test("without a body is still whole", async () => {
    const server = await serve((_, response) => response.writeHead(204).end())
    expect(await requestAt(server.port, { method: "POST" })).toMatchObject({ status: 204, body: Buffer.alloc(0) })
    expect(server.seen[0]!.headers["content-length"]).toBe("0")
  })

  test.each([301, 302, 304, 400, 404, 429, 500, 503])("is answered with %s: that is an answer", async status => {
    const server = await serve((_, response) => response.writeHead(status).end(status === 304 ? "" : "because"))
    const body = Buffer.from(status === 304 ? "" : "because")
    expect(await requestAt(server.port)).toMatchObject({ ok: true, status, body })
    expect(server.connections).toBe(1) // one attempt
  })

  test("is not sent where its URL or a header is wrong", async () => {
    const server = await serve((_, response) => response.end())
    const ask = egressOf({ allow: [`shop=127.0.0.1:${server.port}`] })
    expect(await ask(`http://user:secret@127.0.0.1:${server.port}/`)).toMatchObject({ class: "InvalidRequest" })
    expect(await ask(`http://127.0.0.1:${server.port}/`, { headers: { host: "other" } })).toMatchObject({
      class: "InvalidRequest",
    })
    expect(server.connections).toBe(0)
  })

  test("may be aborted by its caller", async () => {
    const gaveUp = new AbortController()
    const server = await serve(() => gaveUp.abort(new Error("not needed any more")))
    await expect(requestAt(server.port, { signal: gaveUp.signal })).rejects.toThrow("not needed any more")
  })
})

describe("where it goes", () => {
  const pod = { namespace: "shop", addresses: ["10.1.0.7"], isHostNetwork: false }
  const service: ServiceSeen = {
    type: "ClusterIP",
    hasSelector: true,
    endpoints: [{ address: "10.1.0.7", port: 8080, pod }],
  }

  test("a public host, at the address that was checked", async () => {
    const server = await serve((_, response) => response.end("yes"))
    const net = internet(server.port, { "hooks.example.com": ["1.1.1.1"] })
    expect(await egressOf(net.options)("https://hooks.example.com/x")).toMatchObject({ status: 200 })
    expect(net.dialled).toEqual([{ address: "1.1.1.1", port: 443, secureFor: "hooks.example.com" }])
    expect(net.looked).toEqual(["hooks.example.com"])
    expect(server.seen[0]!.headers.host).toBe("hooks.example.com")
  })

  test("a Service of its namespace, at its pods and without a name server", async () => {
    const server = await serve((_, response) => response.end("yes"))
    const net = internet(server.port, { prometheus: ["1.1.1.1"], "prometheus.shop": ["1.1.1.1"] })
    const ask = egressOf({ ...net.options, serviceAt: ({ name }) => (name === "prometheus" ? service : undefined) })
    for (const host of ["prometheus", "prometheus.shop", "prometheus.shop.svc", "prometheus.shop.svc.cluster.local"])
      expect(await ask(`http://${host}/q`)).toMatchObject({ ok: true, status: 200 })
    expect(net.dialled).toEqual(Array(4).fill({ address: "10.1.0.7", port: 8080 }))
    expect(net.looked).toEqual([])
    expect(server.seen[0]!.headers.host).toBe("prometheus")
  })

  test("a Service that changed while the request waited is judged as it is then", async () => {
    const dialled: Destination[] = []
    const first = Promise.withResolvers<never>()
    const seen = { ...service }
    const ask = egressOf({
      serviceAt: () => seen,
      limits: { atOnce: { all: 1 } },
      dial: to => {
        dialled.push(to)
        return first.promise
      },
    })
    const both = [ask("http://prometheus/"), ask("http://prometheus/")]
    await nextTurn()
    seen.hasSelector = false
    first.reject(new Error("ends"))
    expect(await Promise.all(both)).toMatchObject([{ class: "Unreachable" }, { class: "ForbiddenAddress" }])
    expect(dialled).toHaveLength(1)
  })

  test.each([
    ["http://127.0.0.1:9090/", "127.0.0.1 has a loopback address", "shop=127.0.0.1:9090"],
    ["http://169.254.169.254/latest/meta-data", "169.254.169.254 has a link-local address", "shop=169.254.169.254:80"],
    ["https://[::1]/", "::1 has a local or reserved address", "shop=[::1]:443"],
    ["http://localhost/", "localhost has a loopback address", "shop=localhost:80"],
    ["http://inside.example.com/", "inside.example.com has a private address", "shop=inside.example.com:80"],
    ["http://vault.bank.svc/", "vault.bank.svc is a Service of another namespace than shop", "shop=vault.bank.svc:80"],
    ["http://manual/", "Service manual of namespace shop has no selector", "shop=manual.shop.svc:80"],
  ])("not to %s", async (url, says, entry) => {
    const net = internet(1, { "inside.example.com": ["1.1.1.1", "10.20.30.40"], localhost: ["127.0.0.1"] })
    const ask = egressOf({ ...net.options, serviceAt: () => ({ ...service, hasSelector: false }) })
    const answer = await ask(url)
    expect(answer).toMatchObject({ ok: false, class: "ForbiddenAddress", message: expect.stringContaining(says) })
    expect(answer).toMatchObject({ message: expect.stringContaining(`--allow-egress ${entry}`) })
    expect(JSON.stringify(answer)).not.toContain("10.20")
    expect(net.dialled).toEqual([])
  })

  test("what is allowed to one namespace is not allowed to another", async () => {
    const server = await serve((_, response) => response.end())
    const ask = egressOf({ allow: [`shop=127.0.0.1:${server.port}`] })
    const url = `http://127.0.0.1:${server.port}/`
    expect(await ask(url)).toMatchObject({ ok: true })
    expect(await ask(url, { namespace: "bank" })).toMatchObject({
      class: "ForbiddenAddress",
      message: expect.stringContaining(`--allow-egress bank=127.0.0.1:${server.port}`),
    })
    expect(server.connections).toBe(1)
  })

  test("a name that moves inside after it was checked is not followed there", async () => {
    const server = await serve((_, response) => response.end())
    const net = internet(server.port, {})
    const answers = [["1.1.1.1"], ["169.254.169.254"]]
    const ask = egressOf({ ...net.options, lookup: async () => answers.shift() ?? [] })
    expect(await ask("http://rebinds.example.com/")).toMatchObject({ ok: true })
    expect(await ask("http://rebinds.example.com/")).toMatchObject({ class: "ForbiddenAddress" })
    expect(net.dialled.map(({ address }) => address)).toEqual(["1.1.1.1"])
  })

  test("a name without an address, which may be a Service of another namespace", async () => {
    const { servers } = await nameServer({})
    const ask = egressOf({ lookup: nameLookup({ clock: systemClock, servers }) })
    expect(await ask("http://prometheus.monitoring:9090/")).toEqual({
      ok: false,
      class: "Unreachable",
      message:
        "the name prometheus.monitoring has no address; if it is a Service, an administrator may allow it with --allow-egress shop=prometheus.monitoring:9090",
    })
    expect(await ask("http://a.b.example.com/")).toMatchObject({ message: "the name a.b.example.com has no address" })
    expect(await ask("http://prometheus:9090/")).toMatchObject({
      message: "namespace shop has no Service prometheus, which prometheus names",
    })
  })
})

describe("turns", () => {
  const world = async (owner: number) => {
    const hangs = await serveRaw(() => {})
    const good = await serve((_, response) => response.end())
    const gaveUp = new AbortController()
    cleanups.push(() => gaveUp.abort())
    const ask = egressOf({
      allow: [`*=127.0.0.1:${hangs}`, `*=127.0.0.1:${good.port}`],
      limits: { waitMs: 300, atOnce: { all: 8, owner, ownerAtPlace: 2, waiting: 10 } },
    })
    const at =
      (port: number) =>
      (namespace: string, more: { onBehalfOf?: string } = {}) =>
        ask(`http://127.0.0.1:${port}/`, { namespace, timeoutMs: 60_000, signal: gaveUp.signal, ...more })
    return { hang: at(hangs), well: at(good.port) }
  }

  test("a namespace whose hooks hang delays neither others nor its own hooks elsewhere", async () => {
    const { hang, well } = await world(4)
    const held = Array.from({ length: 11 }, () => hang("shop"))
    for (const request of held) request.catch(() => {})
    expect(await well("bank")).toMatchObject({ ok: true })
    expect(await well("shop")).toMatchObject({ ok: true })
    // Two are open; those whose turn does not come in time say so.
    expect(await Promise.all(held.slice(2))).toMatchObject(
      Array(9).fill({ class: "Busy", message: "too many other requests wait, of namespace shop or to 127.0.0.1" }),
    )
  })

  test("a URL that is shared is asked in the turn of the namespace that uses it", async () => {
    const { hang, well } = await world(2)
    for (let i = 0; i < 5; i++) hang("monitoring", { onBehalfOf: "shop" }).catch(() => {})
    expect(await well("monitoring", { onBehalfOf: "bank" })).toMatchObject({ ok: true })
    expect(await well("monitoring", { onBehalfOf: "shop" })).toMatchObject({
      class: "Busy",
      message: expect.stringContaining("of namespace shop"),
    })
  })

  test("no more requests of a namespace wait than may", async () => {
    const { hang } = await world(1)
    const held = Array.from({ length: 11 }, () => hang("shop"))
    for (const request of held) request.catch(() => {})
    expect(await hang("shop")).toMatchObject({ class: "Busy" })
  })
})
