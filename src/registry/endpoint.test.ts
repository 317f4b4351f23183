import { describe, expect, test } from "vitest"
import { parseAllowed, readAllowed, registryEndpoint, urlEndpoint } from "./endpoint.ts"

describe("--allow-registry", () => {
  test.each([
    ["registry.kube-system.svc:5000", { ok: true, key: "registry.kube-system.svc 5000", isSecure: true }],
    ["Registry.Example.COM:443", { ok: true, key: "registry.example.com 443", isSecure: true }],
    ["http://registry.kube-system.svc:5000", { ok: true, key: "registry.kube-system.svc 5000", isSecure: false }],
    ["127.0.0.1:5000", { ok: true, key: "127.0.0.1 5000", isSecure: false }],
    ["localhost:5000", { ok: true, key: "localhost 5000", isSecure: false }],
    ["[::1]:5000", { ok: true, key: "::1 5000", isSecure: false }],
    ["https://127.0.0.1:5000", { ok: true, key: "127.0.0.1 5000", isSecure: true }],
    ["10.0.0.7:80", { ok: true, key: "10.0.0.7 80", isSecure: true }],
  ])("%s", (text, expected) => expect(parseAllowed(text)).toEqual(expected))

  test.each([
    "",
    "registry",
    "registry.example.com",
    "registry:port",
    "registry:0",
    "registry:65536",
    "registry:5000/",
    "registry:5000/path",
    "user@registry:5000",
    "ftp://registry:5000",
    "http://registry",
    "*.example.com:443",
    "registry:5000?",
    "::1:5000",
    "a b:5000",
  ])("refused: %s", text => {
    expect(parseAllowed(text)).toMatchObject({ ok: false })
    expect(() => readAllowed([text])).toThrow("write HOST:PORT")
  })
})

const allowed = readAllowed(["127.0.0.1:5000", "http://plain.test:80", "http://plain.test:5000", "secure.test:5000"])

describe("the registry of a reference", () => {
  test.each([
    ["docker.io", "https registry-1.docker.io"],
    ["registry.example.com", "https registry.example.com"],
    ["registry.example.com:443", "https registry.example.com"],
    ["registry.example.com:80", "https registry.example.com:80"],
    ["127.0.0.1:5000", "http 127.0.0.1:5000 allowed"],
    ["0x7f.1:5000", "http 127.0.0.1:5000 allowed"], // the same, in the spelling of another century
    ["127.0.0.1:5001", "https 127.0.0.1:5001"],
    ["localhost:5000", "https localhost:5000"], // not what was allowed, though it may be the same place
    ["plain.test", "http plain.test allowed"],
    ["plain.test:80", "http plain.test allowed"],
    ["plain.test:443", "https plain.test"],
    ["plain.test:5000", "http plain.test:5000 allowed"],
    ["secure.test:5000", "https secure.test:5000 allowed"],
    ["secure.test", "https secure.test"],
    ["[2606:4700::1]:5000", "https [2606:4700::1]:5000"],
    ["1.2.3.4.5", undefined],
    ["registry.example.com:99999", undefined],
  ])("%s is at %s", (host, expected) => expect(shown(registryEndpoint(host, allowed))).toBe(expected))
})

describe("a token server", () => {
  test.each([
    ["https://auth.example.com/token", "https auth.example.com"],
    ["https://127.0.0.1:5000/token", "https 127.0.0.1:5000"], // allowed for plain HTTP, and that is another server
    ["http://127.0.0.1:5000/token", "http 127.0.0.1:5000 allowed"],
    ["http://127.0.0.1:5001/token", undefined],
    ["http://auth.example.com/token", undefined],
    ["http://secure.test:5000/token", undefined],
    ["https://secure.test:5000/token", "https secure.test:5000 allowed"],
    ["ftp://auth.example.com/token", undefined],
    ["file:///etc/passwd", undefined],
    [`https://${"a".repeat(254)}/token`, undefined],
  ])("%s is at %s", (url, expected) => expect(shown(urlEndpoint(new URL(url), allowed))).toBe(expected))
})

function shown(endpoint: ReturnType<typeof registryEndpoint>): string | undefined {
  if (!endpoint) return undefined
  return `${endpoint.isSecure ? "https" : "http"} ${endpoint.authority}${endpoint.isAllowed ? " allowed" : ""}`
}
