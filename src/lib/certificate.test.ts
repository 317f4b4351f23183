import { X509Certificate } from "node:crypto"
import { once } from "node:events"
import { createServer, request } from "node:https"
import type { AddressInfo } from "node:net"
import type { TLSSocket } from "node:tls"
import { expect, onTestFinished, test } from "vitest"
import { createAuthority } from "./certificate.ts"

const now = Date.now()

test("an authority vouches for its servers and clients, and says what they are", () => {
  const authority = createAuthority({ name: "test", now, days: 10 })
  const root = new X509Certificate(authority.cert)
  expect(root.ca).toBe(true)
  expect(root.verify(root.publicKey)).toBe(true)
  const server = new X509Certificate(authority.forServer({ name: "server" }, ["localhost", "127.0.0.1"]).cert)
  expect(server.checkIssued(root)).toBe(true)
  expect(server.verify(root.publicKey)).toBe(true)
  expect(server.subjectAltName).toBe("DNS:localhost, IP Address:127.0.0.1")
  expect(server.ca).toBe(false)
  expect(Date.parse(server.validTo)).toBe(Math.floor((now + 10 * 86_400_000) / 1000) * 1000)
  const client = new X509Certificate(authority.forClient({ name: "anna", organizations: ["dev", "ops"] }).cert)
  expect(client.subject).toBe("O=dev\nO=ops\nCN=anna")
  const other = new X509Certificate(createAuthority({ name: "test", now, days: 10 }).cert)
  expect(client.verify(other.publicKey)).toBe(false)
})

test("a client and a server trust each other over a socket", async () => {
  const authority = createAuthority({ name: "test", now, days: 1 })
  const own = authority.forServer({ name: "server" }, ["127.0.0.1"])
  const server = createServer({ ...own, ca: authority.cert, requestCert: true, rejectUnauthorized: false })
  server.on("request", (incoming, outgoing) => outgoing.end(String((incoming.socket as TLSSocket).authorized)))
  server.listen(0, "127.0.0.1")
  onTestFinished(() => void server.close())
  await once(server, "listening")
  const ask = async (client: object) => {
    const { port } = server.address() as AddressInfo
    const asked = request({ host: "127.0.0.1", port, ca: authority.cert, agent: false, ...client }).end()
    const [answer] = await once(asked, "response")
    return (await answer.toArray()).join("")
  }
  expect(await ask(authority.forClient({ name: "anna" }))).toBe("true")
  const stranger = createAuthority({ name: "test", now, days: 1 }).forClient({ name: "anna" })
  expect(await ask(stranger)).toBe("false")
})
