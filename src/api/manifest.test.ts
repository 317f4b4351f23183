import fc from "fast-check"
import { expect, test } from "vitest"
import { scalars, scalarsManifest } from "#test/support/manifests/yaml.ts"
import { parseManifests } from "./manifest.ts"

test("scalars mean what they mean to kubectl", () => {
  const { manifests, errors } = parseManifests(scalarsManifest)
  expect(errors).toEqual([])
  expect(manifests[0]?.value).toMatchObject({ values: Object.values(scalars) })
})

const twoDocuments = `# a comment
apiVersion: v1
kind: A
spec:
  tiers:
  - upgradeTier: a
    image: x
  - upgradeTier: b
    labels: {example.com/a.b: c}
---
---
kind: B
`
test("every document is found, empty ones are none", () => {
  expect(parseManifests(twoDocuments).manifests.map(({ value }) => (value as { kind: string }).kind)).toEqual([
    "A",
    "B",
  ])
})

const lines: Record<string, number> = {
  kind: 3,
  "spec.tiers[0].image": 7,
  "spec.tiers[1]": 8,
  "spec.tiers[1].labels[example.com/a.b]": 9,
  "spec.tiers[1].image": 8, // missing: where it should stand
  "spec.target": 5,
  "metadata.name": 2,
  "": 2,
}
for (const [path, line] of Object.entries(lines))
  test(`${path || "the document"} is in line ${line}`, () => {
    expect(parseManifests(twoDocuments).manifests[0]?.lineOf(path)).toBe(line)
  })

test("a list stands for its items, with their own lines", () => {
  const { manifests } = parseManifests("kind: List\nitems:\n- kind: A\n- kind: B\n  spec:\n    x: 1\n")
  expect(manifests.map(({ value }) => value)).toEqual([{ kind: "A" }, { kind: "B", spec: { x: 1 } }])
  expect(manifests[1]?.lineOf("spec.x")).toBe(6)
})

test("JSON is read too", () => {
  expect(parseManifests('{"kind": "A", "n": 1}').manifests[0]?.value).toEqual({ kind: "A", n: 1 })
})

const broken: Record<string, { text: string; line: number; words: string }> = {
  "a key twice": { text: "a: 1\nb: 2\na: 3\n", line: 3, words: "unique" },
  "a tab": { text: "a:\n\tb: 1\n", line: 2, words: "Tabs" },
  "an open bracket": { text: "kind: A\n---\nx: [1, 2\n", line: 4, words: "]" },
  "an unknown alias": { text: "a: *nowhere\n", line: 1, words: "nowhere" },
}
for (const [name, { text, line, words }] of Object.entries(broken))
  test(`${name} is reported with its line`, () => {
    expect(parseManifests(text).errors[0]).toMatchObject({ line, message: expect.stringContaining(words) })
  })

test("a small text that stands for gigabytes is refused", () => {
  const level = (name: string, of: string) => `${name}: &${name} [${Array(9).fill(`*${of}`).join(", ")}]`
  const text = ["a: &a [x]", level("b", "a"), level("c", "b"), level("d", "c"), level("e", "d"), level("f", "e")].join(
    "\n",
  )
  expect(parseManifests(text)).toMatchObject({ manifests: [], errors: [{ message: expect.stringContaining("alias") }] })
})

/** Any UTF-16, halves of characters included. */
const anything = fc.string({ unit: fc.nat(0xffff).map(code => String.fromCharCode(code)) })

test("no text makes it throw", () => {
  const piece = fc.constantFrom(
    "a",
    ":",
    " ",
    "\n",
    "- ",
    "[",
    "]",
    "{",
    "}",
    "&a ",
    "*a",
    "!!binary ",
    "---\n",
    "|",
    '"',
    "#",
    "%",
    "<<: ",
  )
  const text = fc.oneof(
    anything,
    fc.array(piece).map(pieces => pieces.join("")),
  )
  fc.assert(
    fc.property(text, it => {
      for (const { lineOf } of parseManifests(it).manifests) expect(lineOf("spec.a[0].b")).toBeGreaterThan(0)
    }),
    { numRuns: 1000 },
  )
})
