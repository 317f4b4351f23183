import {
  celValue,
  chainsIn,
  compile,
  type Expression,
  isMissingField,
  lookBudget,
  TooCostly,
  typeOf,
} from "#lib/cel.ts"
import { clip } from "#lib/text.ts"
import { fieldOf, isObserved, type TargetObject } from "./object-facts.ts"

export type Health = {
  isUpToDate: boolean
  problem?: string
  /** The evaluation was cut short, so its result is unknown. */
  isTooCostly?: true
}

/** Why `spec.target.health` is not an expression that yields true or false, if so. */
export function healthProblem(expression: string): string | undefined {
  try {
    const isHealthy = compile(expression, ["object"])
    const type = typeOf(expression, ["object"])
    if (type !== "bool" && type !== "dyn") return `it yields ${type}, not true or false`
    return isCostly(isHealthy) ? "it takes too many steps, whatever the object" : undefined
  } catch (error) {
    return wordsOf(error)
  }
}

/** Loops over lists in the expression itself cost the same for an object without any fields. */
function isCostly(isHealthy: Expression): boolean {
  try {
    isHealthy({ object: celValue({}, undefined) }, lookBudget())
    return false
  } catch (error) {
    return error instanceof TooCostly
  }
}

/**
 * Evaluates `expression` for objects. A missing field means not healthy, and is no problem either: an object that was
 * just created has no status. Never throws, and no object costs more than its budget: the lists are the tenants'.
 */
export function healthCheck(expression: string): (object: TargetObject) => Health {
  const invalid = healthProblem(expression)
  if (invalid !== undefined) return () => ({ isUpToDate: false, problem: invalid })
  const isHealthy: Expression = compile(expression, ["object"])
  const fields = fieldsRead(expression)
  return object => {
    // A status that names its generation counts for no other generation.
    if (fieldOf(fieldOf(object, "status"), "observedGeneration") !== undefined && !isObserved(object))
      return { isUpToDate: false }
    const budget = lookBudget()
    try {
      const read = fields ? onlyFields(object, fields) : object
      const answer = isHealthy({ object: celValue(read, undefined, budget) }, budget)
      if (typeof answer === "boolean") return { isUpToDate: answer }
      return { isUpToDate: false, problem: "spec.target.health did not yield true or false" }
    } catch (error) {
      if (isMissingField(error)) return { isUpToDate: false }
      if (!(error instanceof TooCostly)) return { isUpToDate: false, problem: wordsOf(error) }
      return { isUpToDate: false, isTooCostly: true, problem: `spec.target.health cannot be asked: ${error.message}` }
    }
  }
}

/** Only the fields that an expression reads, so that the others need not be translated. */
function onlyFields(value: unknown, fields: readonly (readonly string[])[]): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value
  if (fields.some(field => field.length === 0)) return value
  const names = [...new Set(fields.map(field => field[0]!))].filter(name => Object.hasOwn(value, name))
  const below = (name: string) => fields.filter(field => field[0] === name).map(field => field.slice(1))
  return Object.fromEntries(names.map(name => [name, onlyFields(fieldOf(value, name), below(name))]))
}

/** The fields an expression reads: `object.status.phase == 'Ready'` reads status.phase. Undefined if it may be all. */
export function fieldsRead(expression: string): string[][] | undefined {
  const chains = chainsIn(expression).filter(([variable]) => variable?.name === "object")
  if (chains.some(chain => chain.length < 2)) return undefined
  return chains.map(chain => chain.slice(1).map(({ name }) => name))
}

/** The first line: the rest draws the expression with an arrow. */
function wordsOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error)
  return clip(message.split("\n", 1)[0]!.replaceAll(/[^\x20-\x7e]/g, "?"), 128)
}
