import assert from "node:assert/strict"
import type { Environment } from "@marcbachmann/cel-js"

/** The steps that an evaluation may still use. One step is about a tenth of a microsecond. */
export type Budget = { left: number }

/** An evaluation that was ended. Neither `||` nor `all` can absorb it. */
export class TooCostly extends Error {}

/** One evaluation at a time: nothing in an expression waits. */
let spending: Budget = { left: 0 }

/** Evaluates within a budget. Several evaluations may share one. */
export function within<T>(budget: Budget, evaluate: () => T): T {
  const outer = spending
  spending = budget
  try {
    return evaluate()
  } finally {
    spending = outer
  }
}

export function spend(steps: number): void {
  spending.left -= steps
  if (!(spending.left >= 0)) throw new TooCostly("it takes too many steps")
}

/** The parts of the library's evaluator that are used here; the version is pinned, and tests check them. */
type Node = {
  op: string
  args: unknown
  meta: { alternate?: Node }
  evaluate: Evaluate
  left: Node
  right: Node
  candidates?: unknown
  receiverWithArgs?: Node[]
  handle(...given: unknown[]): unknown
}
type Evaluate = (evaluator: Evaluator, node: Node, context: unknown) => unknown
type Evaluator = { run(node: Node, context: unknown): unknown; tryEval(node: Node, context: unknown): unknown }

/** An error costs its stack and a drawing of the expression. */
const errorSteps = 100
/** The library finds the function by the types of what it is given. */
const callSteps = 4
/** Node looks up a time zone each time. */
const timeZoneSteps = 4000

/**
 * Charges for every node that is evaluated in the environment, and for work on long values. The library
 * itself has no limit: nested loops multiply, and tenants choose the lists.
 */
export function meter(environment: Environment): void {
  const evaluator = evaluatorOf(environment)
  const run = (node: Node, context: unknown): unknown => {
    spend(1)
    const evaluate = operations.get(node.op)
    return evaluate ? evaluate(evaluator, node, context) : node.evaluate(evaluator, node, context)
  }
  evaluator.run = run
  evaluator.tryEval = (node, context) => {
    try {
      return run(node, context)
    } catch (error) {
      if (error instanceof TooCostly) throw error
      spend(errorSteps)
      return error
    }
  }
}

/** The library evaluates the outermost node without `run`; where it is one of ours, it must be charged for too. */
export function meterRoot(root: unknown): void {
  const node = root as Node
  if (operations.has(node.op) && !isMacro(node)) node.evaluate = (evaluator, _, context) => evaluator.run(node, context)
}

/** The library passes its evaluator only to the nodes it evaluates. */
function evaluatorOf(environment: Environment): Evaluator {
  const probe = environment.parse("true")
  let found: Evaluator | undefined
  const node = probe.ast as unknown as Pick<Node, "evaluate">
  node.evaluate = evaluator => {
    found = evaluator
    return true
  }
  probe({})
  assert(found, "the library hands its evaluator to the nodes it evaluates")
  return found
}

const binary =
  (pay: (left: unknown, right: unknown) => void): Evaluate =>
  (evaluator, node, context) => {
    const left = evaluator.run(node.left, context)
    const right = evaluator.run(node.right, context)
    pay(left, right)
    return node.handle(left, right, node, evaluator)
  }

/** Calls of functions are checked by their arguments; macros are other nodes in disguise. */
const isMacro = (node: Node) => node.op.endsWith("call") && node.candidates === undefined

