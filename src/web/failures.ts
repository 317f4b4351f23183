import { Failure, UsageError } from "#operations/refusal.ts"
import { KubeError } from "#runtime/client/errors.ts"
import { Refusal } from "./guard.ts"
import { shown } from "./text.ts"
import type { ErrorAnswer } from "./wire.ts"

/** Every failure has words. Those of the API server are passed on; a bug of ours is named as one, without its stack. */
export function answerTo(error: unknown): [number, ErrorAnswer] {
  if (error instanceof Refusal) return [error.status, error.answer]
  const nothing = "Nothing was changed."
  if (error instanceof UsageError)
    return [400, { error: "BadRequest", message: shown(error.message, 2048), done: nothing }]
  if (error instanceof Failure) {
    const isMissing = /^there is no /.test(error.message)
    const meant = /did you mean (\S+)\?/.exec(error.message)?.[1]
    return [
      isMissing ? 404 : 409,
      {
        error: isMissing ? "NotFound" : "Refused",
        message: shown(error.message, 2048),
        done: nothing,
        ...(meant && { meant: shown(meant) }),
      },
    ]
  }
  if (!(error instanceof KubeError))
    return [
      500,
      {
        error: "Other",
        message: "the dashboard's server has a bug: its log may say more",
        done: "It is not known whether anything was changed.",
      },
    ]
  const message = shown(error.said, 2048)
  const unknown = "It is not known whether it was done: look again before you repeat it."
  if (error.status === 401) return [401, { error: "TokenRefused", message, done: nothing }]
  switch (error.kind) {
    case "Conflict":
    case "Exists":
      return [409, { error: "Conflict", message, done: nothing }]
    case "Forbidden":
      return [403, { error: "Forbidden", message, done: nothing }]
    case "NotFound":
      return [404, { error: "NotFound", message, done: nothing }]
    case "Invalid":
    case "Refused":
      return [422, { error: "Refused", message, done: nothing }]
    case "Throttled":
      return [429, { error: "TooManyRequests", message, done: nothing }]
    case "UnknownOutcome":
      return [504, { error: "Timeout", message, done: unknown }]
    default:
      return [502, { error: "Unreachable", message, done: nothing }]
  }
}
