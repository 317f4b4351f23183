/** What a query may name, as Flagger names it; `source` and `revision` are ours. */
export type QueryValues = {
  readonly name: string
  readonly namespace: string
  /** The workload of the new revision: its pods are called TARGET-HASH-POD. */
  readonly target: string
  /** The same of the revision that it is to replace: its pods are called SOURCE-HASH-POD. */
  readonly source: string
  readonly revision: string
  /** The revision of the source; a query with `{{ revision }}` is asked of the source with it. */
  readonly sourceRevision?: string | undefined
  /** The Service that clients use. `SERVICE-canary` selects the new revision, `SERVICE-primary` the other one. */
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
/** Flagger has no workload of these names, but Services: its queries name them by the target. */
const serviceSuffix = /^-(?:canary|primary)(?![-0-9A-Za-z])/

/**
 * Renders a query that is written as a Go template with Flagger's functions. Of Go's template language it reads what
 * queries use: functions, variables and comments. Whatever else there is, and a variable that is not set, is a problem:
 * a query that is half rendered would measure something else. `{{ target }}-canary` is the Service of the new revision,
 * as in Flagger, where the Service is called after the target.
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
    end = found.index + whole.length
    const isService = inner.trim() === "target" && serviceSuffix.test(query.slice(end))
    text += (before ? kept.trimEnd() : kept) + (isService ? values.service : read.text)
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

/**
 * The same query about the revision that runs: the source stands where the target stood, and its Service where the
 * target's stood. Undefined where that changes nothing: the query does not tell the revisions apart.
 */
export function renderForSource(query: string, values: QueryValues): Rendered | undefined {
  const { source, sourceRevision } = values
  const swapped = query.replaceAll(/(\{\{-?\s*(?:target|service)\s*-?\}\})-canary(?![-0-9A-Za-z])/g, "$1-primary")
  if (sourceRevision === undefined && /\{\{-?\s*revision\s*-?\}\}/.test(query))
    return { ok: false, problem: "{{ revision }}: the revision of the source is not known" }
  const ofSource = renderQuery(swapped, { ...values, target: source, revision: sourceRevision ?? "" })
  const ofTarget = renderQuery(query, values)
  return ofSource.ok && ofTarget.ok && ofSource.text === ofTarget.text ? undefined : ofSource
}
