import { expect, test } from "vitest"
import { createBody, excerptOf } from "./body.ts"

test("a body of many pieces is kept in one, and no piece is kept", () => {
  const body = createBody(20_000)
  const piece = Buffer.alloc(1)
  for (let at = 0; at < 10_000; at++) {
    piece[0] = at % 251
    body.take(piece)
  }
  expect(body.bytes().equals(Buffer.from(Array.from({ length: 10_000 }, (_, at) => at % 251)))).toBe(true)
  expect(body.bytes().buffer.byteLength).toBeLessThanOrEqual(20_000)
})

test.each([
  ["", ""],
  ["ok", "ok"],
  ["  two\r\n\tlines  ", "two lines"],
  ["\u001b[31mred\u0007\u0000\u202egnirts\u200b", "[31mred gnirts"],
  ["é日本🙂", "é日本🙂"],
  ["x".repeat(200), "x".repeat(200)],
  ["x".repeat(201), `${"x".repeat(199)}…`],
  [`${"x".repeat(198)}🙂🙂`, `${"x".repeat(198)}\ufffd…`],
  [" ".repeat(5000), ""],
])("an excerpt of %j", (text, expected) => expect(excerptOf(Buffer.from(text))).toBe(expected))

test("an excerpt of what is no text", () => {
  expect(excerptOf(Buffer.from([0xff, 0xfe, 0x41, 0x80, 0x42]))).toBe("A B")
  expect(excerptOf(Buffer.alloc(10_000_000, "a"))).toHaveLength(200)
})
