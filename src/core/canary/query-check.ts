import type { MetricService } from "./metric-services/index.ts"
import { prometheus } from "./metric-services/prometheus.ts"
import { placeInQuery, type QueryValues, renderQuery } from "./query-template.ts"

type Names = Omit<QueryValues, "variables">

const names: Names = {
  name: "name",
  namespace: "namespace",
  target: "target",
  source: "source",
  revision: "revision",
  service: "service",
  ingress: "ingress",
  route: "route",
  interval: "1m",
}

/** Of a Canary and of a tier: a template may be for either. */
export const everyName: Names = { ...names, tier: "tier" }

type Language = Pick<MetricService, "syntaxProblemOf">

/** Why a query cannot be asked, with the place and what to write there. `variables`: those that the Canary gives. */
export function queryProblem(
  query: string,
  variables: Readonly<Record<string, string>>,
  language: Language = prometheus, // inline queries are asked of one
  known: Names = names,
): string | undefined {
  const values = { ...known, variables }
  const rendered = renderQuery(query, values)
  if (!rendered.ok) return rendered.problem
  const found = language.syntaxProblemOf(rendered.text)
  return found && `the query does not parse at ${placeInQuery(query, values, found.at)}: ${found.what}`
}

/** What a variable may be, outside of quotes: a name, a number, a duration. */
const fillings = ["a_variable", "1", "1m"]
const quoted = /"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`[^`]*`/g

/**
 * The same of a template, whose variables the Canaries give that use it. A variable outside of quotes may be anything, so
 * that a query which has one is refused only where none of the usual values makes it parse.
 */
export function templateProblem(query: string, language: Language): string | undefined {
  const named = [...query.matchAll(/variables(?:\.|\s+")([A-Za-z_][A-Za-z0-9_]*)/g)].map(([, name]) => name!)
  const filled = (text: string) => Object.fromEntries(named.map(name => [name, text]))
  const [first, ...others] = fillings.map(text => queryProblem(query, filled(text), language, everyName))
  if (named.length === 0 || first === undefined) return first
  if (others.includes(undefined)) return undefined
  const rendered = renderQuery(query, { ...everyName, variables: filled(fillings[0]!) })
  const isOutside = rendered.ok && rendered.text.replace(quoted, "").includes(fillings[0]!)
  return isOutside ? undefined : first
}
