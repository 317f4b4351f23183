import fc from "fast-check"
import { expect, test } from "vitest"
import { readJson } from "./json-text.ts"

const refused: Record<string, string> = {
  "": "unexpected end of JSON input",
  "{": "unexpected end of JSON input",
  '{"a"': "unexpected end of JSON input",
  '{"a" 1}': "invalid character '1' after object key",
  '{"a":1 "b":2}': "invalid character '\"' after object key:value pair",
  "[1 2]": "invalid character '2' after array element",
  "{nope": "invalid character 'n' looking for beginning of object key string",
  "1 2": "invalid character '2' after top-level value",
}
for (const [text, words] of Object.entries(refused))
  test(`${text || "nothing"} is no JSON`, () => {
    expect(() => readJson(text)).toThrow(words)
  })

test("duplicate keys are reported with their path, however they are escaped", () => {
  const text = '{"a":{"b":1,"\\u0062":2},"c":[{"d":1},{"d":1,"d":{"e":1}}],"a":3}'
  expect(readJson(text)).toEqual({ value: JSON.parse(text), duplicates: ["a.b", "c[1].d", "a"] })
})

test("text from JSON.stringify has no duplicate keys, and is read as JSON.parse reads it", () => {
  fc.assert(
    fc.property(fc.json(), text => {
      expect(readJson(text)).toEqual({ value: JSON.parse(text), duplicates: [] })
    }),
  )
})
