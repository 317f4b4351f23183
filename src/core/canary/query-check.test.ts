import { expect, test } from "vitest"
import { promqlProblem } from "./promql.ts"
import { queryProblem, templateProblem } from "./query-check.ts"

test.each([
  ['sum(rate(x{pod=~"{{ target }}-.*"}[{{ interval }}]))', undefined],
  ['sum(rate(x{pod=~"{{ target }}-.*"}[{{ interval }}])', "line 1, column 52: ) is missing, which closes ("],
  // The place is that of the query as it was written.
  ["{{/* why */}}sum(\n  {{- namespace }}_total y)", "line 2, column 26: ) or an operator is missing before y"],
  ["{{ namespace }}\n  {{ route }}", "line 2, column 3: an operator is missing before route"],
  ["{{ nonsense }}", "{{ nonsense }} at line 1, column 1: a query can name"],
  ['x{a="{{ variables.a }}"}', "{{ variables.a }} at line 1, column 6: templateVariables has no a"],
])("%s", (query, problem) => {
  const found = queryProblem(query, {})
  if (problem === undefined) expect(found).toBeUndefined()
  else expect(found).toContain(problem)
})

test("a variable of the Canary may be what breaks a query", () => {
  const query = 'x{a="{{ variables.a }}"}'
  expect(queryProblem(query, { a: "b" })).toBeUndefined()
  expect(queryProblem(query, { a: 'b"' })).toContain("line 1, column 23")
})

const ofTemplate = (query: string) => templateProblem(query, { syntaxProblemOf: promqlProblem })

test.each([
  'x{a="{{ variables.a }}"}',
  "x > {{ variables.limit }}",
  "rate(x[{{ variables.window }}])",
  "{{ variables.metric }}_total",
  'sum(x) by ({{ index variables "label" }})',
  // One is a number, the other a duration: only the Canary knows.
  "rate(x[{{ variables.window }}]) {{ variables.operator }} {{ variables.limit }}",
])("a template whose variables a Canary gives: %s", query => expect(ofTemplate(query)).toBeUndefined())

test("a template that no value of a variable mends", () => {
  expect(ofTemplate('sum(x{a="{{ variables.a }}"}')).toContain("line 1, column 29: ) is missing")
  expect(ofTemplate("sum(x")).toContain("line 1, column 6: ) is missing")
})
