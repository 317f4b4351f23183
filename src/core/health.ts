import { celValue, chainsIn, compile, type Expression, isMissingField, loopsIn, typeOf } from "#lib/cel.ts"
import { clip } from "#lib/text.ts"
import { fieldOf, isObserved, type TargetObject } from "./object-facts.ts"

export type Health = { isUpToDate: boolean; problem?: string }

/** Why `spec.target.health` is not an expression that yields true or false, if so. */
export function healthProblem(expression: string): string | undefined {
  try {
    compile(expression, ["object"])
    const type = typeOf(expression, ["object"])
    return type === "bool" || type === "dyn" ? undefined : `it yields ${type}, not true or false`
  } catch (error) {
    return wordsOf(error)
  }
}

/**
 * Asks `expression` about objects. What is missing is not healthy, and no problem either: an object that was made a
 * moment ago has no status. Never throws.
 */
export function healthCheck(expression: string): (object: TargetObject) => Health {
  const invalid = healthProblem(expression)
  if (invalid !== undefined) return () => ({ isUpToDate: false, problem: invalid })
  const isHealthy: Expression = compile(expression, ["object"])
  const parts = partsRead(expression)
  const loops = loopsIn(expression)
  return object => {
    // A status that says what it is about is not believed about anything else.
    if (fieldOf(fieldOf(object, "status"), "observedGeneration") !== undefined && !isObserved(object))
      return { isUpToDate: false }
    try {
      const read = parts ? Object.fromEntries(parts.map(name => [name, fieldOf(object, name)])) : object
      if (loops > 1 && longestIn(read) ** loops > stepsMost)
        return { isUpToDate: false, problem: "its lists are too long for the loops of spec.target.health" }
      const answer = isHealthy({ object: celValue(read, undefined) })
      if (typeof answer === "boolean") return { isUpToDate: answer }
      return { isUpToDate: false, problem: "spec.target.health did not yield true or false" }
    } catch (error) {
      return isMissingField(error) ? { isUpToDate: false } : { isUpToDate: false, problem: wordsOf(error) }
    }
  }
}

/**
 * The library has no limit of cost, and the lists are the tenants'. Loops that stand side by side take time with the
 * length of the object, which the server bounds; inside one another, the lengths multiply.
 */
const stepsMost = 1_000_000

function longestIn(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0
  const below = Object.values(value)
  return below.reduce<number>((longest, each) => Math.max(longest, longestIn(each)), below.length)
}

/** The parts of the object an expression reads, so that the others need not be translated; undefined if it may be all. */
function partsRead(expression: string): string[] | undefined {
  const fields = fieldsRead(expression)
  return fields && [...new Set(fields.map(field => field[0]!))]
}

/** The same to the last field: `object.status.phase == 'Ready'` reads status.phase. */
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
