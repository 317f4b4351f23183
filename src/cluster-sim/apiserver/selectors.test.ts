import { describe, expect, test } from "vitest"
import type { Obj } from "../object.ts"
import type { ServedKind } from "./kind.ts"
import { selector } from "./selectors.ts"

const kind = { kind: "Pod", isCustom: false, strategy: {} } as ServedKind
const object = (labels: Record<string, string>) => ({ metadata: { name: "a", labels } }) as unknown as Obj
const matches = (labelSelector: string, labels: Record<string, string>) =>
  selector(kind, { labelSelector })?.(object(labels)) ?? true

describe("label selectors", () => {
  const cases: [selector: string, labels: Record<string, string>, matches: boolean][] = [
    ["", { a: "b" }, true],
    ["a", { a: "" }, true],
    ["a", {}, false],
    ["!a", {}, true],
    ["!a", { a: "b" }, false],
    ["a=b", { a: "b" }, true],
    ["a==b", { a: "c" }, false],
    ["a=", { a: "" }, true],
    ["a!=b", {}, true],
    ["a!=b", { a: "b" }, false],
    ["a in (b, c)", { a: "c" }, true],
    ["a in (b,c)", {}, false],
    ["a notin (b,c)", {}, true],
    ["a in ()", { a: "" }, true],
    ["a in (,b)", { a: "" }, true],
    ["in in (in)", { in: "in" }, true],
    ["a>1", { a: "2" }, true],
    ["a<1", { a: "x" }, false],
    ["a=b,c,!d", { a: "b", c: "" }, true],
    ["example.com/a=b", { "example.com/a": "b" }, true],
  ]
  for (const [text, labels, want] of cases)
    test(`${text || "nothing"} of ${JSON.stringify(labels)}`, () => expect(matches(text, labels)).toBe(want))
})

/** First seen on kube-apiserver v1.36.3. */
describe("the server's refusals of selectors it cannot parse", () => {
  const cases: Record<string, string> = {
    "a b": "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
    "a===b": "unable to parse requirement: found '=', expected: identifier",
    "a in (b": "unable to parse requirement: found '', expected: ',' or ')'",
    "a in b": "unable to parse requirement: found 'b' expected: '('",
    "=b": "found '=', expected: !, identifier, or 'end of string'",
    "a,": "found '', expected: identifier after ','",
    "a>b":
      "unable to parse requirement: values[0]: Invalid value: \"b\": for 'Gt', 'Lt' operators, the value must be an integer",
  }
  for (const [text, message] of Object.entries(cases))
    test(text, () => expect(() => matches(text, {})).toThrow(message))

  test("fields that cannot be selected by", () => {
    expect(() => selector(kind, { fieldSelector: "spec.x=1" })).toThrow(
      '"spec.x" is not a known field selector: only "metadata.name", "metadata.namespace"',
    )
    expect(() => selector(kind, { fieldSelector: "foo" })).toThrow("invalid selector: 'foo'; can't understand 'foo'")
  })
})

test("field selectors know an escaped comma", () => {
  const named = selector(kind, { fieldSelector: "metadata.name!=a\\,b,metadata.name=a" })
  expect(named?.(object({}))).toBe(true)
})
