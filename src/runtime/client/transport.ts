/**
 * The one interface below the client. HTTPS implements it in production, the in-process cluster in the demo and the
 * simulation, a hostile server in the tests; nothing above knows which.
 */
export type Transport = {
  /**
   * Sends one request. Resolves when the status line has arrived; the body then streams. Rejects with a `NotSent` if
   * the server certainly never saw the request, with any other error if it may have.
   */
  send(request: Request): Promise<Response>
  /** Ends idle connections. Requests under way are ended by their signals. */
  close(): void
}

export type Request = {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE"
  /** Path and query, already encoded. */
  path: string
  headers: Record<string, string>
  body?: string | undefined
  signal: AbortSignal
  /**
   * Called synchronously right before the first byte leaves, on an open connection. If it throws, nothing is sent. This
   * catches a deposed leader that was stopped in between.
   */
  guard?: (() => void) | undefined
  /** The answer streams for minutes (a watch): it must not take a connection that short requests wait for. */
  longLived?: boolean
  /** Other requests must not delay it (the Lease): it has connections that no other request takes. */
  isUrgent?: boolean | undefined
}

export type Response = {
  status: number
  /** Names in lower case. */
  headers: Record<string, string | undefined>
  /** Read once. When the request's signal is aborted it ends with an error, also for a read that is already waiting. */
  body: AsyncIterable<Uint8Array>
}

/** The request did not leave this process, so any request may be repeated. */
export class NotSent extends Error {
  override name = "NotSent"
}
