import type * as http from "node:http"
import type { Duplex } from "node:stream"
import { request } from "#lib/http.ts"
import { timedOut } from "./connect.ts"
import type { Endpoint } from "./endpoint.ts"
import { type Failure, failure } from "./failure.ts"

export type Question = {
  method: "HEAD" | "GET" | "POST"
  path: string
  headers: http.OutgoingHttpHeaders
  body?: string
  /** Called when the head of the answer has arrived. Without a reader the body is not needed, and is not read. */
  read: (answer: Answer) => BodyReader | undefined
}

/** Takes a body piece by piece. Nothing else keeps it: tenants choose the servers, and many are asked at once. */
export type BodyReader = {
  take: (piece: Buffer) => void
  /** The longest body that is read. A longer one is an invalid answer, unless its beginning is enough. */
  maxBytes: number
  isBeginningEnough?: true
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
  { method, path, headers, body, read }: Question,
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
      headers: {
        ...headers,
        host: authority,
        "accept-encoding": "identity",
        ...(body !== undefined && { "content-length": Buffer.byteLength(body) }),
      },
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
      const answer = { ok: true as const, status, headers }
      const reader = method === "HEAD" ? undefined : read(answer)
      if (!reader) return end(answer)
      if (headers["content-encoding"] !== undefined) return invalid("answers in an encoding that was not asked for")
      const { take, maxBytes, isBeginningEnough } = reader
      const tooLong = () => (isBeginningEnough ? end(answer) : invalid(`answers with more than ${maxBytes} bytes`))
      if (!isBeginningEnough && Number(headers["content-length"]) > maxBytes) return tooLong()
      let left = maxBytes
      incoming.on("data", (piece: Buffer) => {
        if (left < 0) return
        if (left >= piece.length || isBeginningEnough) take(piece.subarray(0, left))
        left -= piece.length
        if (left < 0) tooLong()
      })
      incoming.on("error", broken)
      incoming.on("end", () => end(answer))
    })
    outgoing.end(body)
  })
}
