import type { Socket } from "node:net"
import { describe, expect, test } from "vitest"
import { makeCertificates, type Reply } from "#runtime/client/test-server.ts"
import { excerptOf } from "./body.ts"
import type { EgressRequest } from "./request.ts"
import { egressOf, requestAt } from "./test-egress.ts"
import { internet, serve, serveRaw } from "./test-servers.ts"

/** Servers that a user may name, and that do what no server should. All are on loopback, where they were allowed. */

const answering = async (text: string, asked: Partial<EgressRequest> = {}) =>
  requestAt(await serveRaw(socket => socket.once("data", () => socket.end(text))), asked)

/** Writes a piece every 10 ms until the connection ends. */
function dribble(socket: Socket, piece: string) {
  const timer = setInterval(() => socket.write(piece), 10)
  socket.on("close", () => clearInterval(timer))
}

describe("time", () => {
  test("a head that comes byte by byte", async () => {
    const port = await serveRaw(socket => {
      socket.write("HTTP/1.1 200 OK\r\nX-Slow: ")
      dribble(socket, "x")
    })
    expect(await requestAt(port, { firstByteMs: 150 })).toEqual({
      ok: false,
      class: "Timeout",
      message: "127.0.0.1 did not begin its answer within 0.15 s",
    })
  })

  test("interim answers without end", async () => {
    const port = await serveRaw(socket => dribble(socket, "HTTP/1.1 103 Early Hints\r\n\r\n"))
    expect(await requestAt(port, { firstByteMs: 150 })).toMatchObject({ class: "Timeout" })
  })

  test("a body that comes byte by byte", async () => {
    const port = await serveRaw(socket => {
      socket.write("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
      dribble(socket, "x")
    })
    expect(await requestAt(port, { timeoutMs: 200, firstByteMs: 150 })).toEqual({
      ok: false,
      class: "Timeout",
      message: "127.0.0.1 did not send its whole answer within 0.2 s",
    })
  })

  test("an answer that begins in time may take longer", async () => {
    const server = await serve((_, response) => {
      response.write("a")
      setTimeout(() => response.end("b"), 1100)
    })
    expect(await requestAt(server.port, { firstByteMs: 1000 })).toMatchObject({ ok: true, body: Buffer.from("ab") })
  })

  test("a handshake that never ends", async () => {
    const port = await serveRaw(() => {})
    const ask = egressOf({ allow: [`shop=127.0.0.1:${port}`], limits: { connectMs: 100 } })
    expect(await ask(`https://127.0.0.1:${port}/`)).toMatchObject({
      class: "Timeout",
      message: "127.0.0.1 does not accept connections in time",
    })
  })

  test("a name server that never answers", async () => {
    const ask = egressOf({ lookup: () => new Promise(() => {}) })
    expect(await ask("http://example.com/", { timeoutMs: 100 })).toMatchObject({ class: "Timeout" })
  })
})

describe("size", () => {
  /** Writes as fast as it is read, and counts. */
  function endless(head: (response: Parameters<Reply>[1]) => void) {
    let written = 0
    const reply: Reply = (_, response) => {
      head(response)
      const piece = Buffer.alloc(64 * 1024, "x")
      const more = () => {
        while (!response.destroyed && response.write(piece)) written += piece.length
      }
      response.on("drain", more)
      more()
    }
    return { reply, written: () => written }
  }

  test("a body without end ends the connection, and is not quoted", async () => {
    const { reply, written } = endless(response => response.writeHead(200))
    const server = await serve(reply)
    const answer = await requestAt(server.port, { maxBytes: 100_000 })
    expect(answer).toEqual({
      ok: false,
      class: "InvalidAnswer",
      message: "127.0.0.1 answers with more than 100000 bytes",
    })
    expect(written()).toBeLessThan(32 * 1024 * 1024) // what the machine's buffers took besides
  })

  test("an explanation without end of what is no success is cut", async () => {
    const { reply } = endless(response => response.writeHead(500))
    const answer = await requestAt((await serve(reply)).port, { maxBytes: 10 })
    if (!answer.ok) throw new Error(answer.message)
    expect([answer.status, answer.body.length, excerptOf(answer.body).length]).toEqual([500, 4096, 200])
  })

  test("an announced body that is too long is not waited for", async () => {
    const server = await serve((_, response) => response.writeHead(200, { "content-length": 1_000_000 }).flushHeaders())
    expect(await requestAt(server.port)).toMatchObject({ class: "InvalidAnswer" })
  })

  test("as much as was asked for is fine, and one byte more is not", async () => {
    const server = await serve((_, response) => response.end("x".repeat(1000)))
    expect(await requestAt(server.port, { maxBytes: 1000 })).toMatchObject({ ok: true })
    expect(await requestAt(server.port, { maxBytes: 999 })).toMatchObject({ class: "InvalidAnswer" })
  })

  test.each([
    ["one header", { "x-padding": "x".repeat(40_000) }],
    ["many headers", Object.fromEntries(Array.from({ length: 5000 }, (_, at) => [`x-${at}`, "x"]))],
  ])("a head of %s beyond all measure", async (_, headers) => {
    const server = await serve((_, response) => response.writeHead(200, headers).end())
    expect(await requestAt(server.port)).toMatchObject({
      class: "InvalidAnswer",
      message: "127.0.0.1 answers with headers beyond all measure",
    })
  })
})

describe("HTTP", () => {
  const chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
  test.each([
    ["a chunk of no length", `${chunked}zz\r\nsecret\r\n`],
    ["a chunk of a negative length", `${chunked}-5\r\nsecret\r\n`],
    ["a chunk of a length beyond all numbers", `${chunked}fffffffffffffffff\r\nsecret\r\n`],
    ["a chunk longer than it says", `${chunked}2\r\nsecret\r\n0\r\n\r\n`],
    ["two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nsecret"],
    ["a length and chunks", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"],
    ["no HTTP at all", "SSH-2.0-OpenSSH secret\r\n"],
    ["a line that is no header", "HTTP/1.1 200 OK\r\nno header: \u0000\r\n\r\n"],
    ["something compressed", "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 6\r\n\r\nsecret"],
  ])("%s is an invalid answer", async (_, text) => {
    const answer = await answering(text)
    expect(answer).toMatchObject({ ok: false, class: "InvalidAnswer" })
    expect(JSON.stringify(answer)).not.toContain("secret")
  })

  test.each([
    ["before its answer", ""],
    ["within its head", "HTTP/1.1 200 OK\r\nX-"],
    ["within its body", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nsecret"],
    ["within a chunk", `${chunked}ff\r\nsecret`],
    ["in favour of another protocol", "HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"],
  ])("a connection that ends %s", async (_, text) => {
    const answer = await answering(text)
    expect(answer).toMatchObject({ ok: false, class: "Unreachable" })
    expect(JSON.stringify(answer)).not.toContain("secret")
  })

  test("a second answer after the first is not read", async () => {
    const answer = await answering(
      "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 500 No\r\nContent-Length: 2\r\n\r\nno",
    )
    expect(answer).toMatchObject({ ok: true, status: 200, body: Buffer.from("ok") })
  })

  test("an encoded refusal is its status", async () => {
    const answer = await answering(
      "HTTP/1.1 502 Bad\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\n\u001f\u008b\b",
    )
    expect(answer).toMatchObject({ ok: true, status: 502, body: Buffer.alloc(0) })
  })
})

test.each([301, 302, 303, 307, 308])(
  "a redirect (%s) to a metadata address leads to no further connection",
  async code => {
    const server = await serve((_, response) =>
      response.writeHead(code, { location: "http://169.254.169.254/latest/meta-data/" }).end(),
    )
    const net = internet(server.port, { "hooks.example.com": ["1.1.1.1"] })
    const answer = await egressOf(net.options)("http://hooks.example.com/", { method: "POST" })
    expect(answer).toMatchObject({ ok: true, status: code })
    expect(net.dialled.map(({ address }) => address)).toEqual(["1.1.1.1"])
  },
)

describe("TLS", () => {
  const certificates = makeCertificates()
  const tls = { ...certificates.server, ca: certificates.ca }
  const at = async (
    host: string,
    asked: Partial<EgressRequest>,
    { trust = [certificates.ca], isAllowed = true } = {},
  ) => {
    const server = await serve((_, response) => response.end("yes"), { tls })
    const world = { trust, lookup: async () => ["127.0.0.1"], allow: isAllowed ? [`shop=${host}:${server.port}`] : [] }
    const answer = await egressOf(world)(`https://${host}:${server.port}/`, asked)
    return { answer, seen: server.seen }
  }

  test.each(["kube.test", "127.0.0.1"])("a certificate for %s", async host =>
    expect((await at(host, {})).answer).toMatchObject({ ok: true, status: 200 }),
  )

  test("another's name", async () => {
    const { answer, seen } = await at("hooks.test", {})
    expect(answer).toMatchObject({ class: "TLS", message: expect.stringContaining("ERR_TLS_CERT_ALTNAME_INVALID") })
    expect(seen).toEqual([])
  })

  test("an unknown authority", async () => {
    const { answer, seen } = await at("kube.test", {}, { trust: [] })
    expect(answer).toMatchObject({ class: "TLS", message: expect.stringContaining("SELF_SIGNED_CERT_IN_CHAIN") })
    expect(seen).toEqual([])
  })

  test("unchecked, where an administrator allowed the host", async () => {
    expect((await at("hooks.test", { isUnchecked: true }, { trust: [] })).answer).toMatchObject({ ok: true })
  })

  test("unchecked is for no other host, public ones and own Services included", async () => {
    const { answer, seen } = await at("hooks.test", { isUnchecked: true }, { isAllowed: false })
    expect(answer).toMatchObject({
      class: "ForbiddenAddress",
      message: expect.stringMatching(/^hooks.test may not be used without checking its certificate: .*--allow-egress/),
    })
    expect(seen).toEqual([])
    const pod = { namespace: "shop", addresses: ["10.1.0.7"], isHostNetwork: false }
    const endpoints = [{ address: "10.1.0.7", port: 443, pod }]
    const net = internet(1, {})
    const ask = egressOf({ ...net.options, serviceAt: () => ({ type: "ClusterIP", hasSelector: true, endpoints }) })
    expect(await ask("https://hooks/", { isUnchecked: true })).toMatchObject({ class: "ForbiddenAddress" })
    expect(net.dialled).toEqual([])
  })

  test("plain text where TLS was asked for: no falling back", async () => {
    const server = await serve((_, response) => response.end("yes"))
    const ask = egressOf({ allow: [`shop=127.0.0.1:${server.port}`] })
    expect(await ask(`https://127.0.0.1:${server.port}/`, { isUnchecked: true })).toMatchObject({ class: "TLS" })
    expect(server.seen).toEqual([])
  })
})
