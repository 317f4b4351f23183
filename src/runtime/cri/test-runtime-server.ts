import { once } from "node:events"
import { existsSync, mkdtempSync, rmSync } from "node:fs"
import * as http2 from "node:http2"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { decodeMessage, encodeMessage } from "#lib/protobuf.ts"
import { methods, table } from "./messages.generated.ts"

type Stream = http2.ServerHttp2Stream
/** Gives the message of an answer, at once or later, or answers on the stream itself and gives `undefined`. */
export type Answer = (request: Record<string, unknown>, stream: Stream, headers: http2.IncomingHttpHeaders) => unknown

/** A gRPC server on a unix socket that answers as a test says, for what no runtime can be made to answer. */
export async function serveRuntime(answers: Partial<Record<keyof typeof methods, Answer>>) {
  const folder = mkdtempSync(join(tmpdir(), "aim-cri-"))
  const socketPath = join(folder, "cri.sock")
  let server = await listen(socketPath, answers)
  return {
    socketPath,
    /** Ends the process that listens, as a crash would: connections break, and the socket's file stays. */
    async kill() {
      server.end()
      await server.closed
    },
    async start() {
      if (existsSync(socketPath)) rmSync(socketPath)
      server = await listen(socketPath, answers)
    },
    async close() {
      server.end()
      await server.closed
      rmSync(folder, { recursive: true })
    },
  }
}

async function listen(socketPath: string, answers: Partial<Record<string, Answer>>) {
  const server = http2.createServer()
  const sessions = new Set<http2.ServerHttp2Session>()
  server.on("session", session => {
    sessions.add(session)
    session.once("close", () => sessions.delete(session))
  })
  server.on("stream", async (stream: Stream, headers) => {
    stream.on("error", () => {})
    const [name, method] = Object.entries(methods).find(([, { path }]) => path === headers[":path"])!
    const parts: Buffer[] = []
    for await (const part of stream) parts.push(part)
    const request = decodeMessage(table, method.request, Buffer.concat(parts).subarray(5))
    const answer = answers[name]
    if (!answer) return refuse(stream, 12, `unknown method ${name}`)
    const message = await answer(request, stream, headers)
    if (message) succeed(stream, encodeMessage(table, method.response, message as object))
  })
  server.listen(socketPath)
  await once(server, "listening")
  const closed = new Promise<void>(resolve => server.once("close", () => resolve()))
  const end = () => {
    server.close()
    for (const session of sessions) session.destroy()
  }
  return { end, closed }
}

export function succeed(stream: Stream, message: Buffer): void {
  stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true })
  stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0", "grpc-message": "" }))
  const header = Buffer.alloc(5)
  header.writeUInt32BE(message.length, 1)
  stream.end(Buffer.concat([header, message]))
}

/** An error without a message: its status stands in the first headers, as Go's servers write it. */
export function refuse(stream: Stream, code: number, said: string): void {
  const status = { "grpc-status": String(code), "grpc-message": encodeURIComponent(said) }
  stream.respond({ ":status": 200, "content-type": "application/grpc", ...status }, { endStream: true })
}
