import { numberOf } from "../prometheus.ts"

/** An answer that is no JSON, as the values of its series; `isWhole` is false where it has no end, or says that it failed. */
type Read = { readonly isWhole: boolean; readonly series: readonly (readonly (number | null)[])[] }

/** The messages of SignalFlow, as events of a server: each has a type and JSON over one line or several. */
export function signalFlow(body: string): Read | undefined {
  const series = new Map<string, Values>()
  let [isEnded, isFailed] = [false, false]
  for (const message of body.split(/\r?\n\r?\n/)) {
    const lines = message.split(/\r?\n/)
    const field = (name: string) =>
      lines.filter(line => line.startsWith(`${name}:`)).map(line => line.slice(name.length + 1).trimStart())
    const data = field("data").join("\n")
    if (data === "") continue
    const said = objectIn(data)
    if (!said) return undefined
    const [type] = field("event")
    if (type === "error" || said.event === "CHANNEL_ABORT") isFailed = true
    if (said.event === "END_OF_CHANNEL") isEnded = true
    if (type !== "data") continue
    if (!Array.isArray(said.data)) return undefined
    for (const each of said.data) {
      if (typeof each?.tsId !== "string") return undefined
      add(series, each.tsId, typeof each.value === "number" ? each.value : null)
    }
  }
  return series.size === 0 && !isEnded && !isFailed
    ? undefined
    : { isWhole: isEnded && !isFailed, series: [...series.values()] }
}

function objectIn(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}

/**
 * Tables of InfluxDB in CSV. A row of names begins each, `result` and `table` among them, and an empty line stands before
 * the next one with other names. A query that fails on the way ends with a table of errors.
 */
export function influxTables(body: string): Read | undefined {
  const series = new Map<string, Values>()
  let names: readonly string[] | undefined
  const rows = rowsOf(body)
  for (const row of rows ?? []) {
    if (row.length <= 1 && !row[0]) {
      names = undefined
      continue
    }
    if (row[0]?.startsWith("#")) continue
    if (!names) {
      names = row
      if (names.includes("error")) return { isWhole: false, series: [] }
      if (!names.includes("table") || !names.includes("_value")) return undefined
      continue
    }
    const cell = (name: string) => row[names!.indexOf(name)] ?? ""
    const text = cell("_value")
    const value = text === "" ? null : numberOf(text)
    if (value === undefined) return undefined
    add(series, `${cell("result")} ${cell("table")}`, value)
  }
  return rows && { isWhole: true, series: [...series.values()] }
}

type Values = (number | null)[]

function add(series: Map<string, Values>, key: string, value: number | null) {
  const values = series.get(key)
  if (values) values.push(value)
  else series.set(key, [value])
}

/** Undefined: it is no CSV. Cells within quotes may hold commas, quotes twice, and the end of a line. */
function rowsOf(body: string): string[][] | undefined {
  const rows: string[][] = []
  let row: string[] = []
  const cell = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r?\n|$)/y
  while (cell.lastIndex < body.length || row.length > 0) {
    const found = cell.exec(body)
    if (!found) return undefined
    const [, quoted, plain = "", end] = found
    row.push(quoted === undefined ? plain : quoted.replaceAll('""', '"'))
    if (end === ",") continue
    rows.push(row)
    row = []
  }
  return rows
}
