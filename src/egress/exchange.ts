import type * as http from "node:http"
import type { Duplex } from "node:stream"
import { request } from "#lib/http.ts"
import { timedOut } from "./connect.ts"
import type { Endpoint } from "./endpoint.ts"
import { type Failure, failure } from "./failure.ts"

export type Question = {
  method: "HEAD" | "GET"
  path: string
  headers: Record<string, string>
  /** The longest body that is read. */
  maxBytes: number
  /**
   * Takes the body of a GET that was answered with 200, piece by piece: bodies of other answers are not needed.
   * Nothing else keeps the body: tenants choose the servers, and many are asked at once.
   */
  read: (headers: http.IncomingHttpHeaders) => (piece: Buffer) => void
}

export type Answer = {
  ok: true
  status: number
  headers: http.IncomingHttpHeaders
}

const maxHeaderBytes = 16 * 1024

/**
 * One request over one connection, which ends with it. No pool, no agent and so no proxy from the environment: every
 * request goes to an address that was checked for it.
 */
export function exchange(
  socket: Duplex,
  { hostname, authority }: Endpoint,
  { method, path, headers, maxBytes, read }: Question,
  signal: AbortSignal,
): Promise<Answer | Failure> {
  return new Promise(resolve => {
    const end = (result: Answer | Failure) => {
      signal.removeEventListener("abort", abort)
      socket.destroy()
      resolve(result)
    }
    const abort = () => end(timedOut(hostname))
    const invalid = (what: string) => end(failure("InvalidAnswer", `${hostname} ${what}`))
    const broken = () => end(failure("Unreachable", `${hostname} ended the connection without a whole answer`))
    signal.addEventListener("abort", abort, { once: true })
    if (signal.aborted) return abort()

    const outgoing = request({
      createConnection: () => socket,
      method,
      path,
      headers: { host: authority, "accept-encoding": "identity", ...headers },
      maxHeaderSize: maxHeaderBytes,
    })
    outgoing.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "HPE_HEADER_OVERFLOW") invalid("answers with headers beyond all measure")
      else if (error.code?.startsWith("HPE_")) invalid("does not speak HTTP")
      else broken()
    })
    outgoing.on("close", broken)
    outgoing.on("response", incoming => {
      const { statusCode: status = 0, headers } = incoming
      if (method === "HEAD" || status !== 200) return end({ ok: true, status, headers })
      if (headers["content-encoding"] !== undefined) return invalid("answers in an encoding that was not asked for")
      const tooLong = () => invalid(`answers with more than ${maxBytes} bytes`)
      if (Number(headers["content-length"]) > maxBytes) return tooLong()
      const take = read(headers)
      let length = 0
      incoming.on("data", (piece: Buffer) => {
        length += piece.length
        if (length > maxBytes) return tooLong()
        take(piece)
      })
      incoming.on("error", broken)
      incoming.on("end", () => end({ ok: true, status, headers }))
    })
    outgoing.end()
  })
}
