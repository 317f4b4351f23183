import { expect, test } from "vitest"
import { type QueryValues, renderForSource, renderQuery } from "./query-template.ts"
import { queryValues } from "./test-values.ts"

const values: QueryValues = {
  ...queryValues,
  service: "shop-web",
  ingress: "",
  route: "",
  interval: "30s",
  variables: { direction: "inbound" },
}
const rendered = (query: string) => {
  const result = renderQuery(query, values)
  return result.ok ? result.text : `problem: ${result.problem}`
}

test("every function that a query may name", () => {
  const names = ["name", "namespace", "target", "source", "revision", "service", "ingress", "route", "interval"]
  for (const name of names) expect(rendered(`a{{ ${name} }}b`)).toBe(`a${values[name as keyof QueryValues]}b`)
  expect(rendered("{{target}}{{ interval}}")).toBe("web-7d9f30s")
})

test("a query of several lines keeps them, and braces of PromQL stay", () => {
  expect(rendered('sum(\n  rate(http{ns="{{ namespace }}"}[{{ interval }}])\n)')).toBe(
    'sum(\n  rate(http{ns="shop"}[30s])\n)',
  )
})

test("variables by name and by index", () => {
  expect(rendered("{{ variables.direction }}")).toBe("inbound")
  expect(rendered('{{ index variables "direction" }}')).toBe("inbound")
})

test("a variable that is not set is a problem, also one that every object has", () => {
  expect(rendered("a\n {{ variables.speed }}")).toBe(
    "problem: {{ variables.speed }} at line 2, column 2: templateVariables has no speed",
  )
  expect(rendered("{{ variables.constructor }}")).toContain("templateVariables has no constructor")
})

test("space is trimmed where a dash asks for it, and comments vanish", () => {
  expect(rendered("a \n {{- target -}} \n b")).toBe("aweb-7d9fb")
  expect(rendered("a {{/* why */}}b")).toBe("a b")
  expect(rendered("a {{- /* why */ -}} b")).toBe("ab")
})

test("whatever else a template can hold is a problem, with its place and what can be written", () => {
  for (const inner of ["if target", ".Target", "target | quote", 'printf "%s" target', "", "Target"])
    expect(rendered(`x{{ ${inner} }}`)).toMatch(/^problem: .* at line 1, column 2: a query can name name, namespace, /)
  expect(rendered("ok {{ target")).toBe("problem: {{ at line 1, column 4 is not closed by }}")
})

test("what a value holds is not read as a template again", () => {
  const result = renderQuery("{{ variables.direction }}", { ...values, variables: { direction: "{{ target }}" } })
  expect(result).toEqual({ ok: true, text: "{{ target }}" })
})

test("a Service that Flagger's queries name by the target", () => {
  expect(rendered('a=~"{{ namespace }}_{{ target }}-canary_[0-9]+"')).toBe('a=~"shop_shop-web-canary_[0-9]+"')
  expect(rendered('a="{{target}}-primary"')).toBe('a="shop-web-primary"')
  // Pods and workloads of these names do not exist here: such a query is empty.
  for (const rest of ["-canary-[0-9a-z]+", "-primary-x", "-canaryx", "canary", " -canary"])
    expect(rendered(`{{ target }}${rest}`)).toBe(`web-7d9f${rest}`)
})

test("the same query about the source", () => {
  const ofSource = (query: string, more: Partial<QueryValues> = {}) => {
    const result = renderForSource(query, { ...values, ...more })
    return result && (result.ok ? result.text : `problem: ${result.problem}`)
  }
  expect(ofSource('pod=~"{{ target }}-.*"')).toBe('pod=~"web-.*"')
  expect(ofSource('a="{{ service }}-canary"')).toBe('a="shop-web-primary"')
  expect(ofSource('a="{{- target }}-canary"')).toBe('a="shop-web-primary"')
  expect(ofSource("{{ revision }}", { sourceRevision: "5c8b" })).toBe("5c8b")
  expect(ofSource("{{ revision }}")).toBe("problem: {{ revision }}: the revision of the source is not known")
  expect(ofSource("up")).toBeUndefined()
  expect(ofSource('{a="{{ service }}"}')).toBeUndefined()
  expect(ofSource("{{ nonsense }}")).toContain("a query can name")
})
