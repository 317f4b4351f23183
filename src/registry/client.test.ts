import type { OutgoingHttpHeaders } from "node:http"
import type { Socket } from "node:net"
import { setImmediate as nextTurn } from "node:timers/promises"
import { describe, expect, test } from "vitest"
import type { Resolution } from "#core/image/resolution.ts"
import { type Destination, systemDial } from "#egress/connect.ts"
import { cleanups, internet, movableClock, serve, serveRaw } from "#egress/test-servers.ts"
import { json, makeCertificates, type Reply, type testServer } from "#runtime/client/test-server.ts"
import { type Clock, systemClock } from "#runtime/clock.ts"
import type { Limits, ResolveOptions } from "./client.ts"
import {
  client,
  digest,
  digestOf,
  other,
  referenceTo,
  registry,
  resolveAt,
  resolved,
  resolveImage,
  shown,
  status,
} from "./test-registry.ts"

describe("a tag", () => {
  test("is resolved with one HEAD", async () => {
    const { resolution, requests, seen } = await resolveAt(registry())
    expect(resolution).toEqual(resolved)
    expect(requests).toEqual(["HEAD /v2/app/manifests/v1"])
    expect(seen[0]!.headers.accept?.split(", ")).toEqual([
      "application/vnd.oci.image.index.v1+json",
      "application/vnd.docker.distribution.manifest.list.v2+json",
      "application/vnd.oci.image.manifest.v1+json",
      "application/vnd.docker.distribution.manifest.v2+json",
    ])
    expect(seen[0]!.headers.authorization).toBeUndefined()
  })

  test.each([
    ["the registry tells no digest", registry({ "docker-content-digest": [] })],
    ["it does not know HEAD", (seen, response) => (seen.method === "HEAD" ? status(405) : registry())(seen, response)],
  ] satisfies [string, Reply][])("is hashed by us where %s", async (_, reply) => {
    const { resolution, requests } = await resolveAt(reply)
    expect(resolution).toEqual(resolved)
    expect(requests).toEqual(["HEAD /v2/app/manifests/v1", "GET /v2/app/manifests/v1"])
  })

  test("of docker.io is asked for where that really is", async () => {
    const server = await serve(registry())
    const net = internet(server.port, { "registry-1.docker.io": ["1.1.1.1"] })
    expect(await resolveImage("nginx", net.options)).toEqual(resolved)
    expect(net.dialled).toEqual([{ address: "1.1.1.1", port: 443, secureFor: "registry-1.docker.io" }])
    expect(server.seen.map(shown)).toEqual(["HEAD /v2/library/nginx/manifests/latest"])
    expect(server.seen[0]!.headers.host).toBe("registry-1.docker.io")
  })

  test("that is an index returns its platforms on request", async () => {
    const index = Buffer.from(
      JSON.stringify({
        mediaType: "application/vnd.oci.image.index.v1+json",
        manifests: [
          { platform: { os: "linux", architecture: "amd64" } },
          { platform: { os: "linux", architecture: "arm64", variant: "v8" } },
          { platform: { os: "unknown", architecture: "unknown" } },
          { platform: { os: "linux", architecture: { evil: true } } },
          null,
        ],
      }),
    )
    const reply: Reply = (_, response) => response.writeHead(200, { "content-type": "application/json" }).end(index)
    const { resolution } = await resolveAt(reply, {}, { platforms: true })
    expect(resolution).toEqual({
      ok: true,
      digest: digestOf(index),
      mediaType: "application/vnd.oci.image.index.v1+json",
      size: index.length,
      platforms: [
        { os: "linux", architecture: "amd64" },
        { os: "linux", architecture: "arm64", variant: "v8" },
      ],
    })
  })
})

