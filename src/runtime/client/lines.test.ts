import fc from "fast-check"
import { expect, test } from "vitest"
import { LineSplitter } from "./lines.ts"

const split = (chunks: Uint8Array[], splitter = new LineSplitter(1 << 20)) => ({
  lines: chunks.flatMap(chunk => [...splitter.push(chunk)]),
  rest: splitter.rest,
})

test("gives back the lines however their bytes are cut into chunks", () => {
  const utf16 = fc.array(fc.nat({ max: 0xffff })).map(units => String.fromCharCode(...units))
  const line = utf16.map(text => text.replaceAll("\n", "").toWellFormed())
  const cuts = fc.array(fc.nat({ max: 40 }), { minLength: 1, maxLength: 10 })
  fc.assert(
    fc.property(fc.array(line, { maxLength: 5 }), cuts, (lines, sizes) => {
      const bytes = Buffer.from(lines.map(text => `${text}\n`).join(""))
      const chunks: Uint8Array[] = []
      for (let at = 0, turn = 0; at < bytes.length; turn++) {
        const size = sizes[turn % sizes.length]! + 1
        chunks.push(bytes.subarray(at, at + size))
        at += size
      }
      expect(split(chunks)).toEqual({ lines, rest: 0 })
    }),
  )
})

test("U+2028 and U+2029 are characters like others", () => {
  expect(split([Buffer.from('{"a":"x\u2028y\u2029z"}\n')]).lines).toEqual(['{"a":"x\u2028y\u2029z"}'])
})

test("a character cut between two chunks is put together", () => {
  const bytes = Buffer.from("a€𝄞b\n")
  expect(split([...bytes].map(byte => Uint8Array.of(byte))).lines).toEqual(["a€𝄞b"])
})

test("half a line at the end is counted, not given out", () => {
  expect(split([Buffer.from("one\ntw")])).toEqual({ lines: ["one"], rest: 2 })
})

test("a line that grows too long is refused before it is whole", () => {
  const splitter = new LineSplitter(10)
  expect([...splitter.push(Buffer.from("0123456789\n"))]).toEqual(["0123456789"])
  expect(() => [...splitter.push(Buffer.from("0123456789a"))]).toThrow("longer than 10 bytes")
})

test("16 MB in chunks of 256 bytes take time in proportion to their size", () => {
  // Copying all that was there with each chunk would move half a terabyte here and run into the time limit.
  const chunk = Buffer.alloc(256, "x")
  const splitter = new LineSplitter(64 << 20)
  for (let bytes = 0; bytes < 16 << 20; bytes += chunk.length) for (const _ of splitter.push(chunk)) throw new Error()
  const [line] = [...splitter.push(Buffer.from("\n"))]
  expect(line?.length).toBe(16 << 20)
})
