import { afterEach, expect, test } from "vitest"
import { virtualClock } from "#runtime/clock.ts"
import { createCluster } from "../cluster.ts"
import { type ServeOptions, type Serving, serveHttp } from "./serve.ts"

let serving: Serving | undefined
afterEach(() => serving?.close())

async function world(options?: ServeOptions) {
  const cluster = createCluster({ clock: virtualClock(Date.parse("2026-01-01T00:00:00Z")) })
  serving = await serveHttp(cluster.transport, options)
  return { cluster, url: serving.url }
}

test("the same server over a socket, protobuf bodies included", async () => {
  const { url } = await world()
  const body = Buffer.from("azhzAAoPCgJ2MRIJQ29uZmlnTWFwEhwKEgoCYzkSABoAIgAqADIAOABCABIGCgFhEgFiGgAiAA==", "base64")
  const headers = { "content-type": "application/vnd.kubernetes.protobuf" }
  const created = await fetch(`${url}/api/v1/namespaces/default/configmaps`, { method: "POST", headers, body })
  expect(created.status).toBe(201)
  const read = await fetch(`${url}/api/v1/namespaces/default/configmaps/c9`)
  expect(await read.json()).toMatchObject({ kind: "ConfigMap", data: { a: "b" } })
})

test("a watch streams, and its end is the end of the server's interest in it", async () => {
  const { url, cluster } = await world()
  const ending = new AbortController()
  const answer = await fetch(`${url}/api/v1/configmaps?watch=true`, { signal: ending.signal })
  const reader = answer.body?.getReader()
  const kind = cluster.storage.kind("v1", "ConfigMap")
  if (!reader || !kind) throw new Error("no stream")
  cluster.storage.create(kind, { metadata: { name: "a", namespace: "default" } })
  const { value } = await reader.read()
  expect(JSON.parse(Buffer.from(value ?? []).toString("utf8"))).toMatchObject({
    type: "ADDED",
    object: { metadata: { name: "a" } },
  })
  ending.abort()
})

test("with a token, nobody comes in without it", async () => {
  const { url } = await world({ token: "secret" })
  expect((await fetch(`${url}/version`)).status).toBe(401)
  const headers = { authorization: "Bearer secret" }
  expect((await fetch(`${url}/version`, { headers })).status).toBe(200)
})

test("a reader who is slow leaves nothing behind, however often it was waited for", async () => {
  const warnings: string[] = []
  const listen = (warning: Error) => warnings.push(warning.name)
  process.on("warning", listen)
  const chunk = Buffer.alloc(1 << 16)
  const body = (async function* () {
    for (let turn = 0; turn < 100; turn++) yield chunk
  })()
  const transport = { send: async () => ({ status: 200, headers: {}, body }), close: () => {} }
  const slow = await serveHttp(transport)
  const answer = await fetch(slow.url)
  expect((await answer.arrayBuffer()).byteLength).toBe(100 * chunk.length)
  await slow.close()
  process.off("warning", listen)
  expect(warnings).toEqual([])
})
