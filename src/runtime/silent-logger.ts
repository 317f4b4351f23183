import type { Logger } from "./log.ts"

const nothing = () => {}

/** Writes nothing: for tests and for callers that have no log. It does not load the logging library. */
export const silentLogger: Logger = {
  debug: nothing,
  info: nothing,
  warn: nothing,
  error: nothing,
  with: () => silentLogger,
}
