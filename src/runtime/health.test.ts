import { connect, type Socket } from "node:net"
import { afterEach, describe, expect, test } from "vitest"
import { type Check, type HealthServer, startHealthServer } from "./health.ts"
import { silentLogger } from "./silent-logger.ts"

let server: HealthServer | undefined
const cleanups: (() => void)[] = []
afterEach(() => {
  for (const cleanup of cleanups.splice(0)) cleanup()
  return server?.close()
})

async function serve(readyz: Record<string, Check> = {}, text = async () => "aim_up 1\n") {
  server = await startHealthServer({
    host: "127.0.0.1",
    port: 0,
    livez: { ping: () => undefined },
    readyz,
    metrics: { text, contentType: "text/plain; version=0.0.4; charset=utf-8" },
    log: silentLogger,
  })
  const url = `http://127.0.0.1:${server.port}`
  return async (path: string, init?: RequestInit) => {
    const response = await fetch(url + path, init)
    return { status: response.status, text: await response.text(), headers: response.headers }
  }
}

/** Connections that send nothing, and connect again when they are closed. */
async function besiege(port: number, count: number) {
  const opened = new Set<Socket>()
  let isOver = false
  let returns = 0
  let onReturn = () => {}
  const open = (): Promise<void> =>
    new Promise(resolve => {
      const socket = connect(port, "127.0.0.1", resolve)
      opened.add(socket)
      socket.on("error", () => {})
      socket.on("close", () => {
        opened.delete(socket)
        resolve()
        if (isOver) return
        open().then(() => {
          returns++
          onReturn()
        })
      })
    })
  cleanups.push(() => {
    isOver = true
    for (const socket of opened) socket.destroy()
  })
  await Promise.all(Array.from({ length: count }, open))
  return {
    async isBack() {
      const before = returns
      while (returns < before + 20)
        await new Promise<void>(resolve => {
          onReturn = resolve
        })
    },
  }
}

describe("the health server", () => {
  test("says ok", async () => {
    const ask = await serve()
    expect(await ask("/livez")).toMatchObject({ status: 200, text: "ok" })
    expect(await ask("/readyz")).toMatchObject({ status: 200, text: "ok" })
  })

  test("lists the checks when asked, as the API server does", async () => {
    const ask = await serve({ caches: () => undefined, lease: () => undefined })
    expect((await ask("/readyz?verbose")).text).toBe("[+]caches ok\n[+]lease ok\nreadyz check passed\n")
  })

  test("lists the checks when one fails, or breaks", async () => {
    const ask = await serve({
      caches: () => "pods not in sync",
      lease: () => undefined,
      odd: () => {
        throw new Error("a bug")
      },
    })
    expect(await ask("/readyz")).toMatchObject({
      status: 500,
      text: "[-]caches failed: pods not in sync\n[+]lease ok\n[-]odd failed: the check itself failed: a bug\nreadyz check failed\n",
    })
    expect((await ask("/livez")).status).toBe(200)
  })

  test("serves metrics with their content type", async () => {
    const ask = await serve()
    const { status, text, headers } = await ask("/metrics")
    expect([status, text, headers.get("content-type")]).toEqual([
      200,
      "aim_up 1\n",
      "text/plain; version=0.0.4; charset=utf-8",
    ])
  })

  test("a scrape that fails is a 500 without the reason, and the server goes on", async () => {
    const ask = await serve({}, () => Promise.reject(new Error("secret")))
    expect(await ask("/metrics")).toMatchObject({ status: 500, text: "internal error\n" })
    expect((await ask("/livez")).status).toBe(200)
  })

  test("knows no other path and no other method", async () => {
    const ask = await serve()
    for (const path of ["/", "/livez/", "/__proto__", "/constructor", "/metrics/../x"]) {
      expect((await ask(path)).status).toBe(404)
    }
    const refused = await ask("/livez", { method: "POST", body: "x" })
    expect([refused.status, refused.headers.get("allow")]).toEqual([405, "GET, HEAD"])
    expect(await ask("/livez", { method: "HEAD" })).toMatchObject({ status: 200, text: "" })
  })

  test("bounds headers, and does not wait for silent connections when it closes", async () => {
    const ask = await serve()
    await expect(ask("/livez", { headers: { "x-big": "x".repeat(20_000) } })).rejects.toThrow()
    const idle = connect(server!.port, "127.0.0.1")
    await new Promise(resolve => idle.once("connect", resolve))
    const closed = new Promise(resolve => idle.once("close", resolve))
    idle.on("error", () => {})
    await server!.close()
    await closed
  })

  test("has a place for the probe, however many silent connections there are", async () => {
    const ask = await serve()
    const crowd = await besiege(server!.port, 300)
    for (let at = 0; at < 10; at++) {
      await crowd.isBack() // those that were sent away have connected again
      const signal = AbortSignal.timeout(5000) // as the kubelet's
      expect((await ask("/livez", { signal, headers: { connection: "close" } })).status).toBe(200)
    }
  })

  test("keeps a scrape that takes its time, and the connections of a client that asks", async () => {
    const scraped = Promise.withResolvers<string>()
    const ask = await serve({}, () => scraped.promise)
    const scrape = ask("/metrics")
    const crowd = await besiege(server!.port, 300)
    await crowd.isBack()
    scraped.resolve("aim_up 1\n")
    expect((await scrape).text).toBe("aim_up 1\n")
  })

  test("says so when the port is taken", async () => {
    await serve()
    const again = startHealthServer({
      host: "127.0.0.1",
      port: server!.port,
      livez: {},
      readyz: {},
      metrics: { text: async () => "", contentType: "" },
      log: silentLogger,
    })
    await expect(again).rejects.toThrow(/EADDRINUSE/)
  })
})
