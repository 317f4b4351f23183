/** What a query may name, as Flagger names it; `source` and `revision` are ours. */
export type QueryValues = {
  readonly name: string
  readonly namespace: string
  /** The workload of the new revision. */
  readonly target: string
  /** The workload of the revision that it is to replace. */
  readonly source: string
  readonly revision: string
  readonly service: string
  readonly ingress: string
  readonly route: string
  readonly interval: string
  readonly variables: Readonly<Record<string, string>>
}

export type Rendered = { readonly ok: true; readonly text: string } | { readonly ok: false; readonly problem: string }

const functions = [
  "name",
  "namespace",
  "target",
  "source",
  "revision",
  "service",
  "ingress",
  "route",
  "interval",
] as const
type QueryFunction = (typeof functions)[number]
const isFunction = (text: string): text is QueryFunction => (functions as readonly string[]).includes(text)

/** Between two braces: what stands in the query, a name and what is after it. `{{-` and `-}}` take the space beside them. */
const action = /\{\{(-\s)?(.*?)(\s-)?\}\}/gs
const variable = /^variables\.([A-Za-z_][A-Za-z0-9_]*)$/
const indexed = /^index\s+variables\s+"([^"\\]*)"$/
const comment = /^\/\*.*\*\/$/s

/**
 * Renders a query that is written as a Go template with Flagger's functions. Of Go's template language it reads what
 * queries use: functions, variables and comments. Whatever else there is, and a variable that is not set, is a problem:
 * a query that is half rendered would measure something else.
 */
export function renderQuery(query: string, values: QueryValues): Rendered {
  let text = ""
  let end = 0
  let trimsNext = false
  for (const found of query.matchAll(action)) {
    const [whole, before, inner = "", after] = found
    const read = rendered(inner.trim(), values)
    if (!read.ok)
      return { ok: false, problem: `{{ ${inner.trim()} }} at ${placeOf(query, found.index)}: ${read.problem}` }
    const between = query.slice(end, found.index)
    const kept = trimsNext ? between.trimStart() : between
    text += (before ? kept.trimEnd() : kept) + read.text
    end = found.index + whole.length
    trimsNext = after !== undefined
  }
  const rest = query.slice(end)
  const open = rest.indexOf("{{")
  if (open >= 0) return { ok: false, problem: `{{ at ${placeOf(query, end + open)} is not closed by }}` }
  return { ok: true, text: text + (trimsNext ? rest.trimStart() : rest) }
}

function rendered(inner: string, values: QueryValues): Rendered {
  if (comment.test(inner)) return { ok: true, text: "" }
  if (isFunction(inner)) return { ok: true, text: values[inner] }
  const name = variable.exec(inner)?.[1] ?? indexed.exec(inner)?.[1]
  if (name === undefined) return { ok: false, problem: `a query can name ${functions.join(", ")} and variables.NAME` }
  if (Object.hasOwn(values.variables, name)) return { ok: true, text: values.variables[name]! }
  return { ok: false, problem: `templateVariables has no ${name}` }
}

function placeOf(query: string, offset: number): string {
  const lines = query.slice(0, offset).split("\n")
  return `line ${lines.length}, column ${lines.at(-1)!.length + 1}`
}
