import { expect, onTestFinished, test } from "vitest"
import { makeCertificates, testServer } from "#runtime/client/test-server.ts"
import { connectApi } from "./api.ts"

test("a DELETE with a body leaves the connection to the next request", async () => {
  const { ca, server } = makeCertificates()
  const reply = (_: unknown, response: import("node:http").ServerResponse) => void response.end("{}")
  const api = await testServer(reply, { tls: { ...server, ca } })
  onTestFinished(() => api.close())
  const client = connectApi({ server: api.config.server, certificateAuthority: ca, token: "t" })
  onTestFinished(() => client.close())
  await client.remove("/things/a", { propagationPolicy: "Orphan", preconditions: { uid: "ü" } })
  await client.get("/things")
  expect(api.seen.map(({ method, url, body }) => ({ method, url, body }))).toEqual([
    { method: "DELETE", url: "/things/a", body: '{"propagationPolicy":"Orphan","preconditions":{"uid":"ü"}}' },
    { method: "GET", url: "/things", body: "" },
  ])
  expect(api.connections).toBe(1)
})
