import {
  type Budget,
  celErrorWords,
  celValue,
  compile,
  type Expression,
  optional,
  TooCostly,
  writeBudget,
} from "#lib/cel.ts"
import { equal } from "../apiserver/equal.ts"
import type { Json } from "../object.ts"
import type { Cause } from "../status-error.ts"
import { oldField, oldItem } from "./correlation.ts"
import { type Props, type Rule, valuesOf } from "./props.ts"

/** A node of a schema with the compiled rules at and below it. Nodes without rules are left out. */
export type RuledNode = {
  readonly props: Props
  readonly rules: readonly CompiledRule[]
  readonly properties: ReadonlyMap<string, RuledNode>
  readonly values: RuledNode | undefined
  readonly items: RuledNode | undefined
}

type CompiledRule = { rule: Rule; holds: Expression; says: Expression | undefined; usesOld: boolean }

const variables = ["self", "oldSelf"]

export function compileRules(props: Props): RuledNode | undefined {
  const rules = (props["x-kubernetes-validations"] ?? []).map(compileRule)
  const properties = new Map<string, RuledNode>()
  for (const [name, child] of Object.entries(props.properties ?? {})) {
    const node = compileRules(child)
    if (node) properties.set(name, node)
  }
  const valueProps = valuesOf(props)
  const values = valueProps && compileRules(valueProps)
  const items = props.items && compileRules(props.items)
  if (rules.length === 0 && properties.size === 0 && !values && !items) return undefined
  return { props, rules, properties, values, items }
}

function compileRule(rule: Rule): CompiledRule {
  return {
    rule,
    holds: compile(rule.rule, variables),
    says: rule.messageExpression ? compile(rule.messageExpression, variables) : undefined,
    usesOld: /\boldSelf\b/.test(rule.rule),
  }
}

/** The findings so far, and the rest of the object's cost budget. */
type Findings = { causes: Cause[]; budget: Budget; isSpent: boolean }

/** `isSame`: whether the value, or the nearest value around it that can be identified, is unchanged. */
type Before = { old: Json; isSame: () => boolean }

export function validateRules(node: RuledNode, value: Json, old: Json): Cause[] {
  const findings: Findings = { causes: [], budget: writeBudget(), isSpent: false }
  walk(findings, node, value, "", { old, isSame: () => old !== undefined && equal(value, old) })
  return findings.causes
}

function walk(findings: Findings, node: RuledNode, value: Json, path: string, before: Before): void {
  if (value === null || value === undefined || findings.isSpent) return
  try {
    judge(findings, node, value, path, before)
  } catch (error) {
    if (!(error instanceof TooCostly)) throw error
    findings.isSpent = true
    findings.causes.push(outOfBudget(path, node.props.type))
  }
  if (Array.isArray(value)) {
    if (!node.items) return
    for (const [index, item] of value.entries())
      walk(findings, node.items, item, `${path}[${index}]`, inside(before, item, oldItem(before.old, item, node.props)))
    return
  }
  if (typeof value !== "object") return
  for (const name in value) {
    const property = node.properties.get(name)
    const child = property ?? node.values
    if (!child) continue
    const at = property ? (path ? `${path}.${name}` : name) : `${path}[${name}]`
    walk(findings, child, value[name], at, inside(before, value[name], oldField(before.old, name, node.props)))
  }
}

const inside = (outer: Before, value: Json, old: Json): Before =>
  old === undefined ? { old, isSame: outer.isSame } : { old, isSame: () => equal(value, old) }

function judge(findings: Findings, node: RuledNode, value: Json, path: string, { old, isSame }: Before): void {
  if (node.rules.length === 0) return
  const { causes, budget } = findings
  const translated = (each: Json) => celValue(each, node.props as never, budget)
  const self = translated(value)
  const usesOldSelf = node.rules.some(({ usesOld }) => usesOld)
  const oldSelf = old === undefined || old === null || !usesOldSelf ? undefined : translated(old)
  for (const { rule, holds, says, usesOld } of node.rules) {
    // A transition rule does not apply where there was no value before.
    if (usesOld && oldSelf === undefined && !rule.optionalOldSelf) continue
    const known = { self, oldSelf: rule.optionalOldSelf ? optional(oldSelf) : oldSelf }
    try {
      if (holds(known, budget) === true) continue
    } catch (error) {
      if (error instanceof TooCostly) throw error
      causes.push({
        reason: "FieldValueInvalid",
        message: `Invalid value: ${JSON.stringify(node.props.type)}: ${problem(error, rule)}`,
        field: path || "<nil>",
      })
      continue
    }
    if (usesOld || !isSame())
      causes.push(cause(rule, value, path + (rule.fieldPath ?? ""), message(rule, says, known, budget)))
  }
}

function message(rule: Rule, says: Expression | undefined, known: Record<string, unknown>, budget: Budget): string {
  try {
    const text = says?.(known, budget)
    if (typeof text === "string" && text.trim() && !text.includes("\n")) return text
  } catch {
    // The message expression is optional. If it fails, the rule's own text is used.
  }
  return rule.message?.trim() || `failed rule: ${rule.rule.trim()}`
}

function cause(rule: Rule, value: Json, field: string, detail: string): Cause {
  const reason = rule.reason ?? "FieldValueInvalid"
  const shown = typeof value === "object" ? "" : `: ${JSON.stringify(value)}`
  const at = { reason, field: field.replace(/^\./, "") || "<nil>" }
  if (reason === "FieldValueForbidden") return { ...at, message: `Forbidden: ${detail}` }
  if (reason === "FieldValueRequired") return { ...at, message: `Required value: ${detail}` }
  if (reason === "FieldValueDuplicate") return { ...at, message: `Duplicate value${shown}` }
  return { ...at, message: `Invalid value${shown}: ${detail}` }
}

/** In the server's words; our budget is smaller than the server's. */
const outOfBudget = (path: string, type: string | undefined): Cause => ({
  reason: "FieldValueInvalid",
  message: `Invalid value: ${JSON.stringify(type)}: validation failed due to running out of cost budget, no further validation rules will be run`,
  field: path || "<nil>",
})

/** The server's message for a rule that could not be evaluated. */
function problem(error: unknown, rule: Rule): string {
  const words = celErrorWords(error)
  const name = rule.message?.trim() || rule.rule.trim()
  return words === "no such overload"
    ? `'no such overload': call arguments did not match a supported operator, function or macro signature for rule: ${name}`
    : `${words} evaluating rule: ${name}`
}
