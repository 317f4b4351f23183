import { z } from "zod"
import type { Rule } from "./structural-schema.ts"

/**
 * The building blocks kinds are declared with. Each is bounded: a rule over an unbounded string or list is refused by
 * the server for its cost, and an unbounded status can outgrow what etcd stores.
 */

/** CEL rules for a schema node: `.meta(rules({ rule, message }))`. */
export const rules = (...list: Rule[]) => ({ "x-kubernetes-validations": list })

/** A list merged element by element; `keys` identify the elements and may not repeat. */
export const listMap = (...keys: string[]) => ({
  "x-kubernetes-list-type": "map" as const,
  "x-kubernetes-list-map-keys": keys,
})

/** A list in which no element repeats. */
export const listSet = { "x-kubernetes-list-type": "set" as const }

/** A list that is replaced as a whole. */
export const listAtomic = { "x-kubernetes-list-type": "atomic" as const }

/**
 * Free text for people. It may quote errors of other programs, so it accepts any character: a status that is refused
 * because of a line break in a message would leave its object without any status.
 */
export const text = (maxLength: number) => z.string().max(maxLength)

/** Text that aim writes itself: characters that take one byte each in JSON, so that more of them fit. */
export const plainText = (maxLength: number) =>
  z
    .string()
    .max(maxLength)
    .regex(/^[ !#-%'-;=?-[\]-~]*$/)

/**
 * A word from a list that the code knows but the schema does not: a newer controller must be able to write a new word
 * into the status while the older CustomResourceDefinition is still installed.
 */
export const word = <Word extends string>(maxLength: number) =>
  z
    .string()
    .max(maxLength)
    .regex(/^[A-Za-z]([A-Za-z0-9_]*[A-Za-z0-9])?$/) as unknown as z.ZodType<Word, Word>

/** A number that need not be whole. The bound is far beyond any measurement, and JavaScript counts exactly up to it. */
export const decimal = () => z.number().min(-1e15).max(1e15)

/** An object of another API, kept as it is written: that API says what is in it. */
export const foreign = () => z.record(z.string(), z.unknown()).meta({ "x-kubernetes-preserve-unknown-fields": true })

/** With microseconds at most, as Kubernetes writes its own times. */
export const timestamp = () => z.string().max(27).meta({ format: "date-time" })

/** Reached by changing a spec every second for 68 years. */
export const generation = () => count(2_147_483_647)

export const count = (maximum: number) => z.int().min(0).max(maximum).meta({ format: "int32" })

/** A number of objects, or a share of them. */
export function countOrPercent(options: { minimum: 0 | 1; maximum: number }) {
  const { minimum, maximum } = options
  // Pattern and bounds rather than a rule: the server has no upper length for a rule's int-or-string, so it costs too much.
  return z.union([z.int(), z.string()]).meta({
    "x-kubernetes-int-or-string": true,
    pattern: minimum === 0 ? "^([0-9]|[1-9][0-9]|100)%$" : "^([1-9][0-9]?|100)%$",
    minimum,
    maximum,
    maxLength: 10,
    hint: `write a number from ${minimum} to ${maximum}, or a percentage from "${minimum}%" to "100%"`,
  })
}

export const labelValuePattern = "^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$"
const labelKeyPattern = "^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"

const labelValue = () =>
  z
    .string()
    .max(63)
    .regex(new RegExp(labelValuePattern))
    .meta({ hint: "write at most 63 letters, digits, '-', '_' and '.', beginning and ending with a letter or digit" })

/** Labels and their values. */
export const labels = () =>
  z.record(z.string(), labelValue()).meta(
    rules({
      rule: `self.all(key, key.size() <= 317 && key.matches('${labelKeyPattern}'))`,
      message: "a label key is NAME or PREFIX/NAME, such as app or example.com/team",
    }),
  )

/** metav1.LabelSelector, with bounds. */
export const labelSelector = () =>
  z
    .object({
      matchLabels: labels()
        .meta({ maxProperties: 32 })
        .describe("Labels an object must carry with exactly these values.")
        .optional(),
      matchExpressions: z
        .array(
          z
            .object({
              key: z
                .string()
                .max(317)
                .regex(new RegExp(labelKeyPattern))
                .meta({ hint: "a label key is NAME or PREFIX/NAME, such as app or example.com/team" })
                .describe("The label's key."),
              operator: z.enum(["In", "NotIn", "Exists", "DoesNotExist"]).describe("How key and values relate."),
              values: z
                .array(labelValue())
                .max(64)
                .meta(listAtomic)
                .describe("For In and NotIn: the values.")
                .optional(),
            })
            .meta(
              rules({
                rule: "(self.operator in ['In', 'NotIn']) == (has(self.values) && self.values.size() > 0)",
                message: "In and NotIn need values; Exists and DoesNotExist take none",
              }),
            ),
        )
        .max(32)
        .meta(listAtomic)
        .describe("Further requirements; all must hold.")
        .optional(),
    })
    .meta({ "x-kubernetes-map-type": "atomic" })

/** metav1.Condition. `message` is the schema of the text, because its bound differs with how many conditions there are. */
export const condition = <Type extends string, Reason extends string>(message: z.ZodString) =>
  z.object({
    type: word<Type>(20).describe("The name of the condition."),
    status: z.enum(["True", "False", "Unknown"]).describe("Whether the condition holds."),
    observedGeneration: generation().describe("The metadata.generation that the condition is about."),
    lastTransitionTime: timestamp().describe("When status last changed; a new reason or message does not move it."),
    reason: word<Reason>(32).describe("Why, in one word; the words are listed below."),
    message: message.describe("Why, in a sentence."),
  })

/** What every status says: which generation it is about, and its conditions. */
export const statusBase = <Type extends string, Reason extends string>(bounds: {
  conditions: number
  message: number
}) => ({
  observedGeneration: generation().describe("The metadata.generation this status is about.").default(0),
  conditions: z
    .array(condition<Type, Reason>(text(bounds.message)))
    .max(bounds.conditions)
    .meta(listMap("type"))
    .describe("The answers to the questions below.")
    .default([]),
})
