import { z } from "zod"
import { decimal, rules } from "../fields.ts"

/** What Canary, MetricTemplate, AlertProvider and the analysis of a tier have in common. */

/** The name of an object, as a segment of a path. */
export const objectName = (hint = "write the name of an object: lower-case letters, digits, '-' and '.'") =>
  z
    .string()
    .min(1)
    .max(253)
    .regex(/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/)
    .meta({ hint })

export const namespaceName = () =>
  z
    .string()
    .max(63)
    .regex(/^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$/)
    .meta({ hint: "write the name of a namespace: lower-case letters, digits and '-'" })

/** A Secret of the same namespace: there is no field for another one. */
export const secretRef = () =>
  z.object({ name: objectName("write the name of a Secret in the same namespace").describe("The name of the Secret.") })

/** An object that may be in another namespace, where that namespace shares it. */
export const sharedRef = (what: string, home = "the namespace of the Canary") =>
  z.object({
    name: objectName(`write the name of ${what}`).describe("The name."),
    namespace: namespaceName().describe(`Its namespace, where that shares the object. Without it: ${home}.`).optional(),
  })

const address = (pattern: RegExp) =>
  z.string().max(2048).regex(pattern).meta({ hint: "write an address that begins with http:// or https://" })

/** The address of a service of another party; `aim` checks where it leads before it connects. */
export const httpAddress = () => address(/^https?:[/][/][^ ]+$/)

/** The same, where "" means "not given". */
export const optionalHttpAddress = () => address(/^(https?:[/][/][^ ]+)?$/)

/** Reads as Flagger reads it: what begins like a duration of minutes or seconds passes, so `1m30s` does and `1h` does not. */
export const interval = () =>
  z
    .string()
    .max(32)
    .regex(/^[0-9]+(m|s)/)
    .meta({ hint: "write minutes or seconds, such as 30s, 1m or 1m30s" })

/** A duration of ours: hours too, and nothing behind it. */
export const duration = () =>
  z
    .string()
    .min(2)
    .max(32)
    .regex(/^([0-9]{1,5}h)?([0-9]{1,5}m)?([0-9]{1,7}s)?$/)
    .meta({ hint: "write hours, minutes or seconds, such as 30s, 10m or 24h" })

/** Keys and values that are handed on as they are. */
export const texts = (bounds: { keys: number; characters: number }) =>
  z.record(z.string(), z.string().max(bounds.characters)).meta({ maxProperties: bounds.keys })

/** How a hook is called, of a Canary or of a tier. */
export const calls = () => ({
  timeout: interval().describe("How long one attempt may take.").default("10s"),
  retries: z
    .int()
    .min(0)
    .max(100)
    .meta({ format: "int32", hint: "write a whole number from 0 to 100" })
    .describe("How often a call is tried again within the interval.")
    .default(0),
  disableTLS: z
    .boolean()
    .describe("Do not check the certificate. Only for hosts that an administrator allows.")
    .default(false),
})

/** The values of a metric that are good. */
export const thresholdRange = () =>
  z
    .object({
      min: decimal().describe("A value below is bad.").optional(),
      max: decimal().describe("A value above is bad.").optional(),
    })
    .meta(
      rules({
        rule: "!has(self.min) || !has(self.max) || self.min <= self.max",
        message: "no value is both at least min and at most max: write a min that is not above max",
      }),
    )
    .describe("The values that are good.")
