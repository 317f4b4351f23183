/**
 * Everything that can go wrong with a request, in the few kinds that callers decide by. What matters for a write is
 * whether it may have been applied: only `UnknownOutcome` leaves that open.
 */
export type FailureKind =
  | "Conflict" // 409: the precondition no longer holds; look again
  | "Exists" // 409 AlreadyExists
  | "Gone" // 410: this resourceVersion or continue token is too old; list again
  | "NotFound" // 404
  | "Invalid" // 400, 405, 406, 413, 415, 422: asking again will not help
  | "Forbidden" // 401, 403
  | "Refused" // admission denied it under another code, or could not be asked: certainly not applied
  | "Throttled" // 429: certainly not applied
  | "Unreachable" // the server was not reached, or a read failed: certainly nothing applied
  | "UnknownOutcome" // a write was sent and its answer is missing or is a 5xx: it may be applied, even later
  | "WritesRefused" // this process may not write any more (it is not, or no longer, the leader)

export type Cause = { field?: string; reason?: string; message?: string }

export class KubeError extends Error {
  override name = "KubeError"
  readonly kind: FailureKind
  /** HTTP status, where there was one. */
  readonly status: number | undefined
  /** The server's reason, e.g. `AlreadyExists`. */
  readonly reason: string | undefined
  readonly causes: readonly Cause[]
  /** The server's own message; the whole message where there was none. */
  readonly said: string
  readonly retryAfterMs: number | undefined

  constructor(
    kind: FailureKind,
    message: string,
    details: {
      status?: number | undefined
      reason?: string | undefined
      causes?: readonly Cause[]
      said?: string | undefined
      retryAfterMs?: number | undefined
      cause?: unknown
    } = {},
  ) {
    super(message, { cause: details.cause })
    this.kind = kind
    this.status = details.status
    this.reason = details.reason
    this.causes = details.causes ?? []
    this.said = details.said || message
    this.retryAfterMs = details.retryAfterMs
  }
}

export const isFailure = (error: unknown, ...kinds: FailureKind[]): error is KubeError =>
  error instanceof KubeError && kinds.includes(error.kind)

/** A webhook that admission requires did not answer, or its answer was invalid. */
export const saysWebhookFailed = (said: string) => said.startsWith('Internal error occurred: failed calling webhook "')
