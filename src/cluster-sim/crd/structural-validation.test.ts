import { expect, test } from "vitest"
import { duplicatesIn, validateStructure } from "./structural-validation.ts"

test("a wrong number is reported twice: by its type, and by the type's range", () => {
  const props = { type: "object", properties: { i: { type: "integer" } } }
  expect(validateStructure({ i: 1.5 }, props).map(({ field, message }) => [field, message])).toEqual([
    ["i", 'Invalid value: "number": i in body must be of type integer: "number"'],
    ["<nil>", 'Invalid value: "": Checked value must be of type integer (default format) in i'],
  ])
  expect(validateStructure({ i: 2 }, props)).toEqual([])
})

test("int32 accepts its smallest and largest value, and nothing beyond them", () => {
  const props = { type: "object", properties: { i: { type: "integer", format: "int32" } } }
  const [least, most] = [-(2 ** 31), 2 ** 31 - 1]
  for (const i of [least, -1, 0, most]) expect(validateStructure({ i }, props)).toEqual([])
  for (const i of [least - 1, most + 1]) expect(validateStructure({ i }, props)).toHaveLength(1)
})

test("only objects can be identified by their keys", () => {
  const props = {
    type: "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["k"],
    items: { type: "object" },
  }
  const why = 'Invalid value: "text": must be an object for an array of list-type map'
  expect(duplicatesIn(["text", { k: 1 }, { k: 1 }], props, "list")).toEqual([
    { reason: "FieldValueInvalid", message: why, field: "list[0]" },
  ])
  expect(duplicatesIn([null, { k: 1 }, { k: 1 }], props, "list")).toMatchObject([{ reason: "FieldValueDuplicate" }])
})
