import { describe, expect, test } from "vitest"
import { readAllowances } from "./allowances.ts"
import { targetOf } from "./target.ts"

const rules = { allowances: readAllowances(["shop=inside.test:80"]) }
const read = (url: string, headers = {}) => targetOf({ namespace: "shop", url, headers }, rules)

describe("a URL", () => {
  test.each([
    ["http://example.com", "http://example.com /"],
    ["HTTPS://Example.COM.:443/a%20b?c=d#e", "https://example.com /a%20b?c=d"],
    ["https://example.com:80/", "https://example.com:80 /"],
    ["http://0x7f.1/", "http://127.0.0.1 /"],
    ["http://[::FFFF:127.0.0.1]:90/", "http://[::ffff:7f00:1]:90 /"],
    ["http://inside.test/", "http://inside.test / allowed"],
    ["http://inside.test./", "http://inside.test / allowed"],
    ["https://inside.test/", "https://inside.test /"],
    ["http:\\\\example.com\\a\tb", "http://example.com /ab"],
  ])("%s", (url, expected) => {
    const target = read(url)
    if ("ok" in target) throw new Error(target.message)
    expect(`${target.origin} ${target.path}${target.isAllowed ? " allowed" : ""}`).toBe(expected)
  })

  test.each([
    ["", "write http://HOST[:PORT]/PATH"],
    ["example.com", "write http://HOST[:PORT]/PATH"],
    ["/path", "write http://HOST[:PORT]/PATH"],
    ["file:///etc/passwd", "write http://HOST[:PORT]/PATH"],
    ["ftp://example.com/", "write http://HOST[:PORT]/PATH"],
    ["http://", "write http://HOST[:PORT]/PATH"],
    ["http://example.com:99999/", "write http://HOST[:PORT]/PATH"],
    ["http://1.2.3.4.5/", "write http://HOST[:PORT]/PATH"],
    ["http://example.com:0/", "cannot exist"],
    [`http://${"a.".repeat(127)}example.com/`, "cannot exist"],
    ["http://user@example.com/", "name it with secretRef"],
    ["http://:secret@example.com/", "name it with secretRef"],
  ])("refused: %s", (url, says) => {
    expect(read(url)).toEqual({ ok: false, class: "InvalidRequest", message: expect.stringContaining(says) })
    expect(JSON.stringify(read(url))).not.toContain("secret@")
  })
})

describe("headers", () => {
  test.each([
    ["", "x", "name that HTTP does not know"],
    ["a b", "x", "name that HTTP does not know"],
    ["a\r\nhost", "x", "name that HTTP does not know"],
    ["Host", "x", "header Host cannot be set"],
    ["Content-Length", "5", "header Content-Length cannot be set"],
    ["transfer-encoding", "chunked", "cannot be set"],
    ["Accept-Encoding", "gzip", "cannot be set"],
    ["Connection", "keep-alive", "cannot be set"],
    ["Expect", "100-continue", "cannot be set"],
    ["x-a", "secret\r\nhost: b", "header x-a has a value that HTTP cannot send"],
    ["x-a", "日本", "header x-a has a value that HTTP cannot send"],
    ["x-a", ["fine", "secret\n"], "header x-a has a value that HTTP cannot send"],
  ])("refused: %j: %j", (name, value, says) => {
    const refused = read("http://example.com", { [name]: value })
    expect(refused).toEqual({ ok: false, class: "InvalidRequest", message: expect.stringContaining(says) })
    expect(JSON.stringify(refused)).not.toContain("secret")
  })

  test("others are the author's", () => {
    expect(read("http://example.com", { authorization: "Bearer x", "X-Scope": ["a", "b"] })).toMatchObject({
      path: "/",
    })
  })
})
