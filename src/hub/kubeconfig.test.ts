import { expect, test } from "vitest"
import { createAuthority } from "#lib/certificate.ts"
import { kubeconfigOf } from "#test/support/transport/spoke.ts"
import { readSpokeKubeconfig } from "./kubeconfig.ts"

const authority = createAuthority({ name: "test", now: Date.now(), days: 30 })
const server = "https://api.example.com:6443"
const token = { token: "abc" }
const base = { server, ca: authority.cert, user: token }
const client = authority.forClient({ name: "hub" })
const inBase64 = (text: string) => Buffer.from(text).toString("base64")

const refused: Record<string, { text: string; names: string }> = {
  "a program for credentials": {
    text: kubeconfigOf({ ...base, user: { exec: { command: "/bin/sh" } } }),
    names: "user.exec",
  },
  "a program beside a token": { text: kubeconfigOf({ ...base, user: { ...token, exec: {} } }), names: "user.exec" },
  "an auth-provider": {
    text: kubeconfigOf({ ...base, user: { "auth-provider": { name: "gcp" } } }),
    names: "user.auth-provider",
  },
  "a file with a token": {
    text: kubeconfigOf({ ...base, user: { tokenFile: "/etc/shadow" } }),
    names: "user.tokenFile",
  },
  "a file with a certificate": {
    text: kubeconfigOf({ ...base, user: { "client-certificate": "/a", "client-key": "/b" } }),
    names: "user.client-certificate",
  },
  "a password": { text: kubeconfigOf({ ...base, user: { username: "a", password: "b" } }), names: "user.username" },
  "another user's name": { text: kubeconfigOf({ ...base, user: { ...token, as: "admin" } }), names: "user.as" },
  "no credential": { text: kubeconfigOf({ ...base, user: {} }), names: "no credential" },
  "a certificate without its key": {
    text: kubeconfigOf({ ...base, user: { "client-certificate-data": inBase64(client.cert) } }),
    names: "no credential",
  },
  "a proxy": { text: kubeconfigOf({ ...base, cluster: { "proxy-url": "http://proxy" } }), names: "cluster.proxy-url" },
  "TLS that is not checked": {
    text: kubeconfigOf({ ...base, cluster: { "insecure-skip-tls-verify": true } }),
    names: "insecure-skip-tls-verify",
  },
  "an authority in a file": {
    text: kubeconfigOf({ ...base, cluster: { "certificate-authority": "/ca.crt" } }),
    names: "cluster.certificate-authority",
  },
  "no authority": { text: kubeconfigOf({ ...base, ca: "" }), names: "certificate-authority-data" },
  "an authority that is none": { text: kubeconfigOf({ ...base, ca: "x" }), names: "certificate-authority-data" },
  "a server without TLS": { text: kubeconfigOf({ ...base, server: "http://api.example.com" }), names: "not https" },
  "a server with a password": {
    text: kubeconfigOf({ ...base, server: "https://a:b@api.example.com" }),
    names: "cluster.server",
  },
  "no server": { text: kubeconfigOf({ ...base, server: "api" }), names: "cluster.server" },
  "a token with a line break": { text: kubeconfigOf({ ...base, user: { token: "a\nb" } }), names: "user.token" },
  "no YAML": { text: "{", names: "not YAML" },
  "a list": { text: "[]", names: "not a mapping" },
  "aliases that grow": { text: `a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n`, names: "not YAML" },
  "too much": { text: " ".repeat(300_000), names: "more than" },
  "no context": { text: "current-context: a\ncontexts: []\n", names: "contexts has no entry" },
}

for (const [name, { text, names }] of Object.entries(refused))
  test(`${name} is refused, and no value is quoted`, () => {
    const read = readSpokeKubeconfig(text)
    if (read.ok) throw new Error("it was accepted")
    expect(read.error).toContain(names)
    expect(read.error).not.toMatch(/shadow|abc|\/bin\/sh/)
  })

test("a token or a certificate with an authority is read, and the fingerprint is of server and authority alone", () => {
  const read = (text: string) => {
    const answer = readSpokeKubeconfig(text)
    if (!answer.ok) throw new Error(answer.error)
    return answer.value
  }
  const plain = read(kubeconfigOf(base))
  expect(plain.config).toMatchObject({ server, tls: { verify: true, ca: authority.cert } })
  const data = { "client-certificate-data": inBase64(client.cert), "client-key-data": inBase64(client.key) }
  const certified = read(kubeconfigOf({ ...base, user: data }))
  expect(certified.expiresAt).toBeGreaterThan(Date.now())
  expect(certified.registered).toBe(plain.registered)
  const other = createAuthority({ name: "other", now: Date.now(), days: 30 })
  expect(read(kubeconfigOf({ ...base, ca: other.cert })).registered).not.toBe(plain.registered)
  expect(read(kubeconfigOf({ ...base, server: "https://other.example.com:6443" })).registered).not.toBe(
    plain.registered,
  )
  const claims = `${inBase64("{}")}.${Buffer.from(JSON.stringify({ exp: 1_800_000_000 })).toString("base64url")}.x`
  expect(read(kubeconfigOf({ ...base, user: { token: claims } })).expiresAt).toBe(1_800_000_000_000)
})
