import { once } from "node:events"
import * as net from "node:net"
import { setImmediate as nextTurn } from "node:timers/promises"
import type { TLSSocket } from "node:tls"
import { Worker } from "node:worker_threads"
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest"
import { httpsTransport } from "./https-transport.ts"
import { type Credential, fixedCredentials, type ServerConfig } from "./server-config.ts"
import { configFor, json, makeCertificates, type Reply, type TestServer, testServer } from "./test-server.ts"
import { NotSent, type Request, type Response, type Transport } from "./transport.ts"

const certificates = makeCertificates()
const tls = { ...certificates.server, ca: certificates.ca }

const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

async function serve(reply: Reply, options: Parameters<typeof testServer>[1] = {}) {
  const server = await testServer(reply, options)
  cleanups.push(() => server.close())
  return server
}
function transportTo(config: ServerConfig): Transport {
  const transport = httpsTransport(config)
  cleanups.push(() => transport.close())
  return transport
}
const request = (given: Partial<Request> = {}): Request => ({
  method: "GET",
  path: "/",
  headers: {},
  signal: new AbortController().signal,
  ...given,
})
async function textOf(response: Response | Promise<Response>) {
  let text = ""
  for await (const chunk of (await response).body) text += Buffer.from(chunk).toString("utf8")
  return text
}
const ok: Reply = (_, response) => json(response, { ok: true })

describe("connections", () => {
  test.each([
    ["http", undefined],
    ["https", tls],
  ] as const)("one %s connection serves many requests", async (_, tls) => {
    const server = await serve(ok, tls && { tls })
    const transport = transportTo(server.config)
    for (let turn = 0; turn < 20; turn++) await textOf(transport.send(request()))
    expect({ requests: server.seen.length, connections: server.connections }).toEqual({ requests: 20, connections: 1 })
  })

  test("many requests at once share a bounded number", async () => {
    const server = await serve(ok)
    const transport = transportTo(server.config)
    await Promise.all(Array.from({ length: 200 }, () => textOf(transport.send(request()))))
    expect(server.seen.length).toBe(200)
    expect(server.connections).toBeLessThanOrEqual(32)
    expect(server.connections).toBeGreaterThan(1)
  })

  test("requests that hang, as many as there are connections for, leave one for the Lease", async () => {
    const server = await serve(({ url }, response) => (url === "/hangs" ? undefined : ok({} as never, response)))
    const transport = transportTo(server.config)
    const over = new AbortController()
    const hanging = Array.from({ length: 100 }, () =>
      transport.send(request({ path: "/hangs", signal: over.signal })).catch(() => {}),
    )
    expect(await textOf(transport.send(request({ isUrgent: true })))).toBe('{"ok":true}')
    over.abort()
    await Promise.all(hanging)
  })

  test("more watches than the bound leave room for a request", async () => {
    const server = await serve(({ url }, response) =>
      url === "/watch" ? response.write("\n") : ok({} as never, response),
    )
    const transport = transportTo(server.config)
    const over = new AbortController()
    cleanups.push(() => over.abort())
    const watches = Array.from({ length: 50 }, () =>
      transport.send(request({ path: "/watch", longLived: true, signal: over.signal })),
    )
    await Promise.all(watches)
    expect(await textOf(transport.send(request()))).toBe('{"ok":true}')
  })

  test.each([
    ["http", undefined],
    ["https", tls],
  ] as const)("a long answer over %s lets other work have a turn between its pieces", async (_, tls) => {
    const megabytes = 2
    const server = await serve((_, response) => response.end(Buffer.alloc(megabytes << 20)), tls && { tls })
    const { body } = await transportTo(server.config).send(request({ longLived: true }))
    let [turns, isOver] = [0, false]
    const count = () => {
      turns++
      if (!isOver) setImmediate(count)
    }
    setImmediate(count)
    const seenAt: number[] = []
    let bytes = 0
    for await (const piece of body) {
      bytes += piece.length
      seenAt.push(turns)
      // As slow as a reader of objects: what has come in the meantime waits in the socket.
      for (const until = performance.now() + 2; performance.now() < until; );
    }
    isOver = true
    expect(bytes).toBe(megabytes << 20)
    expect(new Set(seenAt).size).toBe(seenAt.length)
  })

  test("close ends idle connections and leaves a request under way alone", async () => {
    const held: Parameters<Reply>[1][] = []
    const server = await serve(({ url }, response) =>
      url === "/slow" ? held.push(response) : ok({} as never, response),
    )
    const transport = transportTo(server.config)
    await textOf(transport.send(request()))
    const idle = once(server.seen[0]!.socket, "close")
    const slow = transport.send(request({ path: "/slow", longLived: true }))
    await server.arrived(2)
    transport.close()
    await idle
    json(held[0]!, "done")
    expect(await textOf(slow)).toBe('"done"')
    await once(server.seen[1]!.socket, "close") // and is not kept afterwards
  })

  test("a server below a path, as behind a proxy for several clusters", async () => {
    const server = await serve(ok)
    await textOf(
      transportTo({ ...server.config, server: `${server.url}/k8s/clusters/one` }).send(request({ path: "/api/v1" })),
    )
    expect(server.seen[0]?.url).toBe("/k8s/clusters/one/api/v1")
  })
})

