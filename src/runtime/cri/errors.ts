/** Everything that can go wrong with a call to the runtime, in the few kinds that callers decide by. */
export type RuntimeFailure =
  /**
   * Nothing listens at the socket. The socket is mounted as one file: once the runtime has restarted, the mount leads to
   * the old socket and never works again. Only a new mount helps, so the agent ends and the kubelet starts it anew. It
   * was certainly not applied.
   */
  | "SocketDead"
  /** No answer in time, or the connection was lost during the call. Whether it was applied is unknown: look, then repeat. */
  | "Unavailable"
  /** The container (execSync), or the tag, the digest or an image for this platform at the registry (pullImage). */
  | "NotFound"
  /** The command of execSync ran over its time-out and was killed. */
  | "DeadlineExceeded"
  /** Any other refusal; the message is the runtime's. */
  | "Failed"

export class RuntimeError extends Error {
  override name = "RuntimeError"
  readonly kind: RuntimeFailure
  /** The runtime's own message; the whole message where there was none. */
  readonly said: string

  /** `doing` reads as in "stopping container 1234". */
  constructor(kind: RuntimeFailure, doing: string, details: { said: string; cause?: unknown }) {
    super(`${doing}: ${details.said}`, { cause: details.cause })
    this.kind = kind
    this.said = details.said
  }
}

export const isRuntimeFailure = (error: unknown, ...kinds: RuntimeFailure[]): error is RuntimeError =>
  error instanceof RuntimeError && kinds.includes(error.kind)
