import type { SyntaxNode } from "@lezer/common"
import { parser } from "@prometheus-io/lezer-promql"

export type Matcher = { readonly label: string; readonly is: (value: string) => boolean }
export type Selector = { readonly matchers: readonly Matcher[]; readonly offsetMs: number; readonly rangeMs?: number }
export type Matching = { readonly on: boolean; readonly labels: readonly string[] }

export type Expr =
  | { readonly is: "number"; readonly value: number }
  | { readonly is: "selector"; readonly selector: Selector }
  | { readonly is: "call"; readonly name: string; readonly args: readonly Expr[] }
  | {
      readonly is: "aggregate"
      readonly op: string
      readonly of: Expr
      readonly by: boolean
      readonly labels: readonly string[]
    }
  | { readonly is: "negative"; readonly of: Expr }
  | {
      readonly is: "binary"
      readonly op: string
      readonly left: Expr
      readonly right: Expr
      readonly isBool: boolean
      readonly matching: Matching
    }

/** A query that is no PromQL, or more than is understood here. */
export class QueryError extends Error {}

/** Reads a query by Prometheus' own grammar. Throws a `QueryError`. */
export function parse(query: string): Expr {
  const { topNode } = parser.parse(query)
  const [first, more] = childrenOf(topNode)
  const broken = brokenIn(topNode)
  if (!first || more || broken) throw new QueryError(`parse error at ${broken?.from ?? 0}: ${query}`)
  return exprOf(first, query)
}

function brokenIn(node: SyntaxNode): SyntaxNode | undefined {
  if (node.type.isError) return node
  for (const child of childrenOf(node)) {
    const broken = brokenIn(child)
    if (broken) return broken
  }
  return undefined
}

function childrenOf(node: SyntaxNode): SyntaxNode[] {
  const children: SyntaxNode[] = []
  for (let child = node.firstChild; child; child = child.nextSibling) children.push(child)
  return children.filter(({ name }) => name !== "LineComment")
}

function exprOf(node: SyntaxNode, query: string): Expr {
  const children = childrenOf(node)
  const text = query.slice(node.from, node.to)
  switch (node.name) {
    case "ParenExpr":
      return exprOf(children[0]!, query)
    case "NumberDurationLiteral":
      return { is: "number", value: numberOf(text) }
    case "VectorSelector":
    case "MatrixSelector":
    case "OffsetExpr":
      return { is: "selector", selector: selectorOf(node, query) }
    case "UnaryExpr": {
      const of = exprOf(children.at(-1)!, query)
      return text.startsWith("-") ? { is: "negative", of } : of
    }
    case "FunctionCall":
      return {
        is: "call",
        name: query.slice(children[0]!.from, children[0]!.to),
        args: childrenOf(children[1]!).map(each => exprOf(each, query)),
      }
    case "AggregateExpr":
      return aggregateOf(children, query)
    case "BinaryExpr":
      return binaryOf(children, query)
    default:
      throw new QueryError(`${node.name} is not understood here: ${text}`)
  }
}

function aggregateOf(children: readonly SyntaxNode[], query: string): Expr {
  const named = (name: string) => children.find(each => each.name === name)
  const [body, ...others] = childrenOf(named("FunctionCallBody")!)
  if (!body || others.length > 0) throw new QueryError("an aggregation has one argument here")
  const modifier = named("AggregateModifier")
  const op = named("AggregateOp")!
  return {
    is: "aggregate",
    op: query.slice(op.from, op.to).toLowerCase(),
    of: exprOf(body, query),
    by: !modifier || childrenOf(modifier)[0]?.name === "By",
    labels: modifier ? labelsIn(modifier, query) : [],
  }
}

