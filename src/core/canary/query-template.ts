/**
 * What a query may name, as Flagger names it; `source`, `revision` and `tier` are ours. A query that names what is not
 * there, such as the Service of a tier, is not asked.
 */
export type QueryValues = {
  readonly name: string
  readonly namespace: string
  /** The workload of the new revision: its pods are called TARGET-HASH-POD. Of a tier: its image. */
  readonly target: string
  /** The same of the revision that it is to replace: its pods are called SOURCE-HASH-POD. */
  readonly source?: string | undefined
  readonly revision?: string | undefined
  /** The revision of the source; a query with `{{ revision }}` is asked of the source with it. */
  readonly sourceRevision?: string | undefined
  /** The Service that clients use. `SERVICE-canary` selects the new revision, `SERVICE-primary` the other one. */
  readonly service?: string | undefined
  readonly ingress?: string | undefined
  readonly route?: string | undefined
  /** A tier of a ServiceImage. */
  readonly tier?: string | undefined
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
  "tier",
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

/** A stretch of a rendered query, and where it comes from: a value stands for the whole action that named it. */
type Piece = { readonly text: string; readonly at: number; readonly isValue: boolean }

/**
 * Renders a query that is written as a Go template with Flagger's functions. Of Go's template language it reads what
 * queries use: functions, variables and comments. Whatever else there is, and a variable that is not set, is a problem:
 * a query that is half rendered would measure something else. `{{ target }}-canary` is the Service of the new revision,
 * as in Flagger, where the Service is called after the target.
 */
export function renderQuery(query: string, values: QueryValues): Rendered {
  const pieces = piecesOf(query, values)
  return "problem" in pieces
    ? { ok: false, problem: pieces.problem }
    : { ok: true, text: pieces.map(({ text }) => text).join("") }
}

/** Where in the query the character of its rendered text stands. */
export function placeInQuery(query: string, values: QueryValues, offset: number): string {
  const pieces = piecesOf(query, values)
  let left = offset
  for (const { text, at, isValue } of "problem" in pieces ? [] : pieces) {
    if (left < text.length) return placeOf(query, isValue ? at : at + left)
    left -= text.length
  }
  return placeOf(query, query.trimEnd().length)
}

function piecesOf(query: string, values: QueryValues): readonly Piece[] | { readonly problem: string } {
  const pieces: Piece[] = []
  let end = 0
  let trimsNext = false
  const between = (until: number, trimsEnd: boolean) => {
    const whole = query.slice(end, until)
    const text = trimsNext ? whole.trimStart() : whole
    pieces.push({ text: trimsEnd ? text.trimEnd() : text, at: end + whole.length - text.length, isValue: false })
  }
  for (const found of query.matchAll(action)) {
    const [whole, before, inner = "", after] = found
    const isService = inner.trim() === "target" && serviceSuffix.test(query.slice(found.index + whole.length))
    const read = rendered(isService ? "service" : inner.trim(), values)
    if (!read.ok) return { problem: `{{ ${inner.trim()} }} at ${placeOf(query, found.index)}: ${read.problem}` }
    between(found.index, before !== undefined)
    end = found.index + whole.length
    pieces.push({ text: read.text, at: found.index, isValue: true })
    trimsNext = after !== undefined
  }
  const open = query.indexOf("{{", end)
  if (open >= 0) return { problem: `{{ at ${placeOf(query, open)} is not closed by }}` }
  between(query.length, false)
  return pieces
}

function rendered(inner: string, values: QueryValues): Rendered {
  if (comment.test(inner)) return { ok: true, text: "" }
  const value = isFunction(inner) ? values[inner] : undefined
  if (value !== undefined) return { ok: true, text: value }
  const name = variable.exec(inner)?.[1] ?? indexed.exec(inner)?.[1]
  const known = functions.filter(each => values[each] !== undefined).join(", ")
  if (name === undefined) return { ok: false, problem: `a query can name ${known} and variables.NAME here` }
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
  const ofSource = renderQuery(swapped, { ...values, target: source ?? "", revision: sourceRevision ?? "" })
  const ofTarget = renderQuery(query, values)
  return ofSource.ok && ofTarget.ok && ofSource.text === ofTarget.text ? undefined : ofSource
}
