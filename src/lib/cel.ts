import { type ASTNode, Environment, EvaluationError, Optional, ParseError } from "@marcbachmann/cel-js"
import { serialize } from "@marcbachmann/cel-js/serialize"
import { RE2JS } from "re2js"
import { registerAuthorizer } from "./cel-authorizer.ts"
import { withoutLiterals } from "./cel-literals.ts"
import { type Budget, meter, meterRoot, spend, TooCostly, within } from "./cel-meter.ts"
import { JsonPatchLiteral, jsonOf, misnamed, ObjectLiteral, registerValues } from "./cel-values.ts"
import { parseQuantity } from "./quantity.ts"

export { type Access, type AccessCheck, authorizerValue } from "./cel-authorizer.ts"
export type { Budget }
export { JsonPatchLiteral, misnamed, ObjectLiteral, TooCostly }

/** What an expression gave, as JSON, paid for like the expression. */
export const celJson = (value: unknown, budget = writeBudget()): unknown => within(budget, () => jsonOf(value))

/** The part of a schema that decides how CEL sees its values. */
export type CelSchema = {
  type?: string
  format?: string
  items?: CelSchema
  properties?: Record<string, CelSchema>
  additionalProperties?: CelSchema
}

/**
 * A compiled expression. Throws when the values do not fit it, as the server would report an error, and `TooCostly` when
 * it spends more than its budget.
 */
export type Expression = (variables: Record<string, unknown>, budget?: Budget) => unknown

/** The budget for evaluating one object, each time it changes: some 10 ms, and twice that on a busy machine. */
export const lookBudget = (): Budget => ({ left: 50_000 })
/** The budget for all rules of a schema, for one object that is written. The largest status of our own needs a third. */
export const writeBudget = (): Budget => ({ left: 500_000 })

/**
 * Whether lists and maps may hold values whose type is not known beside others. The server knows the types of more
 * variables than the library does, and so refuses fewer expressions.
 */
export type CompileOptions = { isLenient?: boolean }

/** Compiles a CEL expression over the named variables. Throws with the position when it is not CEL. */
export function compile(expression: string, variables: readonly string[], options: CompileOptions = {}): Expression {
  const environment = environmentFor(variables, options)
  const { ast } = environment.parse(withoutLiterals(expression))
  useOwnFunctions(ast)
  const compiled = environment.parse(serialize(ast))
  const { valid, error } = compiled.check()
  if (!valid) throw error
  meterRoot(compiled.ast)
  return (variables, budget = writeBudget()) => within(budget, () => compiled(variables))
}

/** A variable and the fields that are read of it, with their positions in the expression. */
export type Chain = { name: string; at: number }[]

/** The chains of fields an expression reads of its variables: `self.a.b == oldSelf.c` reads self.a.b and oldSelf.c. */
export function chainsIn(expression: string): Chain[] {
  const chains: Chain[] = []
  collectChains(kubernetesFunctions.parse(withoutLiterals(expression)).ast, chains)
  return chains
}

/** A comparison of values that cannot be compared: `self.count == 'x'`. */
export type Mismatch = { operator: string; at: number; types: [string, string] }

/** The first comparison in an expression whose two sides have known types that do not match. */
export function mismatchIn(expression: string, self: CelSchema): Mismatch | undefined {
  return findMismatch(kubernetesFunctions.parse(expression).ast, expression, self)
}

/** The position, from 0, of a syntax error in an expression; undefined for other errors. */
export function syntaxErrorIn(expression: string): { at: number; summary: string } | undefined {
  try {
    kubernetesFunctions.parse(withoutLiterals(expression))
    return undefined
  } catch (error) {
    return error instanceof ParseError ? { at: error.range?.start ?? 0, summary: error.summary } : undefined
  }
}

/** The type of an expression's result, if it is known without the variables; otherwise `dyn`. */
export function typeOf(expression: string, variables: readonly string[], options: CompileOptions = {}): string {
  const environment = environmentFor(variables, options)
  const { ast } = environment.parse(withoutLiterals(expression))
  useOwnFunctions(ast)
  return environment.parse(serialize(ast)).check().type ?? "dyn"
}

/** Whether an evaluation failed because a field or element is missing, rather than wrong. */
export const isMissingField = (error: unknown) =>
  error instanceof EvaluationError && (error.code === "no_such_key" || error.code === "index_out_of_bounds")