/** The operations whose cost is that of their operands. Any other node costs one step, and what is below it. */
const operations = new Map<string, Evaluate>([
  ["+", binary((left, right) => spend(lengthOf(left) + lengthOf(right)))],
  ["==", binary(payComparison)],
  ["!=", binary(payComparison)],
  ...["<", "<=", ">", ">="].map(op => [op, binary((left, right) => spend(Math.min(lengthOf(left), lengthOf(right))))]),
  ["in", binary(paySearch)],
  [
    "call",
    (evaluator, node, context) => {
      if (isMacro(node)) return node.evaluate(evaluator, node, context)
      const [name, given] = node.args as [string, Node[]]
      const args = given.map(each => evaluator.run(each, context))
      payCall(name, args)
      return node.handle(args, node, evaluator)
    },
  ],
  [
    "rcall",
    (evaluator, node, context) => {
      if (node.meta.alternate?.op === "comprehension") return loop(evaluator, node.meta.alternate, context)
      if (isMacro(node)) return node.evaluate(evaluator, node, context)
      const args = node.receiverWithArgs!.map(each => evaluator.run(each, context))
      payCall((node.args as [string])[0], args)
      return node.handle(args, evaluator, node)
    },
  ],
] as [string, Evaluate][])

/** A loop is charged for each turn; over a map, its keys are listed first. */
function loop(evaluator: Evaluator, node: Node, context: unknown): unknown {
  const args = node.args as { iterable: Node }
  const items = evaluator.run(args.iterable, context)
  spend(lengthOf(items))
  return node.handle(items, args, evaluator, context)
}

/** Steps for going once through a text or a list, without what is in it. */
function lengthOf(value: unknown): number {
  if (typeof value === "string") return value.length >> 6
  if (Array.isArray(value)) return value.length >> 3
  // The keys of a large map are looked up one by one.
  if (value instanceof Map) return value.size * 2
  return isMap(value) ? Object.keys(value).length * 2 : 0
}

/** Equal values are compared to their last field. */
export function payComparison(left: unknown, right: unknown): void {
  spend(1)
  if (typeof left === "string" && typeof right === "string") {
    if (left.length === right.length) spend(lengthOf(left))
  } else if (Array.isArray(left) && Array.isArray(right)) {
    if (left.length === right.length) for (const [i, item] of left.entries()) payComparison(item, right[i])
  } else if (isMap(left) && isMap(right)) {
    spend(lengthOf(left) + lengthOf(right))
    for (const name of Object.keys(left)) payComparison(left[name], right[name])
  } else if (left instanceof Map && right instanceof Map) {
    spend(lengthOf(left) + lengthOf(right))
    for (const [name, value] of left) payComparison(value, right.get(name))
  }
}

function paySearch(item: unknown, within: unknown): void {
  if (!Array.isArray(within)) return
  if (typeof item !== "object") spend((within.length >> 1) * (1 + lengthOf(item)))
  else for (const each of within) payComparison(item, each)
}

function payCall(name: string, args: readonly unknown[]): void {
  spend(callSteps)
  const [first, second] = args
  if (name === "duration" && typeof first === "string") spend(first.length ** 3 / 256)
  else if (searches.has(name) && typeof first === "string" && typeof second === "string")
    spend((first.length * (8 + second.length)) / 64)
  else if (name === "join" && Array.isArray(first) && typeof second === "string") {
    payWhole(first)
    spend((first.length * second.length) / 16)
  } else if (/^get[A-Z]/.test(name) && args.length > 1) spend(timeZoneSteps)
  else if (name !== "size" || !Array.isArray(first)) for (const each of args) payWhole(each)
}

const searches = new Set(["contains", "indexOf", "lastIndexOf", "split"])

/** A function may look at every character, and at every element. */
function payWhole(value: unknown): void {
  if (typeof value === "string" || ArrayBuffer.isView(value)) spend((value as string).length >> 3)
  else if (Array.isArray(value)) for (const each of value) spend(1 + lengthOf(each))
  else spend(lengthOf(value))
}

/** What comes from JSON or from an expression; times, quantities and optional values are whole. */
const isMap = (value: unknown): value is Record<string, unknown> => {
  if (typeof value !== "object" || value === null) return false
  const prototype = Object.getPrototypeOf(value)
  return prototype === null || prototype === Object.prototype
}
