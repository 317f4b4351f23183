import { pino } from "pino"
import { withoutControls } from "#lib/text.ts"
import { type Clock, systemClock } from "./clock.ts"

/** Structured logs: a sentence and its facts. Objects from the cluster are never logged whole. */
export type Logger = {
  debug(message: string, facts?: Record<string, unknown>): void
  info(message: string, facts?: Record<string, unknown>): void
  warn(message: string, facts?: Record<string, unknown>): void
  error(message: string, facts?: Record<string, unknown>): void
  with(facts: Record<string, unknown>): Logger
}

const logLevels = ["debug", "info", "warn", "error", "silent"] as const
export type LogLevel = (typeof logLevels)[number]
type Level = Exclude<LogLevel, "silent">

export type LogOptions = {
  level?: LogLevel
  /** JSON lines for machines, text for people; by default text on a terminal only. */
  format?: "json" | "text"
  /** Receives each line, with its newline. By default standard error: the stdout of a command holds only its data. */
  write?: (line: string) => void
  /** ANSI colours in text; by default on a terminal. */
  colour?: boolean
  clock?: Clock
}

export function createLogger(options: LogOptions = {}): Logger {
  const { level = "info", clock = systemClock } = options
  const terminal = !options.write && process.stderr.isTTY === true
  const emit =
    (options.format ?? (terminal ? "text" : "json")) === "json"
      ? jsonLines(level, clock, options.write)
      : text(clock, options.write ?? (line => void process.stderr.write(line)), options.colour ?? terminal)
  const enabled = (wanted: Level) => logLevels.indexOf(wanted) >= logLevels.indexOf(level)

  const logger = (bound: Record<string, unknown>): Logger => {
    const at = (wanted: Level) => (message: string, facts?: Record<string, unknown>) => {
      if (enabled(wanted)) emit(wanted, withoutCredentials(message), { ...bound, ...clean(facts) })
    }
    return {
      debug: at("debug"),
      info: at("info"),
      warn: at("warn"),
      error: at("error"),
      with: facts => logger({ ...bound, ...clean(facts) }),
    }
  }
  return logger({})
}

type Emit = (level: Level, message: string, facts: Record<string, unknown>) => void

function jsonLines(level: LogLevel, clock: Clock, write?: (line: string) => void): Emit {
  const target = write
    ? { write }
    : pino.destination({ fd: 2, sync: true }) /* synchronous: the last line before an exit is the one that matters */
  const logger = pino(
    {
      level,
      base: null,
      messageKey: "message",
      timestamp: () => `,"time":"${new Date(clock.now()).toISOString()}"`,
      formatters: { level: label => ({ level: label }) },
    },
    target,
  )
  return (wanted, message, facts) => logger[wanted](facts, message)
}

const colours: Record<Level, string> = { debug: "\x1b[2m", info: "\x1b[36m", warn: "\x1b[33m", error: "\x1b[31m" }

function text(clock: Clock, write: (line: string) => void, coloured: boolean): Emit {
  const paint = (colour: string, word: string) => (coloured ? `${colour}${word}\x1b[0m` : word)
  return (level, message, facts) => {
    const time = new Date(clock.now()).toISOString().slice(11, 19)
    const words = [paint("\x1b[2m", time), paint(colours[level], level.toUpperCase().padEnd(5)), printable(message)]
    for (const [name, value] of Object.entries(facts)) {
      words.push(`${paint("\x1b[2m", `${name}=`)}${isErrorFact(value) ? plain(chain(value)) : plain(value)}`)
    }
    write(`${words.join(" ")}\n`)
  }
}

const plain = (value: unknown) =>
  typeof value === "string" && /^[\w./:@+-]+$/.test(value) ? value : printable(JSON.stringify(value) ?? "undefined")

/** A message may quote the cluster. It must not move a terminal's cursor or fake a second line. */
const printable = (words: string) => withoutControls(words, " ")

const chain = (error: ErrorFact): string => (error.cause ? `${error.message}: ${chain(error.cause)}` : error.message)

export type ErrorFact = {
  type: string
  message: string
  /** Of a KubeError or a system error: the kind that callers decide by. */
  kind?: string
  status?: number
  code?: string
  stack?: string
  cause?: ErrorFact
}

const isErrorFact = (value: unknown): value is ErrorFact =>
  typeof value === "object" && value !== null && "type" in value && "message" in value

/** An error as facts, with its chain of causes. Only the innermost stack is kept: it shows where the error began. */
function errorFact(error: unknown, depth = 0): ErrorFact {
  if (!(error instanceof Error)) return { type: typeof error, message: bounded(withoutCredentials(String(error))) }
  const { kind, status, code } = error as { kind?: unknown; status?: unknown; code?: unknown }
  const fact: ErrorFact = { type: error.name, message: bounded(withoutCredentials(error.message)) }
  if (typeof kind === "string") fact.kind = kind
  if (typeof status === "number") fact.status = status
  if (typeof code === "string") fact.code = code
  if (error.cause !== undefined && error.cause !== null && depth < 8) fact.cause = errorFact(error.cause, depth + 1)
  else if (error.stack) fact.stack = bounded(withoutCredentials(error.stack))
  return fact
}

/** Names of facts that hold credentials, whichever code logs them. */
const credential = /authorization|token|password|passwd|secret|credential|cookie|private.?key|dockerconfig/i

/** Keeps facts small, flat enough to read, and free of credentials: logs are read by more people than Secrets. */
function clean(facts: Record<string, unknown> = {}): Record<string, unknown> {
  return tidyEntries(facts, 0)
}

function tidyEntries(object: object, depth: number): Record<string, unknown> {
  const entries = Object.entries(object).slice(0, 50)
  return Object.fromEntries(
    entries.map(([name, value]) => [
      name,
      credential.test(name) && typeof value !== "number" && typeof value !== "boolean"
        ? "[redacted]"
        : tidy(value, depth + 1),
    ]),
  )
}

function tidy(value: unknown, depth: number): unknown {
  if (typeof value === "string") return bounded(withoutCredentials(value))
  if (typeof value === "bigint" || typeof value === "symbol") return String(value)
  if (typeof value === "function") return "[function]"
  if (value instanceof Error) return errorFact(value)
  if (typeof value !== "object" || value === null) return value
  if (depth > 4) return "[…]"
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? "[no date]" : value.toISOString()
  if (value instanceof Map) return tidyEntries(Object.fromEntries(value), depth)
  if (Array.isArray(value) || value instanceof Set) {
    const items = [...value]
    const shown = items.slice(0, 20).map(item => tidy(item, depth + 1))
    return items.length > 20 ? [...shown, `… ${items.length - 20} more`] : shown
  }
  return tidyEntries(value, depth)
}

const lengthMax = 4096
const bounded = (words: string) => (words.length > lengthMax ? `${words.slice(0, lengthMax)}…` : words)

/** Removes Bearer and Basic headers, and passwords in URLs, wherever they are quoted. */
const withoutCredentials = (words: string) =>
  words
    .replace(/\b(Bearer|Basic)\s+[\w.~+/-]{8,}=*/gi, "$1 [redacted]")
    .replace(/\beyJ[\w-]{8,}\.[\w-]+\.[\w-]+/g, "[redacted]")
    .replace(/(\w:\/\/)[^\s/:@]+:[^\s/@]+@/g, "$1[redacted]@")