/** What ended an evaluation, in the words of the server's library. */
export function celErrorWords(error: unknown): string {
  const [first = ""] = (error instanceof Error ? error.message : String(error)).split("\n")
  if (/^(no such overload|found no matching overload)/.test(first)) return "no such overload"
  const index = /index out of bounds, index (-?\d+)/.exec(first)?.[1]
  return index === undefined ? first.replace(/^No such key/, "no such key") : `index out of bounds: ${index}`
}

/** For variables that may be absent: `oldSelf.orValue(self)`. */
export const optional = (value: unknown): unknown => (value === undefined ? Optional.none() : Optional.of(value))

/** Does the pattern match somewhere in the text? Go's syntax, in linear time: neither is trusted. */
export const matches = (text: string, pattern: string): boolean => compiledPattern(pattern).matcher(text).find()

function compiledPattern(pattern: string) {
  let compiled = patterns.get(pattern)
  if (!compiled) {
    compiled = RE2JS.compile(pattern)
    // Our schemas have few patterns; those of users must not accumulate.
    if (patterns.size >= 1000) patterns.clear()
    patterns.set(pattern, compiled)
  }
  return compiled
}

/** The same for expressions, which are charged for it: the length of the text times the size of the pattern's program. */
function paidPattern(text: string, pattern: string) {
  spend(matchSteps + (patterns.has(pattern) ? 0 : pattern.length * compileSteps))
  const compiled = compiledPattern(pattern)
  spend((text.length * compiled.programSize()) / 16)
  return compiled.matcher(text)
}

const matchSteps = 16
const compileSteps = 16

/**
 * A JSON value as CEL sees it through a schema: whole numbers become integers (JavaScript's are doubles, for which
 * `size() <= self.count` has no overload), times become timestamps, and nothing is inherited from a prototype.
 */
export const celValue = (value: unknown, schema: CelSchema | undefined, budget = writeBudget()): unknown =>
  within(budget, () => translated(value, schema, 0))

/** Deeper than any object; for the library each level of a list is a type of its own. */
const depthMost = 64

function translated(value: unknown, schema: CelSchema | undefined, depth: number): unknown {
  spend(1)
  if (depth > depthMost) throw new TooCostly(`it is nested more than ${depthMost} deep`)
  if (Array.isArray(value)) return value.map(item => translated(item, schema?.items, depth + 1))
  if (typeof value === "object" && value !== null) {
    const fields = Object.entries(value).map(([name, child]): [string, unknown] => {
      spend(1)
      const property =
        schema?.properties && Object.hasOwn(schema.properties, name) ? schema.properties[name] : undefined
      const inner = property ?? schema?.additionalProperties
      return [property ? celName(name) : name, translated(child, inner, depth + 1)]
    })
    // The library reads an object's constructor to find its type, and of a Map it reads nothing.
    if (Object.hasOwn(value, "constructor")) return new Map(fields)
    const result: Record<string, unknown> = Object.create(null)
    for (const [name, child] of fields) result[name] = child
    return result
  }
  if (typeof value === "number" && schema?.type !== "number" && Number.isSafeInteger(value)) return BigInt(value)
  if (typeof value === "string" && schema?.format === "date-time") return new Date(value)
  return value
}

/** A field's name as an expression writes it: `a-b` is `a__dash__b`, and CEL's own words are put between underscores. */
function celName(name: string): string {
  if (/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) && !name.includes("__")) return keywords.has(name) ? `__${name}__` : name
  return name.replaceAll("__", "__underscores__").replaceAll(/[./-]/g, mark => `__${marks[mark]}__`)
}

const marks: Record<string, string> = { ".": "dot", "-": "dash", "/": "slash" }
const keywords = new Set([
  "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let",
  "loop", "package", "namespace", "return", "var", "void", "while",
]) // biome-ignore format: a list of words

const patterns = new Map<string, ReturnType<typeof RE2JS.compile>>()
const environments = new Map<string, Environment>()

function environmentFor(variables: readonly string[], { isLenient = false }: CompileOptions): Environment {
  const key = `${variables.join(",")}${isLenient ? " leniently" : ""}`
  let environment = environments.get(key)
  if (!environment) {
    environment = kubernetesFunctions.clone(isLenient ? { homogeneousAggregateLiterals: false } : undefined)
    for (const name of variables) environment.registerVariable(name, "dyn")
    meter(environment)
    environments.set(key, environment)
  }
  return environment
}

class Quantity {
  readonly nano: bigint

