import fc from "fast-check"
import { expect, test } from "vitest"
import { FrameSplitter } from "./frames.ts"

const framed = (text: string) => {
  const bytes = Buffer.from(text)
  const length = Buffer.alloc(4)
  length.writeUInt32BE(bytes.length)
  return Buffer.concat([length, bytes])
}

test("gives back the frames however their bytes are cut into chunks", () => {
  const cuts = fc.array(fc.nat({ max: 40 }), { minLength: 1, maxLength: 10 })
  fc.assert(
    fc.property(fc.array(fc.string({ maxLength: 60 }), { maxLength: 5 }), cuts, (texts, sizes) => {
      const bytes = Buffer.concat(texts.map(framed))
      const splitter = new FrameSplitter(1 << 20)
      const found: string[] = []
      for (let at = 0, turn = 0; at < bytes.length; turn++) {
        const size = sizes[turn % sizes.length]! + 1
        for (const frame of splitter.push(bytes.subarray(at, at + size))) found.push(frame.toString())
        at += size
      }
      expect({ found, rest: splitter.rest }).toEqual({ found: texts, rest: 0 })
    }),
  )
})

test("half a frame at the end is counted, not given out", () => {
  const splitter = new FrameSplitter(100)
  expect([...splitter.push(Buffer.concat([framed("one"), framed("two").subarray(0, 5)]))].map(String)).toEqual(["one"])
  expect(splitter.rest).toBe(5)
})

test("a frame that would be too long is refused before its bytes are kept", () => {
  expect(() => [...new FrameSplitter(100).push(Buffer.from([0, 0, 1, 0]))]).toThrow("longer than 100 bytes")
})

test("a frame in a thousand chunks is put together once", () => {
  const frame = framed("x".repeat(100_000))
  const splitter = new FrameSplitter(1 << 20)
  const found: Buffer[] = []
  for (let at = 0; at < frame.length; at += 100) found.push(...splitter.push(frame.subarray(at, at + 100)))
  expect(found.map(({ length }) => length)).toEqual([100_000])
})