describe("trust", () => {
  let server: TestServer
  let clientSubjects: (string | undefined)[] = []
  beforeAll(async () => {
    server = await testServer(
      ({ socket }, response) => {
        clientSubjects.push((socket as TLSSocket).getPeerCertificate()?.subject?.CN?.toString())
        json(response, {})
      },
      { tls: { ...tls, requestCert: true, rejectUnauthorized: false } },
    )
  })
  afterAll(() => server.close())
  const attempt = async (given: Partial<ServerConfig["tls"]>, credential: Credential = {}) => {
    clientSubjects = []
    const config = { ...configFor(server.url, given), credentials: fixedCredentials(credential) }
    return textOf(transportTo(config).send(request())).then(
      () => "trusted",
      error => error,
    )
  }

  test("a certificate by the CA is trusted", async () => expect(await attempt({ ca: certificates.ca })).toBe("trusted"))
  test("an unknown CA is refused before anything is sent", async () => {
    const error = await attempt({})
    expect(error).toBeInstanceOf(NotSent)
    expect(error.cause.code).toBe("SELF_SIGNED_CERT_IN_CHAIN")
    expect(clientSubjects).toEqual([])
  })
  test("the name in tls-server-name is the one checked", async () => {
    expect(await attempt({ ca: certificates.ca, serverName: "kube.test" })).toBe("trusted")
    expect((await attempt({ ca: certificates.ca, serverName: "other.test" })).cause.code).toBe(
      "ERR_TLS_CERT_ALTNAME_INVALID",
    )
  })
  test("verification is skipped only where the config says so", async () => {
    expect(await attempt({ verify: false })).toBe("trusted")
  })
  test("a client certificate is shown", async () => {
    expect(await attempt({ ca: certificates.ca }, certificates.client)).toBe("trusted")
    expect(clientSubjects).toEqual(["tester"])
  })
})

