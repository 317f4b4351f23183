import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { credentialsFor, credentialsOf, type PullSecret } from "./pull-secret.ts"
import { parseImageReference } from "./reference.ts"

const base64 = (text: string) => Buffer.from(text).toString("base64")
const auth = (username: string, password = "pw") => ({ auth: base64(`${username}:${password}`) })

const dockerConfig = (auths: unknown): PullSecret => ({
  type: "kubernetes.io/dockerconfigjson",
  data: { ".dockerconfigjson": base64(JSON.stringify({ auths })) },
})
const dockercfg = (entries: unknown): PullSecret => ({
  type: "kubernetes.io/dockercfg",
  data: { ".dockercfg": base64(JSON.stringify(entries)) },
})

describe("where credentials are for", () => {
  const cases: Record<string, string | undefined> = {
    "quay.io": "quay.io",
    "https://quay.io": "quay.io",
    "http://quay.io/": "quay.io",
    "https://index.docker.io/v1/": "index.docker.io",
    "https://quay.io/v2/": "quay.io",
    "quay.io/v2/team": "quay.io/team",
    "quay.io/team": "quay.io/team",
    "quay.io/team/": "quay.io/team/",
    "quay.io/v1": "quay.io/v1", // as the kubelet: only with a slash behind it
    "quay.io:5000": "quay.io:5000",
    "[::1]:5000": "[::1]:5000",
    "*.example.com": "*.example.com",
    "user@quay.io/team?x#y": "quay.io/team",
    "": undefined,
    "https://": undefined,
    "/team": undefined,
    "a b": undefined,
    "quay.io:port": undefined,
    "quay.io/%74eam": undefined,
    "quay.io/über": undefined,
    "ftp://quay.io": undefined,
  }
  for (const [location, key] of Object.entries(cases))
    test(`${JSON.stringify(location)} → ${key}`, () => {
      expect([...credentialsOf(dockerConfig({ [location]: auth("a") })).keys()]).toEqual(key === undefined ? [] : [key])
    })
})

describe("what is in an entry", () => {
  const alice = { username: "alice", password: "secret" }
  const cases: Record<string, [entry: unknown, expected: object | undefined]> = {
    auth: [auth("alice", "secret"), alice],
    "auth without padding": [{ auth: base64("alice:secret").replace(/=+$/, "") }, alice],
    "auth with line breaks": [{ auth: base64("alice:secret").replace(/(.{4})/g, "$1\n") }, alice],
    "username and password": [{ ...alice, email: "alice@example.com" }, alice],
    "auth goes before username and password": [
      { ...auth("bob", "x"), ...alice },
      { username: "bob", password: "x" },
    ],
    "empty auth": [{ ...alice, auth: "" }, alice],
    "a password with colons": [auth("alice", "a:b:"), { username: "alice", password: "a:b:" }],
    "a password with other letters": [auth("alice", "ü✓"), { username: "alice", password: "ü✓" }],
    "a token without a name": [{ password: "token" }, { username: "", password: "token" }],
    nothing: [{}, undefined],
    "an empty auth pair": [auth("", ""), undefined],
    "auth without a colon": [{ auth: base64("alice") }, undefined],
    "auth that is no base64": [{ ...alice, auth: "!!!" }, undefined],
    "a number": [{ username: 1, password: "x" }, undefined],
    "no object": ["alice:secret", undefined],
    null: [null, undefined],
    "a list": [[alice], undefined],
  }
  for (const [name, [entry, expected]] of Object.entries(cases))
    test(name, () => {
      for (const secret of [dockerConfig({ "quay.io": entry }), dockercfg({ "quay.io": entry })])
        expect(credentialsOf(secret).get("quay.io")).toEqual(expected)
    })
})

describe("Secrets without credentials", () => {
  const good = dockerConfig({ "quay.io": auth("alice") })
  const cases: Record<string, PullSecret> = {
    "of another type": { ...good, type: "Opaque" },
    "of a type that does not fit the data": { ...good, type: "kubernetes.io/dockercfg" },
    "without type": { data: good.data! },
    "without data": { type: good.type! },
    "with other data": { ...good, data: {} },
    "that are no JSON": { ...good, data: { ".dockerconfigjson": base64("{") } },
    "that are no base64": { ...good, data: { ".dockerconfigjson": "{}" } },
    "that are a list": { ...good, data: { ".dockerconfigjson": base64("[]") } },
    "that are null": { ...good, data: { ".dockerconfigjson": base64("null") } },
    "with a list of auths": dockerConfig([auth("alice")]),
    "with auths inherited": { ...good, data: { ".dockerconfigjson": base64('{"__proto__":{"auths":{}}}') } },
    "as deep as they are long": { ...good, data: { ".dockerconfigjson": base64("[".repeat(60_000)) } },
    "of more than 64 KiB": dockerConfig({ "quay.io": auth("alice"), "x.io": auth("x".repeat(64 * 1024)) }),
  }
  for (const [name, secret] of Object.entries(cases)) test(name, () => expect(credentialsOf(secret).size).toBe(0))
})

