import type { Json } from "../object.ts"
import { readValue, WrongValue } from "./decode.ts"
import type { Schema } from "./schema.ts"
import { ofObject } from "./table.ts"
import { atomicsIn, merge, problemsOf, TypeProblem } from "./typed.ts"

/** A configuration that cannot be applied, in the server's words. */
export class ConfigurationProblem extends Error {}

export type ConfigurationInput = { schema: Schema; kind: string; isCustom: boolean; live: Json; applied: Json }

/**
 * Merges the configuration of a mutating policy into an object, as server-side apply does, without an owner. Atomic
 * lists and maps may not be named: replacing them as a whole would remove fields that the policy did not mean.
 */
export function applyConfiguration({ schema: asked, kind, isCustom, live, applied }: ConfigurationInput): Json {
  const schema = ofObject(asked)
  const problems = problemsOf(schema, applied)
  if (problems.length > 0)
    throw new ConfigurationProblem(`failed to convert patch object to typed object: ${all(problems)}`)
  const atomics = atomicsIn(schema, applied)
  if (atomics.length > 0)
    throw new ConfigurationProblem(
      `invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: ${atomics.join(", ")}`,
    )
  try {
    return readValue(schema, merge(schema, live, applied), { kind, isCustom }).value
  } catch (error) {
    if (error instanceof TypeProblem) throw new ConfigurationProblem(`failed to merge patch: ${error.message}`)
    if (error instanceof WrongValue)
      throw new ConfigurationProblem(`failed to convert typed object to object: ${error.message}`)
    throw error
  }
}

const all = (problems: readonly string[]) =>
  problems.length === 1 ? problems[0] : `errors:\n${problems.map(each => `  ${each}`).join("\n")}`
