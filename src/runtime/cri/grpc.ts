import { once } from "node:events"
import * as http2 from "node:http2"
import { connect, type Socket } from "node:net"
import type { Clock } from "../clock.ts"
import { RuntimeError, type RuntimeFailure } from "./errors.ts"

/** A gRPC connection over a unix socket, for calls with one request and one answer. */
export type GrpcChannel = {
  /** Gives the bytes of the answer, or throws a `RuntimeError` or the signal's reason. */
  call(call: GrpcCall): Promise<Buffer>
  close(): void
}

export type GrpcCall = {
  /** `/package.Service/Method`. */
  path: string
  message: Buffer
  /** Reads as in "stopping container 1234". */
  doing: string
  /** Infinite: no limit. */
  timeoutMs: number
  signal?: AbortSignal | undefined
  headers?: Record<string, string>
  /** What the runtime's refusal means; by default the meaning that its code has in gRPC. */
  meaning?: (code: number) => RuntimeFailure
}

/** Longer answers are refused: a node's containers and images fit many times. */
const maxAnswerBytes = 16 * 1024 * 1024
/** The runtime quotes registries: enough of it to understand, too little to fill a log. */
const maxSaid = 2_000

/** The socket's file leads to nothing, or not to us. Waiting does not change that for a file that is mounted. */
const deadCodes = new Set(["ECONNREFUSED", "ENOENT", "ENOTSOCK", "EACCES", "EPERM"])

/** Connects with the first call, and again with the first call after the connection was lost. */
export function openChannel(options: { socketPath: string; clock: Clock }): GrpcChannel {
  const { socketPath, clock } = options
  let opening: Promise<http2.ClientHttp2Session> | undefined
  let session: http2.ClientHttp2Session | undefined

  const open = async () => {
    const opened = await openSession(socketPath)
    opened.once("close", () => {
      if (session === opened) session = opening = undefined
    })
    session = opened
    return opened
  }
  const current = () => {
    // A session that was told to go away finishes its calls and takes no new ones.
    if (session && (session.closed || session.destroyed)) session = opening = undefined
    opening ??= open().catch(error => {
      opening = undefined
      throw error
    })
    return opening
  }

  return {
    async call(call) {
      call.signal?.throwIfAborted()
      const connected = await current().catch(error => {
        const kind = deadCodes.has(error.code) ? "SocketDead" : "Unavailable"
        throw new RuntimeError(kind, call.doing, { said: error.message, cause: error })
      })
      call.signal?.throwIfAborted()
      return await exchange(connected, call, clock)
    },
    close() {
      session?.destroy()
      session = opening = undefined
    },
  }
}

/** The connection is made first and by itself, so that its failure is not mistaken for one of a call. */
async function openSession(socketPath: string): Promise<http2.ClientHttp2Session> {
  const socket: Socket = connect(socketPath)
  await once(socket, "connect")
  const session = http2.connect("http://localhost", { createConnection: () => socket })
  // Each call reports its own failure; without a listener the process would end.
  session.on("error", () => {})
  return session
}

function exchange(session: http2.ClientHttp2Session, call: GrpcCall, clock: Clock): Promise<Buffer> {
  const { doing, signal, timeoutMs } = call
  return new Promise((resolve, reject) => {
    const stream = session.request(
      { ":method": "POST", ":path": call.path, "content-type": "application/grpc", te: "trailers", ...call.headers },
      { endStream: false },
    )
    const answer = new Answer()
    const settle = (end: () => void) => {
      cancelTimer()
      signal?.removeEventListener("abort", onAbort)
      end()
      // Closing a stream that has ended does nothing; otherwise it informs the runtime that the caller is gone.
      stream.close(http2.constants.NGHTTP2_CANCEL)
    }
    const fail = (kind: RuntimeFailure, said: string, cause?: unknown) =>
      settle(() => reject(new RuntimeError(kind, doing, { said, cause })))
    const onAbort = () => settle(() => reject(signal?.reason))
    // The deadline is ours alone: a runtime that is given one may end the stream without a status when it passes.
    const cancelTimer =
      timeoutMs === Number.POSITIVE_INFINITY
        ? () => {}
        : clock.after(timeoutMs, () => fail("Unavailable", `no answer within ${timeoutMs / 1000} s`))
    signal?.addEventListener("abort", onAbort, { once: true })

    stream.on("response", headers => answer.takeHeaders(headers))
    stream.on("trailers", trailers => answer.takeHeaders(trailers))
    stream.on("data", (part: Buffer) => {
      if (!answer.takeData(part)) fail("Failed", `the answer is longer than ${maxAnswerBytes} bytes`)
    })
    let cause: unknown
    stream.on("error", error => {
      cause = error
    })
    stream.on("close", () => {
      const { status, said } = answer
      if (status === undefined) fail("Unavailable", "the connection was lost before the answer was complete", cause)
      else if (status !== 0) fail((call.meaning ?? meaningOf)(status), said || `gRPC status ${status}`)
      else {
        const message = answer.message()
        if (message) settle(() => resolve(message))
        else fail("Unavailable", "the answer is incomplete")
      }
    })
    stream.end(framed(call.message))
  })
}

/** What came back so far. For an error the status may stand in the first headers instead of the trailers. */
class Answer {
  status: number | undefined
  said = ""
  #parts: Buffer[] = []
  #length = 0

  takeHeaders(headers: http2.IncomingHttpHeaders): void {
    const status = headers["grpc-status"]
    if (status !== undefined) this.status = Number(status)
    const said = headers["grpc-message"]
    if (typeof said === "string") this.said = decodePercent(said).slice(0, maxSaid)
  }

  takeData(part: Buffer): boolean {
    this.#length += part.length
    this.#parts.push(part)
    return this.#length <= maxAnswerBytes + frameHeaderBytes
  }

  /** The one message: a byte that says whether it is compressed, four bytes of length, and the bytes. */
  message(): Buffer | undefined {
    const body = Buffer.concat(this.#parts)
    if (body.length < frameHeaderBytes || body[0] !== 0) return undefined
    const end = frameHeaderBytes + body.readUInt32BE(1)
    return body.length === end ? body.subarray(frameHeaderBytes) : undefined
  }
}

const frameHeaderBytes = 5

function framed(message: Buffer): Buffer {
  const header = Buffer.alloc(frameHeaderBytes)
  header.writeUInt32BE(message.length, 1)
  return Buffer.concat([header, message])
}

/** gRPC's codes: 1 cancelled, 4 deadline exceeded, 5 not found, 14 unavailable. */
function meaningOf(code: number): RuntimeFailure {
  if (code === 5) return "NotFound"
  if (code === 4) return "DeadlineExceeded"
  return code === 14 || code === 1 ? "Unavailable" : "Failed"
}

/** A message that is not well encoded is shown as it came. */
function decodePercent(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