  constructor(nano: bigint) {
    this.nano = nano
  }
}

function quantity(text: string): Quantity {
  const parsed = parseQuantity(text)
  if (!parsed) throw new Error(`${JSON.stringify(text)} is not a quantity`)
  return new Quantity(parsed.nano)
}

/** What Kubernetes adds to CEL and our rules use. */
const kubernetesFunctions = new Environment({ enableOptionalTypes: true })
  .registerFunction("string.linearMatches(string): bool", (text: string, pattern: string) =>
    paidPattern(text, pattern).find(),
  )
  .registerFunction("hasField(dyn, string): bool", (value: unknown, name: string) =>
    value instanceof Map ? value.has(name) : typeof value === "object" && value !== null && Object.hasOwn(value, name),
  )
  .registerFunction("list.isSorted(): bool", (list: bigint[]) =>
    list.every((item, i) => i === 0 || list[i - 1]! <= item),
  )
  .registerFunction("list.sum(): int", (list: bigint[]) => list.reduce((total, item) => total + item, 0n))
  .registerFunction("list.min(): dyn", (list: bigint[]) => extreme(list, (a, b) => a < b))
  .registerFunction("list.max(): dyn", (list: bigint[]) => extreme(list, (a, b) => a > b))
  .registerFunction("list.flatten(): list", (list: unknown[]) => list.flat())
  .registerFunction("list.indexOf(dyn): int", (list: unknown[], item: unknown) => BigInt(list.indexOf(item)))
  .registerFunction("list.lastIndexOf(dyn): int", (list: unknown[], item: unknown) => BigInt(list.lastIndexOf(item)))
  .registerFunction("string.find(string): string", (text: string, pattern: string) => found(text, pattern)[0] ?? "")
  .registerFunction("string.findAll(string): list<string>", found)
  .registerType("Quantity", Quantity)
  .registerFunction("quantity(string): Quantity", quantity)
  .registerFunction("isQuantity(string): bool", (text: string) => parseQuantity(text) !== undefined)
  .registerFunction("Quantity.isLessThan(Quantity): bool", (a: Quantity, b: Quantity) => a.nano < b.nano)
  .registerFunction("Quantity.isGreaterThan(Quantity): bool", (a: Quantity, b: Quantity) => a.nano > b.nano)
  .registerFunction("Quantity.compareTo(Quantity): int", (a: Quantity, b: Quantity) =>
    a.nano < b.nano ? -1n : a.nano > b.nano ? 1n : 0n,
  )
  .registerFunction("Quantity.add(Quantity): Quantity", (a: Quantity, b: Quantity) => new Quantity(a.nano + b.nano))
  .registerFunction("Quantity.sub(Quantity): Quantity", (a: Quantity, b: Quantity) => new Quantity(a.nano - b.nano))
registerAuthorizer(registerValues(kubernetesFunctions))

function extreme(list: bigint[], isBetter: (a: bigint, b: bigint) => boolean): bigint {
  if (list.length === 0) throw new Error("min and max of an empty list")
  return list.reduce((best, item) => (isBetter(item, best) ? item : best))
}

function found(text: string, pattern: string): string[] {
  const matcher = paidPattern(text, pattern)
  const all: string[] = []
  while (matcher.find()) {
    spend(matchSteps)
    all.push(matcher.group() ?? "")
  }
  return all
}

function collectChains(node: unknown, chains: Chain[]): void {
  const chain = chainOf(node)
  if (chain) chains.push(chain)
  else if (Array.isArray(node)) for (const child of node) collectChains(child, chains)
  else if (isNode(node)) collectChains(node.args, chains)
}

function chainOf(node: unknown): Chain | undefined {
  if (!isNode(node)) return undefined
  if (node.op === "id") return [{ name: node.args, at: node.pos }]
  if (node.op !== ".") return undefined
  const inner = chainOf(node.args[0])
  return inner && [...inner, { name: node.args[1], at: node.pos }]
}

const comparisons = new Set(["==", "!=", "<", "<=", ">", ">="])