describe("guard", () => {
  const refuse = () => {
    throw new Error("no longer the leader")
  }

  test("a refusal leaves not a byte on a connection opened for the request", async () => {
    let bytes = 0
    const sawEnd = Promise.withResolvers<void>()
    const server = net.createServer(socket => {
      socket.on("data", chunk => (bytes += chunk.length))
      socket.on("error", () => {})
      socket.on("close", () => sawEnd.resolve())
    })
    await once(server.listen(0, "127.0.0.1"), "listening")
    cleanups.push(() => server.close())
    const transport = transportTo(configFor(`http://127.0.0.1:${(server.address() as net.AddressInfo).port}`))
    const error = await transport.send(request({ method: "POST", body: "{}", guard: refuse })).catch(error => error)
    await sawEnd.promise
    expect(error).toBeInstanceOf(NotSent)
    expect(error.cause.message).toBe("no longer the leader")
    expect(bytes).toBe(0)
  })

  test("a refusal on a kept connection leaves the server without the request", async () => {
    const server = await serve(ok, { tls })
    const transport = transportTo(server.config)
    await textOf(transport.send(request({ path: "/first" })))
    await expect(
      transport.send(request({ method: "POST", path: "/refused", body: "{}", guard: refuse })),
    ).rejects.toThrow(NotSent)
    await textOf(transport.send(request({ path: "/last" })))
    expect(server.seen.map(({ url }) => url)).toEqual(["/first", "/last"])
  })

  test("is asked only once the TLS handshake is done: leadership lost while connecting counts", async () => {
    const server = await serve(ok, { tls })
    const reached = Promise.withResolvers<net.Socket>()
    const door = net.createServer(socket => reached.resolve(socket))
    await once(door.listen(0, "127.0.0.1"), "listening")
    cleanups.push(() => door.close())
    const { port } = door.address() as net.AddressInfo
    const transport = transportTo(configFor(`https://127.0.0.1:${port}`, { ca: certificates.ca }))

    let isLeader = true
    let asked = 0
    const guard = () => {
      asked++
      if (!isLeader) refuse()
    }
    const sent = transport.send(request({ method: "POST", body: "{}", guard })).catch(error => error)
    const client = await reached.promise
    for (let turn = 0; turn < 10; turn++) await nextTurn()
    expect(asked).toBe(0)

    isLeader = false
    const inside = net.connect(server.port, "127.0.0.1")
    client.pipe(inside).pipe(client)
    for (const socket of [client, inside]) socket.on("error", () => {})
    expect(await sent).toBeInstanceOf(NotSent)
    expect(asked).toBe(1)
    expect(server.connections).toBe(1)
    expect(server.seen).toEqual([])
  })

  test.each(["http", "https"])("is the last thing before the first byte leaves, over %s", async scheme => {
    // In a thread of its own, the server can report a request while our whole event loop stands still.
    const arrived = new Int32Array(new SharedArrayBuffer(4))
    const worker = new Worker(
      `const { parentPort, workerData: { scheme, tls, arrived } } = require("node:worker_threads")
       const server = require("node:" + scheme).createServer(tls, (_, response) => {
         Atomics.add(arrived, 0, 1)
         Atomics.notify(arrived, 0)
         response.end("{}")
       })
       server.listen(0, "127.0.0.1", () => parentPort.postMessage(server.address().port))`,
      { eval: true, workerData: { scheme, tls, arrived } },
    )
    cleanups.push(() => worker.terminate())
    const [port] = await once(worker, "message")
    const transport = transportTo(configFor(`${scheme}://127.0.0.1:${port}`, { ca: certificates.ca }))
    for (const connection of ["new", "kept"]) {
      let outcome = ""
      const guard = () => {
        const before = Atomics.load(arrived, 0)
        // Runs right after the code that called the guard, and then nothing of ours runs any more.
        queueMicrotask(() => {
          outcome = Atomics.wait(arrived, 0, before, 2_000)
        })
      }
      await textOf(transport.send(request({ method: "POST", body: "{}", guard })))
      expect([connection, outcome]).toEqual([connection, expect.stringMatching(/^(ok|not-equal)$/)])
    }
  })

  test("is asked exactly once for a request that goes out", async () => {
    const server = await serve(ok)
    let asked = 0
    await textOf(transportTo(server.config).send(request({ method: "POST", body: "{}", guard: () => asked++ })))
    expect({ asked, bodies: server.seen.map(({ body }) => body) }).toEqual({ asked: 1, bodies: ["{}"] })
  })
})

describe("what is certain about a request that failed", () => {
  test("a refused connection: never sent", async () => {
    const server = await testServer(ok)
    await server.close()
    const error = await transportTo(server.config)
      .send(request({ method: "POST", body: "{}" }))
      .catch(error => error)
    expect(error).toBeInstanceOf(NotSent)
    expect(error.cause.code).toBe("ECONNREFUSED")
  })

  test("cut before the answer: unknown", async () => {
    const server = await serve(({ socket }) => socket.destroy())
    const error = await transportTo(server.config)
      .send(request({ method: "POST", body: "{}" }))
      .catch(error => error)
    expect(error).not.toBeInstanceOf(NotSent)
    expect(error.code).toBe("ECONNRESET")
  })

  test("aborted before it was begun, while it waits for a connection, and after it left", async () => {
    const server = await serve(({ url }, response) => void (url === "/quick" && json(response, {})))
    const transport = transportTo(server.config)
    const abort = async (path: string, when: () => unknown) => {
      const controller = new AbortController()
      const sent = transport.send(request({ path, signal: controller.signal })).catch(error => error)
      await when()
      controller.abort(new Error("too late"))
      return sent
    }
    const early = AbortSignal.abort(new Error("too late"))
    expect(await transport.send(request({ signal: early })).catch(error => error)).toBeInstanceOf(NotSent)

    const others = new AbortController()
    const blocked = Array.from({ length: 32 }, () =>
      transport.send(request({ path: "/hang", signal: others.signal })).catch(() => {}),
    )
    await server.arrived(32)
    expect(await abort("/hang", nextTurn)).toBeInstanceOf(NotSent)
    others.abort(new Error("enough"))
    await Promise.all(blocked)

    const left = await abort("/hang", () => server.arrived(33))
    expect(left).not.toBeInstanceOf(NotSent)
    expect(left.message).toBe("too late")
    expect(await textOf(transport.send(request({ path: "/quick" })))).toBe("{}")
  })
})

