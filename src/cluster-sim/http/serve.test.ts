import { once } from "node:events"
import { request } from "node:https"
import { afterEach, expect, test } from "vitest"
import { createAuthority } from "#lib/certificate.ts"
import { virtualClock } from "#runtime/clock.ts"
import { createCluster } from "../cluster.ts"
import { type Serving, serveHttp } from "./serve.ts"

let serving: Serving | undefined
afterEach(() => serving?.close())

const clock = virtualClock(Date.parse("2026-01-01T00:00:00Z"))

async function world() {
  const cluster = createCluster({ clock })
  serving = await serveHttp(cluster.transport)
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

test("connections that are not used are left to their client, for as long as a real server leaves them", async () => {
  const { url } = await world()
  const { headers } = await fetch(`${url}/version`)
  expect(headers.get("keep-alive")).toBe("timeout=90")
})

test("a watch streams, and the server stops it when the client closes it", async () => {
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

const admin = { name: "admin", groups: ["system:masters"] }

test("a token identifies a user, and without one a request is anonymous", async () => {
  const cluster = createCluster({ clock, users: { secret: admin } })
  serving = await serveHttp(cluster.front())
  const ask = async (authorization?: string) => {
    const headers = authorization ? { authorization } : {}
    return (await fetch(`${serving?.url}/api/v1/pods`, { headers })).status
  }
  expect(await ask()).toBe(403)
  expect(await ask("Bearer other")).toBe(401)
  expect(await ask("Bearer secret")).toBe(200)
})

test("a certificate signed by the authority identifies a user, and another one does not", async () => {
  const [authority, other] = [0, 1].map(() => createAuthority({ name: "test", now: Date.now(), days: 1 }))
  const cluster = createCluster({ clock })
  const tls = { ...authority!.forServer({ name: "server" }, ["127.0.0.1"]), clientAuthority: authority!.cert }
  serving = await serveHttp(cluster.front(), { tls, forClient: cluster.front })
  const { url } = serving
  const ask = async (client: { cert?: string; key?: string }) => {
    const path = `${url}/apis/authentication.k8s.io/v1/selfsubjectreviews`
    const headers = { "content-type": "application/json" }
    const asked = request(path, { method: "POST", headers, ca: authority!.cert, agent: false, ...client }).end("{}")
    const [answer] = await once(asked, "response")
    const { status, message } = JSON.parse((await answer.toArray()).join(""))
    return status.userInfo?.username ?? message
  }
  const subject = { name: "anna", organizations: ["system:masters"] }
  expect(await ask(authority!.forClient(subject))).toBe("anna")
  const refused = /^selfsubjectreviews.authentication.k8s.io is forbidden: User "system:anonymous" cannot create/
  expect(await ask(other!.forClient(subject))).toMatch(refused)
  expect(await ask({})).toMatch(refused)
})

test("a slow reader leaves no listeners behind", async () => {
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