test("a digest is asked for as such, and must be what comes back", async () => {
  const server = await serve(registry())
  const place = `127.0.0.1:${server.port}`
  const at = (image: string) => resolveImage(`${place}/${image}`, { allow: [place] })
  expect(await at(`app:v1@${digest}`)).toEqual(resolved)
  expect(server.seen.map(shown)).toEqual([`HEAD /v2/app/manifests/${digest}`])
  expect(await at(`app@${other}`)).toMatchObject({ ok: false, class: "InvalidAnswer" })
  const untold = await serve(registry({ "docker-content-digest": [] }))
  const there = `127.0.0.1:${untold.port}`
  expect(await resolveImage(`${there}/app@${digest}`, { allow: [there] })).toEqual(resolved)
  expect(await resolveImage(`${there}/app@${other}`, { allow: [there] })).toMatchObject({ class: "InvalidAnswer" })
})

describe("what a registry should not answer", () => {
  const withoutDigest = registry({ "docker-content-digest": [] })
  const onGet =
    (reply: Reply): Reply =>
    (seen, response) =>
      (seen.method === "GET" ? reply : withoutDigest)(seen, response)

  test.each([
    ["a digest that the manifest does not have", onGet(registry({ "docker-content-digest": other })), "the digest"],
    ["two digests", registry({ "docker-content-digest": [digest, digest] }), "the digest"],
    ["a digest that is none", registry({ "docker-content-digest": "md5:00" }), "the digest"],
    ["a page for people", onGet((_, response) => response.writeHead(200).end("<html>")), "no manifest"],
    ["no image", onGet((_, response) => json(response, { mediaType: "text/plain" })), "no manifest"],
    ["a list of nothing", onGet((_, response) => json(response, [])), "no manifest"],
    ["something compressed", onGet(registry({ "content-encoding": "gzip" })), "encoding"],
    ["an announced 5 MiB", onGet(registry({ "content-length": 5 * 1024 * 1024 })), "more than 4194304"],
    ["headers of 40 kB", registry({ "x-padding": "x".repeat(40_000) }), "beyond all measure"],
    ["a redirect", status(307, { location: "http://169.254.169.254/latest/meta-data" }), "redirects"],
    ["a redirect to itself", status(301, { location: "/v2/app/manifests/v1" }), "redirects"],
    ["not modified", status(304), "redirects"],
    ["a teapot", status(418), "418"],
  ] satisfies [string, Reply, string][])("%s", async (_, reply, says) => {
    const { resolution } = await resolveAt(reply)
    expect(resolution).toMatchObject({ ok: false, class: "InvalidAnswer", message: expect.stringContaining(says) })
  })

  test("a body without end is not read to the end", async () => {
    let written = 0
    const endless = onGet((_, response) => {
      response.writeHead(200)
      const chunk = Buffer.alloc(64 * 1024, " ")
      const more = () => {
        while (!response.destroyed && response.write(chunk)) written += chunk.length
      }
      response.on("drain", more)
      more()
    })
    const { resolution } = await resolveAt(endless)
    expect(resolution).toMatchObject({ class: "InvalidAnswer", message: expect.stringContaining("4194304") })
    expect(written).toBeLessThan(32 * 1024 * 1024) // what the machine's buffers took besides
  })

  test("a redirect leads to no further connection", async () => {
    const server = await serve(status(302, { location: "http://169.254.169.254/" }))
    const net = internet(server.port, { "registry.example.com": ["1.1.1.1"] })
    expect(await resolveImage("registry.example.com/app:v1", net.options)).toMatchObject({ class: "InvalidAnswer" })
    expect(net.dialled.map(({ address }) => address)).toEqual(["1.1.1.1"])
  })
})

