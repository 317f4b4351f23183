import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { parseChallenge, pullScope } from "./challenge.ts"

const realm = "https://auth.example.com/token"

describe("WWW-Authenticate", () => {
  test.each([
    [`Bearer realm="${realm}"`, { scheme: "Bearer", realm }],
    [
      `Bearer realm="${realm}",service="registry.example.com",scope="repository:a/b:pull,push"`,
      { scheme: "Bearer", realm, service: "registry.example.com", scope: "repository:a/b:pull,push" },
    ],
    [`bearer  REALM = "${realm}" , Service=plain`, { scheme: "Bearer", realm, service: "plain" }],
    [`Bearer realm="${realm}", service="with \\"quotes\\""`, { scheme: "Bearer", realm, service: 'with "quotes"' }],
    [`Basic realm="r", Bearer realm="${realm}"`, { scheme: "Bearer", realm }],
    [`Bearer realm="${realm}", Basic realm="r"`, { scheme: "Bearer", realm }],
    [`Bearer realm="${realm}", realm="https://other.example.com"`, { scheme: "Bearer", realm }],
    ['Basic realm="Registry Realm"', { scheme: "Basic" }],
    ["Basic", { scheme: "Basic" }],
    ['Bearer service="x", Basic realm="r"', { scheme: "Basic" }],
    ["Bearer", undefined],
    ['Bearer realm="unfinished', undefined],
    ["Negotiate", undefined],
    ["Negotiate abc==", undefined],
    ['realm="no scheme"', undefined],
    ["", undefined],
    [undefined, undefined],
    [`Bearer realm="${"a".repeat(5000)}"`, undefined],
  ])("%s", (header, expected) => expect(parseChallenge(header)).toEqual(expected))

  test("any text is read without throwing", () => {
    const noise = fc.array(fc.constantFrom("Bearer", "Basic", " ", ",", "=", '"', "\\", "realm", "a", "\t"), {
      maxLength: 200,
    })
    fc.assert(fc.property(noise, pieces => void parseChallenge(pieces.join(""))))
  })
})

describe("the scope we ask for", () => {
  test.each([
    ["repository:a/b:pull", "repository:a/b:pull"],
    ["repository:proxied/b:pull", "repository:proxied/b:pull"],
    ["repository:a/b:pull,push,delete", "repository:a/b:pull"],
    ["repository:a/b:*", "repository:a/b:pull"],
    ["registry:catalog:*", "repository:ours:pull"],
    ["repository:a:pull repository:b:push", "repository:ours:pull"],
    ["", "repository:ours:pull"],
    [undefined, "repository:ours:pull"],
  ])("%s → %s", (scope, expected) => expect(pullScope(scope, "ours")).toBe(expected))
})
