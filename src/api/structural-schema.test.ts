import { expect, test } from "vitest"
import { z } from "zod"
import { foreign, listMap, rules } from "./fields.ts"
import { structuralSchema } from "./structural-schema.ts"

test("a schema keeps its bounds, defaults, rules and list keys, through every wrapping", () => {
  const name = z.string().max(5).meta({ hint: "a hint" }).describe("A name.").default("x")
  const rule = { rule: "self.size() > 0", message: "at least one" }
  const list = z
    .array(z.object({ name, size: z.int32() }))
    .max(3)
    .meta({ ...listMap("name"), ...rules(rule) })
    .optional()
  expect(structuralSchema(z.object({ list }))).toEqual({
    type: "object",
    properties: {
      list: {
        type: "array",
        maxItems: 3,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        items: {
          type: "object",
          required: ["size"],
          properties: {
            name: { description: "A name.", type: "string", default: "x", hint: "a hint", maxLength: 5 },
            size: { type: "integer", minimum: -2147483648, maximum: 2147483647 },
          },
        },
        "x-kubernetes-validations": [rule],
      },
    },
  })
})

test("an object of another API keeps its fields, and says nothing about them", () => {
  const policy = foreign().describe("Another API's.").optional()
  expect(structuralSchema(z.object({ policy }))).toEqual({
    type: "object",
    properties: {
      policy: { description: "Another API's.", type: "object", "x-kubernetes-preserve-unknown-fields": true },
    },
  })
})

test("what a server would not take is refused where it stands", () => {
  const union = z.object({ a: z.object({ b: z.union([z.string(), z.boolean()]) }) })
  expect(() => structuralSchema(union)).toThrow(".a.b: a union is not structural")
  expect(() => structuralSchema(z.object({ a: z.tuple([z.string()]) }))).toThrow(".a")
  expect(() => structuralSchema(z.object({ a: z.int().multipleOf(5) }))).toThrow(
    '.a: a CustomResourceDefinition cannot say "multipleOf"',
  )
})
