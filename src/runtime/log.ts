/** Structured logs: a sentence and the facts beside it. Objects from the cluster are never logged whole. */
export type Logger = {
  debug(message: string, facts?: Record<string, unknown>): void
  info(message: string, facts?: Record<string, unknown>): void
  warn(message: string, facts?: Record<string, unknown>): void
  error(message: string, facts?: Record<string, unknown>): void
  with(facts: Record<string, unknown>): Logger
}
