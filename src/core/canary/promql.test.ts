import { parser } from "@prometheus-io/lezer-promql"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { promqlProblem } from "./promql.ts"

const wellFormed = [
  'sum(rate(a{b=~"c.+",d!~"5.*"}[1m])) / sum(rate(a[1m])) * 100',
  'histogram_quantile(0.99, sum(rate(x_bucket{a=~"b"}[1m])) by (le))',
  "sum by (pod, le) (rate(x[30s]))",
  "scalar(sum(rate(x[1m] offset 30s))) > bool 10 or vector(0)",
  "a + on(b) group_left(c) d",
  "a / ignoring(b, c) group_right e",
  "max_over_time(rate(x[1m])[5m:1m])",
  "max_over_time(x[1h30m:])",
  "x @ 1609746000 offset -5m",
  "x[5m] @ end()",
  '{a="b", c!="d",}',
  '{"my.name", a="b"}',
  "-x + (2 ^ -3) % 4",
  "x and y unless z atan2 w",
  "topk(3, x) without (a)",
  'label_replace(x, "a", \'$1\', `b`, "(.*)")',
  'sum(x{a="\\"}"}) # a comment ) with a bracket\n + 1',
  "1e3 + .5 + 0x1f + Inf - NaN",
  "job:requests:rate5m",
  "sum",
  "COUNT(x) BY (a)",
]

test.each(wellFormed)("%s", query => expect(promqlProblem(query)).toBeUndefined())

test.each([
  ["sum(rate(x[1m])", 15, ") is missing, which closes ("],
  ["sum(rate(x[1m])))", 16, ") closes nothing"],
  ["x{a=b}", 4, 'the value of a label stands in quotes: write "b"'],
  ["x{a}", 3, "=, !=, =~ or !~ is missing after label a"],
  ['x{a="b}', 4, 'the text that begins with " does not end'],
  ['x{a="b" c="d"}', 8, "} or an operator is missing before c"],
  ["rate(x[])", 7, "a duration is missing, such as 1m"],
  ["rate(x[abc])", 7, "a duration is missing, such as 1m"],
  ["rate(x[5x])", 7, "this is neither a number nor a duration, such as 0.5 or 1m30s"],
  ["rate(x[1s1m])", 7, "this is neither a number nor a duration, such as 0.5 or 1m30s"],
  ["a / ", 3, "a value is missing here"],
  ["a b", 2, "an operator is missing before b"],
  ["sum(a b)", 6, ") or an operator is missing before b"],
  ["sum(x) by", 9, "( is missing, with the labels of by or without"],
  ["sum(x) by (1)", 11, "a label is missing before 1"],
  ["x offset y", 9, "offset needs a duration, such as 5m"],
  ["x @ y", 4, "@ needs a time, start() or end()"],
  ["", 0, "the query is empty"],
  ["# why", 5, "the query is empty"],
  ["a; b", 1, "; has no meaning here"],
  ["a ∧ b", 2, "this character has no meaning here"],
  ["(".repeat(200), 101, "brackets are nested more than 100 deep"],
])("%s", (query, at, what) => expect(promqlProblem(query)).toEqual({ at, what }))

describe("what servers differ in is left to them", () => {
  test.each([
    "median_over_time(x[1m])",
    "rate(x) default 0",
    "sum(x) if y",
    "avg(x) keep_metric_names",
    "mad(x) by (a)",
  ])("%s", query => expect(promqlProblem(query)).toBeUndefined())
})

const theirs = parser.configure({ strict: true })
function isWellFormed(query: string): boolean {
  try {
    theirs.parse(query)
    return true
  } catch {
    return false
  }
}
const wordsOf = (query: string) => query.match(/"[^"]*"|'[^']*'|`[^`]*`|\w+|\s+|[=!]~|[=!<>]=|./gs)!

test("what Prometheus' own grammar accepts is accepted, whatever is taken out of a query, changed or added", () => {
  const words = [...new Set(wellFormed.flatMap(wordsOf))].filter(word => !/[\\#]|^(['`"]|NaN|Inf)$/.test(word))
  const change = fc.record({ at: fc.nat(200), word: fc.constantFrom(...words), what: fc.constantFrom(0, 1, 2) })
  let accepted = 0
  fc.assert(
    fc.property(fc.constantFrom(...wellFormed), fc.array(change, { minLength: 1, maxLength: 3 }), (query, changes) => {
      const list = [...wordsOf(query)]
      for (const { at, word, what } of changes) {
        if (what === 0) list.splice(at % list.length, 1)
        else list.splice(at % list.length, what - 1, word)
        if (list.length === 0) list.push("x")
      }
      const changed = list.join("")
      // A number that touches a word is read apart by their grammar, and refused by Prometheus itself.
      if (!isWellFormed(changed) || /\b[0-9][\w.]*[a-zA-Z_]/.test(changed.replace(/"[^"]*"/g, ""))) return
      accepted++
      expect(promqlProblem(changed), changed).toBeUndefined()
    }),
    { numRuns: 3000, seed: 16 },
  )
  expect(accepted).toBeGreaterThan(100)
})

test("a long text costs no more than its length", () => {
  for (const part of ["(", "sum(", "{", 'x{a="b",', '"', "-", "[", "x[", "sum by (", "a=~", "rate(x[1m])+"]) {
    const words = part.repeat(32_768 / part.length)
    expect(promqlProblem(words)).toBeDefined()
  }
})
