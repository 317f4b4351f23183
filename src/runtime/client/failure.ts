import { type Cause, type FailureKind, KubeError, saysWebhookFailed } from "./errors.ts"

/** The parts of an answer that matter for a failure. */
type Answer = { status: number; headers: Record<string, string | undefined>; body: string }

type Told = { message?: string; reason?: string; causes: Cause[]; retryAfterMs?: number | undefined }

/** The quoted text comes from the server: enough of it to understand, too little to fill a log. */
const maxMessage = 2_000
const maxCauses = 16
const maxQuote = 200

/** The error for an answer that is not a 2xx. `doing` reads as in "creating pods web/a". */
export function failureOf(doing: string, isWrite: boolean, { status, headers, body }: Answer, now: number): KubeError {
  const told = readStatus(body)
  const kind = kindOf(status, told, isWrite)
  const retryAfterMs = retryAfter(headers["retry-after"], now) ?? told.retryAfterMs
  const word = told.reason ? `${status} ${told.reason}` : `${status}`
  const message = [`${doing}: ${word}`, told.message, extraCauses(told)].filter(Boolean).join(": ")
  const { reason, causes, message: said } = told
  return new KubeError(kind, clip(message), { status, reason, causes, said: said && clip(said), retryAfterMs })
}

function kindOf(status: number, { reason, message = "" }: Told, isWrite: boolean): FailureKind {
  if (isWrite && !isPlain.has(status) && isByAdmission(message)) return "Refused"
  if (status >= 500) return isWrite ? "UnknownOutcome" : "Unreachable"
  switch (status) {
    case 401:
    case 403:
      return "Forbidden"
    case 404:
      return "NotFound"
    case 409:
      return reason === "AlreadyExists" ? "Exists" : "Conflict"
    case 410:
      return "Gone"
    case 429:
      return "Throttled"
    default:
      return "Invalid" // also redirects: a server that sends one is not the configured API server
  }
}

/** These codes mean the same, whether admission or the server itself answers. */
const isPlain = new Set([400, 401, 403, 405, 406, 413, 415, 422])

/**
 * Admission comes before the store, so a write that it refuses is not applied, whatever the code. A webhook chooses the
 * code of its denial: a 409, 429 or 500 would make us repeat the write without end. Only the server's own words at the
 * beginning count: the webhook writes the rest.
 */
const isByAdmission = (said: string) =>
  saysWebhookFailed(said) || /^admission webhook "[^"]*" denied the request/.test(said)

/** A Kubernetes Status, or the text of a proxy in between. */
function readStatus(body: string): Told {
  let status: unknown
  try {
    status = JSON.parse(body)
  } catch {
    return { message: oneLine(body), causes: [] }
  }
  if (!isRecord(status) || status.kind !== "Status") return { message: oneLine(body), causes: [] }
  const details = isRecord(status.details) ? status.details : {}
  const causes = Array.isArray(details.causes) ? details.causes.filter(isRecord).slice(0, maxCauses) : []
  return {
    ...(typeof status.message === "string" && { message: withoutLongQuotes(status.message) }),
    ...(typeof status.reason === "string" && status.reason && { reason: clip(status.reason, 100) }),
    causes: causes.map(({ field, reason, message }) => ({
      ...(typeof field === "string" && { field: clip(field, 200) }),
      ...(typeof reason === "string" && { reason: clip(reason, 100) }),
      ...(typeof message === "string" && { message: clip(withoutLongQuotes(message), 500) }),
    })),
    ...(typeof details.retryAfterSeconds === "number" && { retryAfterMs: details.retryAfterSeconds * 1000 }),
  }
}

/**
 * A strict server refuses a patch with the whole patched object as its "Invalid value", secrets in its environment
 * included. The actual error comes only after that.
 */
function withoutLongQuotes(text: string): string {
  let shortened = ""
  let at = 0
  for (let open = text.indexOf('"'); open >= 0; open = text.indexOf('"', at)) {
    let close = open + 1
    while (close < text.length && text[close] !== '"') close += text[close] === "\\" ? 2 : 1
    const isLong = close - open > maxQuote
    shortened += text.slice(at, open) + (isLong ? '"…"' : text.slice(open, close + 1))
    at = close + 1
  }
  return shortened + text.slice(at)
}

/** The message usually contains its causes already; the missing ones are added. */
function extraCauses({ message = "", causes }: Told): string {
  const unsaid = causes.filter(cause => cause.message && !message.includes(cause.message))
  return unsaid.map(cause => (cause.field ? `${cause.field}: ${cause.message}` : cause.message)).join("; ")
}

/** Seconds, or a date as RFC 9110 also allows. */
function retryAfter(header: string | undefined, now: number): number | undefined {
  if (header === undefined) return undefined
  if (/^\d{1,6}$/.test(header.trim())) return Number(header) * 1000
  const at = Date.parse(header)
  return Number.isNaN(at) ? undefined : Math.max(0, at - now)
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value)
const clip = (text: string, max = maxMessage) => (text.length > max ? `${text.slice(0, max)}…` : text)
const oneLine = (text: string) => clip(text.replace(/\s+/g, " ").trim(), 200)