describe("classes", () => {
  test.each([
    [404, "NotFound"],
    [403, "Denied"],
    [401, "Denied"], // without saying what for
    [408, "Unreachable"],
    [500, "Unreachable"],
    [503, "Unreachable"],
  ])("%s is %s", async (code, expected) => {
    expect((await resolveAt(status(code))).resolution).toMatchObject({ ok: false, class: expected })
  })

  test("an answer is enough, whatever endless explanation follows", async () => {
    const { resolution } = await resolveAt((seen, response) => {
      if (seen.method === "HEAD") return status(405)(seen, response)
      response.writeHead(404)
      const more = () => {
        while (!response.destroyed && response.write("no such image, ".repeat(1000)));
      }
      response.on("drain", more)
      more()
    })
    expect(resolution).toMatchObject({ class: "NotFound" })
  })

  test("no server", async () => {
    const port = await serveRaw(() => {})
    cleanups.pop()!() // and gone again
    expect(await resolveImage(`127.0.0.1:${port}/app`, { allow: [`127.0.0.1:${port}`] })).toMatchObject({
      class: "Unreachable",
      message: "127.0.0.1 cannot be reached (ECONNREFUSED)",
    })
  })

  test.each([
    ["no address", async () => []],
    ["no answer", () => Promise.reject(new Error("ENOTFOUND"))],
  ])("a name with %s", async (_, lookup) => {
    const expected = { class: "Unreachable", message: "the name registry.example.com has no address" }
    expect(await resolveImage("registry.example.com/app", { lookup })).toMatchObject(expected)
  })

  test("a host that cannot be one", async () => {
    expect(await resolveImage("registry.example.com:70000/app")).toMatchObject({ class: "Unreachable" })
  })

  test.each([
    ["before its answer", ""],
    ["within its head", "HTTP/1.1 200 OK\r\nDocker-Con"],
    ["within its body", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"],
    ["in favour of another protocol", "HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"],
  ])("a connection that ends %s", async (_, text) => {
    const port = await serveRaw(socket => socket.once("data", () => socket.end(text)))
    const place = `127.0.0.1:${port}`
    expect(await resolveImage(`${place}/app`, { allow: [place] })).toMatchObject({ class: "Unreachable" })
  })

  test("something that is not HTTP", async () => {
    const port = await serveRaw(socket => socket.end("SSH-2.0-OpenSSH\r\n"))
    const place = `127.0.0.1:${port}`
    expect(await resolveImage(`${place}/app`, { allow: [place] })).toMatchObject({ class: "InvalidAnswer" })
  })

  test("the first address that can be reached is used", async () => {
    const server = await serve(registry())
    const dialled: string[] = []
    const dial = (to: Destination, signal: AbortSignal) => {
      dialled.push(to.address)
      const reached = systemDial()({ address: "127.0.0.1", port: server.port }, signal)
      return to.address === "1.1.1.2"
        ? reached
        : Promise.reject(Object.assign(new Error("no"), { code: "EHOSTUNREACH" }))
    }
    const lookup = async () => ["2606:4700::1", "1.1.1.1", "1.1.1.2"]
    expect(await resolveImage("registry.example.com/app", { lookup, dial })).toEqual(resolved)
    expect(dialled).toEqual(["1.1.1.1", "1.1.1.2"])
  })

  test("not every one of a hundred addresses is tried", async () => {
    let dialled = 0
    const dial = () => Promise.reject(new Error(`refused ${++dialled}`))
    const lookup = async () => Array.from({ length: 100 }, (_, last) => `1.1.1.${last}`)
    expect(await resolveImage("registry.example.com/app", { lookup, dial })).toMatchObject({ class: "Unreachable" })
    expect(dialled).toBe(4)
  })
})

describe("time", () => {
  const limits = { wholeMs: 300, connectMs: 100 }

  test("a head that comes byte by byte", async () => {
    const port = await serveRaw(socket => {
      const timer = setInterval(() => socket.write("x"), 10)
      socket.write("HTTP/1.1 200 OK\r\nX-Slow: ")
      socket.on("close", () => clearInterval(timer))
    })
    const place = `127.0.0.1:${port}`
    expect(await resolveImage(`${place}/app`, { allow: [place], limits })).toMatchObject({ class: "Timeout" })
  })

  test("a body that comes byte by byte", async () => {
    const { resolution } = await resolveAt(
      (_, response) => {
        response.writeHead(200)
        const timer = setInterval(() => response.write(" "), 10)
        response.on("close", () => clearInterval(timer))
      },
      { limits },
      { platforms: true },
    )
    expect(resolution).toMatchObject({ class: "Timeout" })
  })

  test("no answer at all", async () => {
    expect((await resolveAt(() => {}, { limits })).resolution).toMatchObject({ class: "Timeout" })
  })

  test("a handshake that never ends", async () => {
    const port = await serveRaw(() => {})
    const allow = [`https://127.0.0.1:${port}`]
    expect(await resolveImage(`127.0.0.1:${port}/app`, { allow, limits: { connectMs: 100 } })).toMatchObject({
      class: "Timeout",
      message: "127.0.0.1 does not accept connections in time",
    })
  })

  test("a name server that never answers", async () => {
    const lookup = () => new Promise<string[]>(() => {})
    expect(await resolveImage("registry.example.com/app", { lookup, limits })).toMatchObject({ class: "Timeout" })
  })

  test("a caller may abort", async () => {
    const gaveUp = new AbortController()
    const reply: Reply = () => gaveUp.abort(new Error("not needed any more"))
    await expect(resolveAt(reply, {}, { signal: gaveUp.signal })).rejects.toThrow("not needed any more")
  })
})

describe("TLS", () => {
  const certificates = makeCertificates()
  const tls = { ...certificates.server, ca: certificates.ca }
  const lookup = async () => ["127.0.0.1"]
  const at = async (
    host: string,
    trust: string[],
    reply: Reply = registry(),
    options: Parameters<typeof testServer>[1] = { tls },
  ) => {
    const server = await serve(reply, options)
    const place = `${host}:${server.port}`
    const resolution = await resolveImage(`${place}/app`, { allow: [`https://${place}`], trust, lookup })
    return { resolution, seen: server.seen }
  }

  test.each(["kube.test", "127.0.0.1"])("a trusted authority's certificate for %s", async host =>
    expect((await at(host, [certificates.ca])).resolution).toEqual(resolved),
  )
  test("a certificate of an unknown authority", async () => {
    const { resolution, seen } = await at("kube.test", [])
    expect(resolution).toMatchObject({ class: "TLS", message: expect.stringContaining("SELF_SIGNED_CERT_IN_CHAIN") })
    expect(seen).toEqual([])
  })
  test("another's name", async () => {
    const { resolution, seen } = await at("registry.test", [certificates.ca])
    expect(resolution).toMatchObject({ class: "TLS", message: expect.stringContaining("ERR_TLS_CERT_ALTNAME_INVALID") })
    expect(seen).toEqual([])
  })
  test("none spoken there: no falling back to plain text", async () => {
    const { resolution, seen } = await at("kube.test", [certificates.ca], registry(), {})
    expect(resolution).toMatchObject({ class: "TLS" })
    expect(seen).toEqual([])
  })
  test("the environment cannot switch it off", async () => {
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = "0"
    cleanups.push(() => delete process.env.NODE_TLS_REJECT_UNAUTHORIZED)
    expect((await at("kube.test", [])).resolution).toMatchObject({ class: "TLS" })
  })
})

describe("forbidden places", () => {
  test.each([
    ["127.0.0.1:5000", "127.0.0.1:5000"],
    ["[::1]:5000", "[::1]:5000"],
    ["10.0.0.1", "10.0.0.1:443"],
    ["0x7f.1", "127.0.0.1:443"],
    ["169.254.169.254:80", "169.254.169.254:80"],
  ])("%s is refused without a connection", async (host, named) => {
    const dialled: Destination[] = []
    const dial = (to: Destination) => {
      dialled.push(to)
      return Promise.reject(new Error("dialled"))
    }
    expect(await resolveImage(`${host}/app`, { dial })).toMatchObject({
      class: "ForbiddenAddress",
      message: expect.stringContaining(`--allow-registry ${named}`),
    })
    expect(dialled).toEqual([])
  })

  test("one bad address among good ones is enough, and is not reported", async () => {
    const net = internet(1, { "registry.example.com": ["1.1.1.1", "10.20.30.40"] })
    const resolution = await resolveImage("registry.example.com/app", net.options)
    expect(resolution).toMatchObject({ class: "ForbiddenAddress" })
    expect(JSON.stringify(resolution)).not.toContain("10.20")
    expect(net.dialled).toEqual([])
  })

  test("what was allowed is one port of one host", async () => {
    const server = await serve(registry())
    const lookup = async () => ["127.0.0.1"]
    const allow = [`http://inside.test:${server.port}`]
    const at = (host: string) => resolveImage(`${host}/app`, { allow, lookup })
    expect(await at(`inside.test:${server.port}`)).toEqual(resolved)
    expect(await at("inside.test:1")).toMatchObject({ class: "ForbiddenAddress" })
    expect(await at(`outside.test:${server.port}`)).toMatchObject({ class: "ForbiddenAddress" })
  })

  test("a name that moves inside between two requests is not followed there", async () => {
    const server = await serve((seen, response) =>
      seen.url.startsWith("/token")
        ? json(response, { token: "t" })
        : status(401, { "www-authenticate": 'Bearer realm="https://registry.example.com/token"' })(seen, response),
    )
    const answers = [["1.1.1.1"], ["1.1.1.1"], ["169.254.169.254"]]
    const net = internet(server.port, {})
    const lookup = async () => answers.shift() ?? []
    expect(await resolveImage("registry.example.com/app", { ...net.options, lookup })).toMatchObject({
      class: "ForbiddenAddress",
    })
    expect(net.dialled.map(({ address }) => address)).toEqual(["1.1.1.1", "1.1.1.1"])
  })
})

describe("a registry that is asked too much", () => {
  async function limitedBy(header: (now: number) => OutgoingHttpHeaders, code = 429) {
    const { clock, advance } = movableClock()
    let isLimited = true
    const server = await serve((seen, response) =>
      (isLimited ? status(code, header(clock.now())) : registry())(seen, response),
    )
    const place = `127.0.0.1:${server.port}`
    const { resolve } = client({ allow: [place], clock })
    const first = await resolve(referenceTo(`${place}/app`))
    isLimited = false
    const again = (how?: ResolveOptions) => resolve(referenceTo(`${place}/other`), how)
    return { first, again, advance, place, asked: () => server.seen.length }
  }

  test.each([
    ["seconds", () => ({ "retry-after": "120" })],
    ["a date", (now: number) => ({ "retry-after": new Date(now + 120_000).toUTCString() })],
  ])("is left alone as long as it says, in %s", async (_, header) => {
    const { first, again, advance, asked } = await limitedBy(header)
    expect(first).toMatchObject({ class: "RateLimited", retryAfterMs: expect.any(Number) })
    const { retryAfterMs = 0 } = first as { retryAfterMs?: number }
    expect(retryAfterMs).toBeGreaterThan(118_000)
    expect(retryAfterMs).toBeLessThanOrEqual(120_000)
    advance(60_000)
    expect(await again()).toMatchObject({ class: "RateLimited" })
    expect(((await again()) as { retryAfterMs: number }).retryAfterMs).toBeLessThanOrEqual(60_000)
    expect(asked()).toBe(1)
    advance(60_001)
    expect(await again()).toEqual(resolved)
  })

  test("is left alone for about a minute where it does not say", async () => {
    const { first, again, advance, asked } = await limitedBy(() => ({}))
    expect(first).toMatchObject({ class: "RateLimited" })
    advance(40_000)
    expect(await again()).toMatchObject({ class: "RateLimited" })
    expect(asked()).toBe(1)
    advance(40_000)
    expect(await again()).toEqual(resolved)
  })

  test("is asked for another user: limits are per user", async () => {
    const { again, place } = await limitedBy(() => ({ "retry-after": "120" }))
    expect(await again({ credentials: new Map([[place, { username: "ann", password: "secret" }]]) })).toEqual(resolved)
  })

  test("and says 503 with a time", async () => {
    const { first, again, asked } = await limitedBy(() => ({ "retry-after": "5" }), 503)
    expect(first).toEqual({
      ok: false,
      class: "Unreachable",
      message: "127.0.0.1 is in trouble (503)",
      retryAfterMs: 5000,
    })
    expect(await again()).toMatchObject({ class: "Unreachable" })
    expect(asked()).toBe(1)
  })

  test("gets no more than a few requests at once, and all of them in the end", async () => {
    const held: (() => void)[] = []
    const dial = () => new Promise<never>((_, reject) => held.push(() => reject(new Error("refused"))))
    const { resolve } = client({ dial, limits: { atOnce: { all: 3, place: 2 } } })
    const all = Array.from({ length: 5 }, () => resolve(referenceTo("1.1.1.1/app")))
    const gaveUp = new AbortController()
    const waiting = resolve(referenceTo("1.1.1.1/app"), { signal: gaveUp.signal })
    const elsewhere = resolve(referenceTo("8.8.8.8/app"))
    gaveUp.abort(new Error("not needed any more"))
    await expect(waiting).rejects.toThrow("not needed any more")
    await nextTurn()
    expect(held).toHaveLength(3)
    held.pop()!()
    expect(await elsewhere).toMatchObject({ class: "Unreachable" })
    for (const under of [2, 2, 2, 2, 1]) {
      await nextTurn()
      expect(held).toHaveLength(under)
      held.shift()!()
    }
    expect(await Promise.all(all)).toMatchObject(Array(5).fill({ class: "Unreachable" }))
  })
})

describe("tenants", () => {
  /** A registry that hangs for images named so, and one that does not. */
  async function world(limits: Partial<Limits> = {}, clock: Clock = systemClock) {
    const server = await serve((seen, response) => (seen.url.includes("/hangs") ? {} : registry()(seen, response)))
    const { options } = internet(server.port, { "shared.example.com": ["1.1.1.1"], "other.example.com": ["8.8.8.8"] })
    const { resolve } = client({ ...options, clock, limits: { wholeMs: 60_000, ...limits } })
    const gaveUp = new AbortController()
    cleanups.push(() => gaveUp.abort())
    return (image: string, tenant: string) => resolve(referenceTo(image), { tenant, signal: gaveUp.signal })
  }
  const many = (count: number, ask: (at: number) => Promise<Resolution>) =>
    Array.from({ length: count }, (_, at) => ask(at))

  test("a question does not wait behind all that another tenant asks a registry that hangs", async () => {
    const ask = await world()
    const others = many(400, at => ask(`shared.example.com/hangs${at}`, "evil"))
    for (const other of others) other.catch(() => {})
    expect(await ask("shared.example.com/app", "shop")).toEqual(resolved)
    expect(await ask("other.example.com/app", "shop")).toEqual(resolved)
  })

  test("a registry that hangs does not keep its own tenant from others", async () => {
    // On a busy machine any time may be too short: waiting for a turn ends when the others were answered.
    const waitMs = 500
    const waiting = new Set<() => void>()
    const after: Clock["after"] = (ms, then) => {
      if (ms !== waitMs) return systemClock.after(ms, then)
      waiting.add(then)
      return () => waiting.delete(then)
    }
    const ask = await world({ waitMs }, { ...systemClock, after })
    const [asked, ...rest] = many(20, at => ask(`shared.example.com/hangs${at}`, "shop"))
    for (const other of [asked, ...rest]) other!.catch(() => {})
    const well = many(20, at => ask(`other.example.com/a${at}`, "shop"))
    expect(await Promise.all(well)).toEqual(Array(20).fill(resolved))
    for (const end of waiting) end()
    // Three are being asked; those whose turn does not come say so.
    expect(await Promise.all(rest.slice(2))).toMatchObject(
      Array(17).fill({ class: "Timeout", message: "too many other questions wait for shared.example.com" }),
    )
  })

  test("what one tenant found slow is slow for no other, and for a moment only", async () => {
    const sockets: Socket[] = []
    const port = await serveRaw(socket => sockets.push(socket))
    const place = `127.0.0.1:${port}`
    const { clock, advance } = movableClock()
    const { resolve } = client({ allow: [place], clock, limits: { wholeMs: 100 } })
    const ask = (tenant: string) => resolve(referenceTo(`${place}/app`), { tenant })
    expect(await ask("shop")).toMatchObject({ class: "Timeout" })
    expect(await ask("shop")).toMatchObject({ class: "Timeout" })
    expect(sockets).toHaveLength(1)
    await ask("other")
    expect(sockets).toHaveLength(2)
    advance(5001)
    await ask("shop")
    expect(sockets).toHaveLength(3)
  })
})