function binaryOf(children: readonly SyntaxNode[], query: string): Expr {
  const [left, op, ...rest] = children
  const modifiers = rest.slice(0, -1).flatMap(each => [each, ...childrenOf(each)])
  const clause = modifiers.find(({ name }) => name === "MatchingModifierClause")
  if (modifiers.some(({ name }) => /^Group(Left|Right)$/.test(name)))
    throw new QueryError("group_left and group_right are not understood here")
  return {
    is: "binary",
    op: query.slice(op!.from, op!.to).toLowerCase(),
    left: exprOf(left!, query),
    right: exprOf(rest.at(-1)!, query),
    isBool: modifiers.some(({ name }) => name === "BoolModifier" || name === "Bool"),
    matching: { on: modifiers.some(({ name }) => name === "On"), labels: clause ? labelsIn(clause, query) : [] },
  }
}

const labelsIn = (node: SyntaxNode, query: string): string[] =>
  childrenOf(node)
    .filter(({ name }) => name === "GroupingLabels")
    .flatMap(childrenOf)
    .map(({ from, to }) => query.slice(from, to))

function selectorOf(node: SyntaxNode, query: string): Selector {
  const children = childrenOf(node)
  const text = (each: SyntaxNode) => query.slice(each.from, each.to)
  if (node.name === "MatrixSelector")
    return { ...selectorOf(children[0]!, query), rangeMs: durationMs(text(children[1]!)) }
  if (node.name === "OffsetExpr") {
    const inner = children[0]!
    if (!/^(Vector|Matrix)Selector$/.test(inner.name)) throw new QueryError("an offset is of a selector here")
    return { ...selectorOf(inner, query), offsetMs: durationMs(text(children.at(-1)!)) }
  }
  const matchers: Matcher[] = []
  for (const each of children) {
    if (each.name === "Identifier") {
      const name = text(each)
      matchers.push({ label: "__name__", is: value => value === name })
    } else if (each.name === "LabelMatchers") matchers.push(...childrenOf(each).map(inner => matcherOf(inner, text)))
    else throw new QueryError(`${each.name} is not understood here`)
  }
  return { matchers, offsetMs: 0 }
}

function matcherOf(node: SyntaxNode, text: (node: SyntaxNode) => string): Matcher {
  const [label, op, value] = childrenOf(node)
  if (node.name !== "UnquotedLabelMatcher" || !label || !op || !value)
    throw new QueryError(`${text(node)} is not understood here`)
  const wanted = unquoted(text(value))
  const name = text(label)
  if (text(op) === "=") return { label: name, is: found => found === wanted }
  if (text(op) === "!=") return { label: name, is: found => found !== wanted }
  const pattern = patternOf(wanted)
  return { label: name, is: found => pattern.test(found) === (text(op) === "=~") }
}

/** A pattern must match the whole value. */
function patternOf(text: string): RegExp {
  try {
    return new RegExp(`^(?:${text})$`, "s")
  } catch {
    throw new QueryError(`${JSON.stringify(text)} is no regular expression`)
  }
}

function unquoted(text: string): string {
  const inner = text.slice(1, -1)
  if (text.startsWith("`")) return inner
  const escapes: Record<string, string> = { n: "\n", t: "\t", r: "\r" }
  return inner.replace(/\\(.)/g, (_, letter: string) => escapes[letter] ?? letter)
}

const units: Record<string, number> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
  y: 31_536_000_000,
}

function durationMs(text: string): number {
  const parts = [...text.matchAll(/(\d+)(ms|[smhdwy])/g)]
  if (parts.map(([part]) => part).join("") === text.replace(/^-/, ""))
    return parts.reduce((sum, [, number, unit]) => sum + Number(number) * units[unit!]!, 0) * (text[0] === "-" ? -1 : 1)
  const seconds = Number(text)
  if (Number.isNaN(seconds)) throw new QueryError(`${text} is no duration`)
  return seconds * 1000
}

function numberOf(text: string): number {
  if (/inf/i.test(text)) return text.startsWith("-") ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY
  if (/nan/i.test(text)) return Number.NaN
  const value = Number(text)
  return Number.isNaN(value) ? durationMs(text) / 1000 : value
}
