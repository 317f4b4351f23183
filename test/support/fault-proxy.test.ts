import { createServer, type ServerResponse } from "node:http"
import { afterEach, beforeEach, expect, test } from "vitest"
import { type FaultProxy, faultProxy } from "./fault-proxy.ts"

/** A server that records requests and streams events to every watch. */
async function littleServer() {
  const reached: string[] = []
  const watchers = new Set<ServerResponse>()
  const server = createServer((request, response) => {
    reached.push(`${request.method} ${request.url}`)
    if (!request.url?.includes("watch=")) return response.writeHead(200).end("done")
    const { accept = "" } = request.headers
    watchers.add(response.writeHead(200, { "content-type": accept.includes("protobuf") ? accept : "application/json" }))
    response.flushHeaders()
    response.once("close", () => watchers.delete(response))
  })
  await new Promise<void>(resolve => server.listen(0, "127.0.0.1", resolve))
  const { port } = server.address() as { port: number }
  return {
    url: `http://127.0.0.1:${port}`,
    reached,
    watchers,
    emit: (text: string) => watchers.forEach(watcher => void watcher.write(text)),
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
}

let server: Awaited<ReturnType<typeof littleServer>>
let proxy: FaultProxy
beforeEach(async () => {
  server = await littleServer()
  proxy = await faultProxy({ target: { server: server.url } })
})
afterEach(async () => {
  await proxy.close()
  server.close()
})

const call = (method: string, path: string, headers: Record<string, string> = {}) =>
  fetch(`${proxy.server}${path}`, { method, headers, signal: AbortSignal.timeout(5000) })

async function watch(path: string, accept = "application/json") {
  const response = await call("GET", path, { accept })
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
  let text = ""
  return async (wanted: string) => {
    while (!text.includes(wanted)) {
      const { value, done } = (await reader?.read()) ?? { done: true, value: "" }
      if (done) throw new Error(`the watch ended after ${JSON.stringify(text)}`)
      text += value
    }
    return text
  }
}

test("without rules it forwards, and remembers what it saw", async () => {
  const answer = await fetch(`${proxy.server}/pods?limit=1`, { method: "POST", body: "{}" })
  expect([answer.status, await answer.text()]).toEqual([200, "done"])
  expect(server.reached).toEqual(["POST /pods?limit=1"])
  expect(proxy.requests).toEqual([{ method: "POST", path: "/pods?limit=1", body: "{}", status: 200 }])
})

test("counts only what changes something as a write", async () => {
  await call("GET", "/pods")
  await call("PATCH", "/pods/a")
  await call("DELETE", "/nodes/b")
  expect(proxy.writes().map(seen => seen.method)).toEqual(["PATCH", "DELETE"])
  expect(proxy.writes(/pods/)).toHaveLength(1)
})

test("cuts the nth matching request before it reaches the server, and no other", async () => {
  const rule = proxy.fault({ match: { method: "PUT", path: /^\/pods/, nth: 2 }, do: { do: "cut" } })
  expect((await call("PUT", "/pods/1")).status).toBe(200)
  await call("GET", "/pods/1")
  await expect(call("PUT", "/pods/2")).rejects.toThrow()
  expect((await call("PUT", "/pods/3")).status).toBe(200)
  expect(server.reached).toEqual(["PUT /pods/1", "GET /pods/1", "PUT /pods/3"])
  expect(rule.hits).toBe(1)
})

test("swallows the answer to what the server has done", async () => {
  const rule = proxy.fault({ match: { method: "POST" }, do: { do: "swallow" } })
  await expect(call("POST", "/pods")).rejects.toThrow()
  await rule.struck
  expect(server.reached).toEqual(["POST /pods"])
  expect(proxy.requests[0]).toMatchObject({ status: 200, fault: "swallow" })
})

test("delivers a held request on release, even when its client has gone", async () => {
  const rule = proxy.fault({ match: { method: "PATCH" }, do: { do: "hold" } })
  const gone = new AbortController()
  const late = fetch(`${proxy.server}/pods/a`, { method: "PATCH", body: "{}", signal: gone.signal })
  await rule.struck
  await call("GET", "/meanwhile")
  expect(server.reached).toEqual(["GET /meanwhile"])
  gone.abort()
  await expect(late).rejects.toThrow()
  rule.release()
  await expect.poll(() => server.reached).toEqual(["GET /meanwhile", "PATCH /pods/a"])
})

test("keeps back the answer to what the server has done, until released", async () => {
  const rule = proxy.fault({ match: { method: "PUT" }, do: { do: "holdAnswer" } })
  let isReleased = false
  const answered = call("PUT", "/pods/a").then(({ status }) => ({ status, isReleased }))
  await rule.struck
  expect(server.reached).toEqual(["PUT /pods/a"])
  await call("GET", "/meanwhile")
  isReleased = true
  rule.release()
  expect(await answered).toEqual({ status: 200, isReleased: true })
})

test("knows requests by what they carry", async () => {
  proxy.fault({ match: { body: /"image":"v2"/ }, do: { do: "cut" } })
  const put = (image: string) => fetch(`${proxy.server}/a`, { method: "PUT", body: JSON.stringify({ image }) })
  expect((await put("v1")).status).toBe(200)
  await expect(put("v2")).rejects.toThrow()
})

test("delays", async () => {
  proxy.fault({ match: { times: 1 }, do: { do: "delay", ms: 80 } })
  const since = performance.now()
  await call("GET", "/pods")
  expect(performance.now() - since).toBeGreaterThan(75)
})

test("answers in the server's place, for the given number of requests", async () => {
  proxy.fault({ match: { times: 1 }, do: { do: "answer", status: 429, retryAfterSeconds: 3 } })
  const answer = await call("PUT", "/pods/a")
  expect([answer.status, answer.headers.get("retry-after")]).toEqual([429, "3"])
  expect(await answer.json()).toMatchObject({ kind: "Status", reason: "TooManyRequests", code: 429 })
  expect((await call("PUT", "/pods/a")).status).toBe(200)
  expect(server.reached).toEqual(["PUT /pods/a"])
})

test("gives whole events of a watch as they come", async () => {
  const read = await watch("/pods?watch=true")
  server.emit("one\nhalf of ")
  expect(await read("one\n")).toBe("one\n")
  server.emit("two\n")
  expect(await read("two\n")).toBe("one\nhalf of two\n")
})

test("duplicates the events of a watch", async () => {
  proxy.fault({ match: { path: /pods/ }, do: { do: "duplicateEvents" } })
  const read = await watch("/pods?watch=1")
  server.emit("one\ntwo\n")
  expect(await read("two\ntwo\n")).toBe("one\none\ntwo\ntwo\n")
})

test("an event in a frame needs no end of line, and may have one inside", async () => {
  proxy.fault({ match: { path: /pods/ }, do: { do: "duplicateEvents" } })
  const read = await watch("/pods?watch=1", "application/vnd.kubernetes.protobuf;stream=watch")
  const [one, two] = ["\0\0\0\x03one", "\0\0\0\x04t\nwo"]
  server.emit(one)
  expect(await read(one + one)).toBe(one + one)
  server.emit(two.slice(0, 2))
  server.emit(two.slice(2))
  expect(await read(two + two)).toBe(one + one + two + two)
})

test("holds the events of a watch until released, then gives them in order", async () => {
  const rule = proxy.fault({ match: { path: /pods/ }, do: { do: "holdEvents" } })
  const [pods, nodes] = [await watch("/pods?watch=1"), await watch("/nodes?watch=1")]
  let isHeld = true
  const first = pods("\n").then(text => ({ text, isHeld }))
  server.emit("one\n")
  await nodes("one\n")
  server.emit("two\n")
  await nodes("two\n")
  isHeld = false
  rule.release()
  expect(await first).toEqual({ text: expect.stringContaining("one\n"), isHeld: false })
  server.emit("three\n")
  expect(await pods("three\n")).toBe("one\ntwo\nthree\n")
})

test("breaks the given watches", async () => {
  const [pods, nodes] = [await watch("/pods?watch=1"), await watch("/nodes?watch=1")]
  proxy.cutWatches(/pods/)
  await expect(pods("anything")).rejects.toThrow()
  server.emit("still here\n")
  expect(await nodes("here\n")).toBe("still here\n")
})

test("disconnects everything, and connects again", async () => {
  const read = await watch("/pods?watch=1")
  const reconnect = proxy.disconnect()
  await expect(read("anything")).rejects.toThrow()
  await expect(call("GET", "/pods")).rejects.toThrow()
  reconnect()
  expect((await call("GET", "/pods")).status).toBe(200)
})