function findMismatch(node: unknown, text: string, self: CelSchema): Mismatch | undefined {
  if (Array.isArray(node)) {
    for (const child of node) {
      const found = findMismatch(child, text, self)
      if (found) return found
    }
    return undefined
  }
  if (!isNode(node)) return undefined
  const { op: operator, args } = node as { op: string; args: unknown }
  const inside = findMismatch(args, text, self)
  if (inside || !comparisons.has(operator)) return inside
  const [left, right] = args as [ASTNode, ASTNode]
  const types = [knownType(left, self), knownType(right, self)]
  const [a, b] = types
  if (!a || !b || a === b) return undefined
  // Numbers of both kinds have an order, but are never equal.
  const areNumbers = types.every(type => type === "int" || type === "double")
  if (areNumbers && operator !== "==" && operator !== "!=") return undefined
  return { operator, at: text.indexOf(operator, left.end), types: [a, b] }
}

/** The type of a plain value, and of a field that the schema has. */
function knownType(node: ASTNode, self: CelSchema): string | undefined {
  if (node.op === "value") return literalTypes[typeof node.args]
  const [variable, ...fields] = chainOf(node) ?? []
  if (variable?.name !== "self") return undefined
  let schema: CelSchema | undefined = self
  for (const { name } of fields)
    schema = schema?.properties && Object.hasOwn(schema.properties, name) ? schema.properties[name] : undefined
  if (!schema?.type || (schema.type === "string" && schema.format)) return undefined
  return schemaTypes[schema.type]
}

const literalTypes: Record<string, string> = { string: "string", bigint: "int", number: "double", boolean: "bool" }
const schemaTypes: Record<string, string> = { string: "string", integer: "int", number: "double", boolean: "bool" }

/**
 * The library's own `matches` is JavaScript's, with another syntax and exponential time, and its `has` takes no element
 * of a list (`has(self.list[0].a)`); neither can be replaced by name. Its loops have one variable: those with two go
 * through pairs.
 */
function useOwnFunctions(node: unknown): void {
  if (Array.isArray(node)) for (const child of node) useOwnFunctions(child)
  else if (isNode(node)) {
    const args = node.args as unknown[]
    if (node.op === "rcall" && args[0] === "matches") args[0] = "linearMatches"
    const selected = node.op === "call" && node.args[0] === "has" ? node.args[1][0] : undefined
    if (selected?.op === "." && !chainOf(selected)) {
      args[0] = "hasField"
      args[1] = [selected.args[0], { ...selected, op: "value", args: selected.args[1] }]
    }
    if (node.op === "rcall") throughPairs(node)
    useOwnFunctions(node.args)
  }
}

/** Loops with two variables, by name and number of arguments: the loop with one, and whether a map comes of it. */
const pairLoops: Record<string, { loop: string; isMap?: boolean } | undefined> = {
  "all 3": { loop: "all" },
  "exists 3": { loop: "exists" },
  "existsOne 3": { loop: "exists_one" },
  "transformList 3": { loop: "map" },
  "transformList 4": { loop: "map" },
  "transformMap 3": { loop: "map", isMap: true },
  "transformMap 4": { loop: "map", isMap: true },
}

const pair = "pair__"

/** `list.transformList(i, item, f)` becomes `entriesOf(list).map(pair, cel.bind(i, pair[0], cel.bind(item, pair[1], f)))`. */
function throughPairs(node: ASTNode): void {
  const args = node.args as [string, ASTNode, ASTNode[]]
  const [name, receiver, given] = args
  const found = pairLoops[`${name} ${given.length}`]
  if (!found) return
  const made = (op: string, args: unknown) => ({ ...node, op, args }) as unknown as ASTNode
  const id = (text: string) => made("id", text)
  const element = (index: bigint) => made("[]", [id(pair), made("value", index)])
  const [first, second, ...bodies] = given as [ASTNode, ASTNode, ...ASTNode[]]
  const bind = (variable: ASTNode, value: ASTNode, body: ASTNode) =>
    made("rcall", ["bind", id("cel"), [variable, value, body]])
  const bound = (body: ASTNode) => bind(first, element(0n), bind(second, element(1n), body))
  const last = bodies.length - 1
  const steps = bodies.map((body, index) =>
    bound(found.isMap && index === last ? made("list", [dynamic(first), dynamic(body)]) : body),
  )
  const loop: unknown[] = [found.loop, made("call", ["entriesOf", [receiver]]), [id(pair), ...steps]]
  if (found.isMap) Object.assign(node, { op: "call", args: ["mapOf", [made("rcall", loop)]] })
  else Object.assign(args, loop)

  function dynamic(value: ASTNode) {
    return made("call", ["dyn", [value]])
  }
}

const isNode = (value: unknown): value is ASTNode =>
  typeof value === "object" && value !== null && "op" in value && "args" in value
