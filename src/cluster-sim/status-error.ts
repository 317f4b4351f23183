/** One thing wrong with one field, as the API server words it. */
export type Cause = { reason: string; message: string; field: string }

/** A refusal as the API server words it: becomes a `Status` object with this code. */
export class StatusError extends Error {
  override name = "StatusError"
  readonly code: number
  readonly reason: string
  readonly details: StatusDetails | undefined
  /** For a list that expired between two pages: the token to continue with. */
  continue?: string

  constructor(code: number, reason: string, message: string, details?: StatusDetails) {
    super(message)
    this.code = code
    this.reason = reason
    this.details = details
  }
}

export type StatusDetails = {
  name?: string
  group?: string
  kind?: string
  uid?: string
  causes?: Cause[]
  retryAfterSeconds?: number
}