describe("the body", () => {
  test("is pulled: a server that sends faster than we read is held up", async () => {
    const chunk = Buffer.alloc(1 << 20)
    let written = 0
    const stalled = Promise.withResolvers<void>()
    const server = await serve((_, response) => {
      const more = () => {
        while (response.write(chunk)) written++
        written++
        if (written < 200) response.once("drain", more)
      }
      more()
      const check = (before: number, calm = 0) => {
        if (calm > 2000) return stalled.resolve()
        setImmediate(() => check(written, written === before ? calm + 1 : 0))
      }
      check(written)
    })
    const over = new AbortController()
    const response = await transportTo(server.config).send(request({ signal: over.signal }))
    await stalled.promise
    expect(written).toBeLessThan(100)
    for await (const _ of response.body) break
    over.abort()
  })

  test("ends with the reason when the signal is aborted, and the server sees the connection go", async () => {
    const server = await serve((_, response) => response.write("first"))
    const over = new AbortController()
    const { body } = await transportTo(server.config).send(request({ signal: over.signal }))
    const chunks = body[Symbol.asyncIterator]()
    expect(Buffer.from((await chunks.next()).value!).toString()).toBe("first")
    const gone = once(server.seen[0]!.socket, "close")
    const next = chunks.next().catch(error => error)
    over.abort(new Error("enough"))
    expect((await next).message).toBe("enough")
    await gone
  })

  test("cut in the middle is an error, not an end", async () => {
    const server = await serve(({ socket }, response) => {
      response.writeHead(200, { "content-length": 10 })
      response.write("half", () => socket.destroy())
    })
    await expect(textOf(transportTo(server.config).send(request()))).rejects.toThrow("aborted")
  })
})

describe("credentials", () => {
  const rotating = (tokens: string[]) => {
    let at = 0
    const now = () => ({ authorization: `Bearer ${tokens[at]}` })
    return { current: async () => now(), renew: async () => (++at < tokens.length ? now() : undefined) }
  }
  const checking: Reply = ({ headers }, response) =>
    json(response, {}, headers.authorization === "Bearer new" ? 200 : 401)

  test("a 401 is tried again once with a renewed token, on the same connection", async () => {
    const server = await serve(checking)
    const transport = transportTo({ ...server.config, credentials: rotating(["old", "new"]) })
    const sent = await transport.send(request({ method: "POST", body: '{"a":1}' }))
    expect(sent.status).toBe(200)
    expect(server.seen.map(({ headers, body }) => [headers.authorization, body])).toEqual([
      ["Bearer old", '{"a":1}'],
      ["Bearer new", '{"a":1}'],
    ])
    expect(server.connections).toBe(1)
  })

  test("a 401 stays one when there is nothing newer or the newer is refused, too", async () => {
    const server = await serve(checking)
    for (const tokens of [["old"], ["old", "older", "new"]]) {
      const transport = transportTo({ ...server.config, credentials: rotating(tokens) })
      expect((await transport.send(request())).status).toBe(401)
    }
    expect(server.seen.length).toBe(3)
  })

  test("none to be had: never sent", async () => {
    const server = await serve(ok)
    const credentials = { current: () => Promise.reject(new Error("plugin failed")), renew: async () => undefined }
    const error = await transportTo({ ...server.config, credentials })
      .send(request())
      .catch(error => error)
    expect(error).toBeInstanceOf(NotSent)
    expect(error.message).toBe("plugin failed")
  })

  test("a token that no header can hold: never sent, and not quoted", async () => {
    const server = await serve(ok)
    const credentials = fixedCredentials({ authorization: "Bearer secret\nx" })
    const error = await transportTo({ ...server.config, credentials })
      .send(request({ method: "POST" }))
      .catch(error => error)
    expect(error).toBeInstanceOf(NotSent)
    expect(error.message).not.toContain("secret")
  })

  test("a renewal that takes too long ends with the request", async () => {
    const server = await serve((_, response) => json(response, {}, 401))
    const asked = Promise.withResolvers<void>()
    const renew = () => {
      asked.resolve()
      return new Promise<undefined>(() => {})
    }
    const over = new AbortController()
    const credentials = { current: async () => ({}), renew }
    const sent = transportTo({ ...server.config, credentials }).send(request({ signal: over.signal }))
    await asked.promise
    over.abort(new Error("too late"))
    expect((await sent).status).toBe(401)
  })

  test("the user to impersonate is sent with each request", async () => {
    const server = await serve(ok)
    const headers = { "impersonate-user": "jane", "impersonate-group": ["a", "b"] }
    await textOf(transportTo({ ...server.config, headers }).send(request()))
    expect(server.seen[0]?.headers).toMatchObject({ "impersonate-user": "jane", "impersonate-group": "a, b" })
  })
})