describe("which the kubelet shows", () => {
  const names = (image: string, ...secrets: Record<string, unknown>[]) => {
    const parsed = parseImageReference(image)
    if (!parsed.ok) throw new Error(parsed.error)
    const keyrings = secrets.map(auths => credentialsOf(dockerConfig(auths)))
    return credentialsFor(parsed.reference, keyrings).map(({ password }) => password)
  }
  const all = (...locations: string[]) => Object.fromEntries(locations.map(location => [location, auth("a", location)]))

  const cases: [image: string, locations: string[], expected: string[]][] = [
    ["quay.io/team/app", ["quay.io"], ["quay.io"]],
    ["quay.io/team/app", ["quay.io", "quay.io/team", "quay.io/other"], ["quay.io/team", "quay.io"]],
    ["quay.io/team/app", ["quay.io/te"], ["quay.io/te"]],
    ["quay.io/team/app", ["quay.io/team/app/more"], []],
    ["quay.io:5000/app", ["quay.io", "quay.io:5000"], ["quay.io:5000"]],
    ["quay.io/app", ["quay.io:443"], []],
    ["[::1]:5000/app", ["[::1]:5000", "[::2]:5000"], ["[::1]:5000"]],
    ["blah.example.com/app", ["*.example.com"], ["*.example.com"]],
    ["a.b.example.com/app", ["*.example.com"], []],
    ["example.com/app", ["*.example.com"], []],
    ["blah.example.com/app", ["*.*.com", "prefix*.example.com", "b*h.example.com"], ["b*h.example.com", "*.*.com"]],
    ["blah.example.com/app", ["bl*ah.example.com", "bla*lah.example.com"], ["bl*ah.example.com"]],
    ["blah.example.com/team/app", ["*.example.com/team", "*.example.com/other"], ["*.example.com/team"]],
    ["quay.io/app", ["*"], []],
    ["nginx", ["https://index.docker.io/v1/"], ["https://index.docker.io/v1/"]],
    ["team/app", ["https://index.docker.io/v1/"], ["https://index.docker.io/v1/"]],
    ["docker.io/team/app", ["index.docker.io"], ["index.docker.io"]],
    ["index.docker.io/team/app", ["index.docker.io"], ["index.docker.io"]],
    // Only where nothing else fits.
    ["nginx", ["https://index.docker.io/v1/", "docker.io"], ["docker.io"]],
    ["nginx", ["docker.io/library"], ["docker.io/library"]],
    ["nginx", ["index.docker.io/library"], []],
    ["quay.io/app", ["https://index.docker.io/v1/"], []],
    ["localhost/app", ["https://index.docker.io/v1/"], []],
    ["Quay.io/app", ["quay.io"], []],
    ["Quay.io/app", ["Quay.io"], ["Quay.io"]],
  ]
  for (const [image, locations, expected] of cases)
    test(`${image} of ${locations.join(" ")}`, () => expect(names(image, all(...locations))).toEqual(expected))

  test("for the same place, in the order of the Secrets", () => {
    const secrets = [all("quay.io"), all("https://quay.io/v2/"), all("quay.io/a")]
    expect(names("quay.io/a/b", ...secrets)).toEqual(["quay.io/a", "quay.io", "https://quay.io/v2/"])
    expect(names("quay.io/b", ...secrets)).toEqual(["quay.io", "https://quay.io/v2/"])
    expect(names("quay.io/b")).toEqual([])
  })
})

test("credentials are shown to no other host", () => {
  const host = fc.constantFrom("quay.io", "evil.io", "quay.io.evil.io", "evil.quay.io", "quay.io:5000", "docker.io")
  fc.assert(
    fc.property(host, host, (location, asked) => {
      const keyring = credentialsOf(dockerConfig({ [location]: auth("alice") }))
      const shown = credentialsFor({ host: asked, path: "team/app" }, [keyring])
      expect(shown.length).toBe(location === asked ? 1 : 0)
    }),
  )
})

test("no Secret makes it throw", () => {
  const json = fc.json({ maxDepth: 4 }).map(base64)
  const value = fc.oneof(json, fc.string(), fc.constant(undefined), fc.integer())
  const type = fc.constantFrom("kubernetes.io/dockerconfigjson", "kubernetes.io/dockercfg", "Opaque", undefined)
  fc.assert(
    fc.property(type, value, fc.jsonValue(), (type, written, auths) => {
      const data = { ".dockerconfigjson": written, ".dockercfg": written } as PullSecret["data"]
      credentialsOf({ type, data } as PullSecret)
      for (const secret of [dockerConfig(auths), dockerConfig({ "a*.b": auths }), dockercfg(auths)])
        credentialsFor({ host: "ab.b", path: "x" }, [credentialsOf(secret)])
    }),
  )
})

test("a glob of many stars takes no time", () => {
  const keyring = credentialsOf(dockerConfig({ [`${"a*".repeat(20_000)}b.io`]: auth("x") }))
  expect(keyring.size).toBe(1)
  const started = performance.now()
  credentialsFor({ host: `${"a".repeat(100_000)}.io`, path: "x" }, [keyring])
  expect(performance.now() - started).toBeLessThan(30_000) // on a busy machine, too
})
