/**
 * The narrow waist below the client. HTTPS answers it in production, the in-process cluster in the demo and the
 * simulation, a hostile server in the tests; nothing above knows which.
 */
export type Transport = {
  /**
   * Sends one request. Resolves when the status line is there; the body then streams. Rejects with a `NotSent` if it
   * is certain that the server never saw the request, with any other error if it may have.
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
   * Called synchronously as the last thing before the first byte leaves, with the connection already there. If it
   * throws, nothing is sent. A deposed leader that was stopped in between is caught here.
   */
  guard?: (() => void) | undefined
  /** The answer streams for minutes (a watch): it must not take a connection that short requests wait for. */
  longLived?: boolean
  /** Others must not be able to hold it up (the Lease): it has connections that no other request takes. */
  isUrgent?: boolean | undefined
}

export type Response = {
  status: number
  /** Names in lower case. */
  headers: Record<string, string | undefined>
  /** Read once. Once the request's signal is aborted it ends with an error, also for a reader who waits already. */
  body: AsyncIterable<Uint8Array>
}

/** The request did not leave this process: repeating it is safe whatever it was. */
export class NotSent extends Error {
  override name = "NotSent"
}
