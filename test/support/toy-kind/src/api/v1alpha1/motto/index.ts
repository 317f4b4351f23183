import { z } from "zod"
import { condition, listMap, plainText } from "#api/fields.ts"
import { defineKind, type ObjectOf } from "#api/kind.ts"
import { namesOf } from "../../names.ts"

export const reasons = {
  UpToDate: "Every ConfigMap has the text.",
  Writing: "ConfigMaps get the text.",
  Refused: "The server refuses a write.",
} as const
export const conditions = { Ready: { means: "every ConfigMap has the text", reasons: Object.keys(reasons) } }

export const Motto = defineKind({
  ...namesOf("Motto"),
  description: "A Motto is a text that all ConfigMaps of its namespace with the label motto have.",
  printerColumns: [],
  spec: z.object({ text: plainText(200).describe("The text.") }),
  status: z.object({
    conditions: condition<"Ready", keyof typeof reasons>(plainText(999))
      .array()
      .max(1)
      .meta(listMap("type"))
      .default([]),
  }),
})
export type Motto = ObjectOf<typeof Motto>
