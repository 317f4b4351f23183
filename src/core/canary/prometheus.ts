import { clip, withoutControls } from "#lib/text.ts"
import type { Answer } from "./verdict.ts"

/** What a Prometheus sent to `/api/v1/query`. */
export type Reply = {
  readonly status: number
  readonly body: string
  /** The question had credentials: the reply may hold them, and others read what is made of it. */
  readonly isSecret: boolean
}

const quoteLength = 160
/** No selector of ours gives as many; more of them say nothing more. */
const labelsMost = 32

/** Reads the reply. Whatever it is, the result is an answer: numbers, or a sentence on why there are none. */
export function answerOf({ status, body, isSecret }: Reply): Answer {
  const quoted = (text: unknown) =>
    isSecret || typeof text !== "string" || text === ""
      ? ""
      : `: ${clip(withoutControls(text.slice(0, 4 * quoteLength), " ").trim(), quoteLength)}`
  const no = (message: string): Answer => ({ ok: false, message })
  const isSuccess = status >= 200 && status < 300
  const reply = parsed(body)
  if (isObject(reply) && reply.status === "error")
    return no(`the metric service refused the query (${kindOf(reply.errorType) ?? status})${quoted(reply.error)}`)
  if (!isSuccess) return no(`the metric service answered ${status}${status === 401 || status === 403 ? denied : ""}`)
  if (!isObject(reply) || reply.status !== "success" || !isObject(reply.data))
    return no("the metric service did not answer as Prometheus does: is its address right?")
  if (Array.isArray(reply.warnings) && reply.warnings.length > 0)
    return no(`the metric service says that its answer may be incomplete${quoted(reply.warnings[0])}`)
  const { resultType, result } = reply.data
  if (resultType === "scalar") return seriesOf([{ metric: {}, value: result }], isSecret)
  if (resultType === "vector" && Array.isArray(result)) return seriesOf(result, isSecret)
  if (resultType === "matrix") return no("the query gave a range of values: it must give one number, as with rate()")
  if (resultType === "string") return no("the query gave a text: it must give one number")
  return no("the metric service did not answer as Prometheus does: its result has no type that is known")
}

const denied = ": write credentials to a Secret, and name it with secretRef"

function seriesOf(result: readonly unknown[], isSecret: boolean): Answer {
  const series: { labels: Record<string, string>; value: number }[] = []
  for (const each of result) {
    if (isObject(each) && "histogram" in each)
      return { ok: false, message: "the query gave a histogram: it must give one number, as with histogram_quantile()" }
    const value = isObject(each) && Array.isArray(each.value) ? numberOf(each.value[1]) : undefined
    if (value === undefined) return { ok: false, message: "the metric service gave a value that is no number" }
    series.push({ labels: isSecret ? {} : labelsOf((each as { metric?: unknown }).metric), value })
  }
  return { ok: true, series }
}

/** As Prometheus and other programs in Go write numbers in a text. JavaScript would read "" as 0 and "0x10" as 16. */
export function numberOf(text: unknown): number | undefined {
  if (text === "NaN") return Number.NaN
  if (text === "+Inf" || text === "Inf") return Number.POSITIVE_INFINITY
  if (text === "-Inf") return Number.NEGATIVE_INFINITY
  return typeof text === "string" && /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text) ? Number(text) : undefined
}

/** Names and values that a message may hold. */
export function labelsOf(metric: unknown): Record<string, string> {
  if (!isObject(metric)) return {}
  const plain = Object.entries(metric).filter(
    ([name, value]) => /^[A-Za-z_][A-Za-z0-9_]{0,63}$/.test(name) && typeof value === "string",
  )
  return Object.fromEntries(plain.slice(0, labelsMost).map(([name, value]) => [name, clip(value as string, 64)]))
}

/** Prometheus' own words for errors. Any other word would be the server's text. */
const kinds = new Set([
  ...["timeout", "canceled", "execution", "bad_data", "internal", "unavailable", "not_found", "not_acceptable"],
])
const kindOf = (text: unknown) => (typeof text === "string" && kinds.has(text) ? text : undefined)

function parsed(body: string): unknown {
  try {
    return JSON.parse(body)
  } catch {
    return undefined
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value)
