import type { Json, Obj } from "../object.ts"
import type { Schema } from "./schema.ts"

export type PatchInput = {
  type: "json" | "merge" | "strategic"
  schema: Schema
  current: Obj
  /** Parsed JSON. */
  body: Json
}

/** The object with the patch in it, not yet decoded: `decode` it as if it had been sent whole. Throws StatusError. */
export function applyPatch({ current }: PatchInput): Json {
  return current
}
