import type { Json } from "../object.ts"

type Step =
  | { field: string }
  | { index: number }
  | { from: number | undefined; to: number | undefined }
  | { all: true }
  | { where: { path: string[]; is: string; value: string | number | boolean } }

/** A parsed path of the simple kind that printer columns may have. */
export type Path = readonly Step[]

/** `.status.conditions[?(@.type=="Ready")].status`, `.spec.list[0].a`, `.metadata.labels.a\.b`. Undefined: not a path. */
export function parsePath(text: string): Path | undefined {
  const steps: Step[] = []
  let rest = text.startsWith(".") || text.startsWith("[") ? text : `.${text}`
  while (rest !== "") {
    const step = nextStep(rest)
    if (!step) return undefined
    steps.push(step.step)
    rest = rest.slice(step.length)
  }
  return steps
}

function nextStep(text: string): { step: Step; length: number } | undefined {
  const field = /^\.((?:\\.|[^.[\]\\])+)/.exec(text)
  if (field) return { step: { field: field[1]!.replaceAll(/\\(.)/g, "$1") }, length: field[0].length }
  const all = /^(?:\.\*|\[\*\])/.exec(text)
  if (all) return { step: { all: true }, length: all[0].length }
  const index = /^\[(-?\d+)\]/.exec(text)
  if (index) return { step: { index: Number(index[1]) }, length: index[0].length }
  const slice = /^\[(-?\d+)?:(-?\d+)?\]/.exec(text)
  if (slice) return { step: { from: bound(slice[1]), to: bound(slice[2]) }, length: slice[0].length }
  const quoted = /^\[(?:'([^']*)'|"([^"]*)")\]/.exec(text)
  if (quoted) return { step: { field: quoted[1] ?? quoted[2] ?? "" }, length: quoted[0].length }
  const where = /^\[\?\(@((?:\.(?:\\.|[^.=!<>\s\\])+)+)\s*(==|!=)\s*("[^"]*"|'[^']*'|[-\w.]+)\s*\)\]/.exec(text)
  if (!where) return undefined
  const path = where[1]!
    .slice(1)
    .split(/(?<!\\)\./)
    .map(each => each.replaceAll(/\\(.)/g, "$1"))
  return { step: { where: { path, is: where[2]!, value: literal(where[3]!) } }, length: where[0].length }
}

const bound = (text: string | undefined) => (text === undefined ? undefined : Number(text))

function literal(text: string): string | number | boolean {
  if (/^["']/.test(text)) return text.slice(1, -1)
  if (text === "true" || text === "false") return text === "true"
  return Number.isNaN(Number(text)) ? text : Number(text)
}

/** The values at the path; a filter or a star may find several. */
export function valuesAt(value: Json, path: Path): Json[] {
  let found = [value]
  for (const step of path) found = found.flatMap(each => stepInto(each, step))
  return found
}

function stepInto(value: Json, step: Step): Json[] {
  if (typeof value !== "object" || value === null) return []
  if ("field" in step) return Object.hasOwn(value, step.field) ? [value[step.field]] : []
  if ("all" in step) return Object.values(value)
  if (!Array.isArray(value)) return []
  if ("index" in step) return value.slice(step.index, step.index === -1 ? undefined : step.index + 1)
  if ("from" in step) return value.slice(step.from, step.to)
  const { path, is, value: wanted } = step.where
  return value.filter(item => {
    const actual = path.reduce((at, name) => at?.[name], item)
    return actual !== undefined && (actual === wanted) === (is === "==")
  })
}
