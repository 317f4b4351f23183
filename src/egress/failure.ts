/** Why there is no connection, or no answer. Facts of the world, never thrown. */
export type Failure<Class = FailureClass> = {
  ok: false
  class: Class
  /** Our own words and host names. The other side's text is not repeated, since others read this in a status. */
  message: string
}

export type FailureClass =
  /** No name, no connection, or a connection that ended too early. */
  | "Unreachable"
  /** Its certificate or handshake cannot be trusted. */
  | "TLS"
  | "Timeout"
  /** A place that this program may not connect to unless an administrator allows it. */
  | "ForbiddenAddress"
  /** An answer that no server should give: no HTTP, or too much of it. */
  | "InvalidAnswer"

export const failure = <Class extends string>(kind: Class, message: string): Failure<Class> => ({
  ok: false,
  class: kind,
  message,
})
