import type * as http from "node:http"
import type { AddressInfo } from "node:net"
import { createServer, loadHttps } from "#lib/http.ts"
import type { Request, Transport } from "#runtime/client/index.ts"
import { StatusError } from "../status-error.ts"
import { protobufType, readProtobuf } from "./protobuf.ts"

export type ServeOptions = {
  /** 0: any free one. */
  port?: number
  /** Loopback unless told otherwise: there is no authentication worth the name. */
  host?: string
  tls?: { key: string; cert: string }
  /** Requests without it are answered 401. */
  token?: string
}

export type Serving = { url: string; port: number; close(): Promise<void> }

const maxBodyBytes = 3 << 20 // as the API server

/** The same server for people: over HTTP(S) on a socket of this machine. */
export async function serveHttp(transport: Transport, options: ServeOptions = {}): Promise<Serving> {
  const { port = 0, host = "127.0.0.1", tls, token } = options
  const listener: http.RequestListener = (incoming, outgoing) => {
    answer(transport, incoming, outgoing, token).catch(error => {
      // The head is out or the connection is gone: all that is left is to end it.
      outgoing.destroy(error instanceof Error ? error : undefined)
    })
  }
  const server = tls ? loadHttps().createServer(tls, listener) : createServer(listener)
  server.requestTimeout = 0 // a watch lasts as long as it lasts
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject)
    server.listen(port, host, resolve)
  })
  const bound = (server.address() as AddressInfo).port
  return {
    url: `${tls ? "https" : "http"}://${host.includes(":") ? `[${host}]` : host}:${bound}`,
    port: bound,
    close: () =>
      new Promise(resolve => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

async function answer(
  transport: Transport,
  incoming: http.IncomingMessage,
  outgoing: http.ServerResponse,
  token: string | undefined,
) {
  const gone = new AbortController()
  outgoing.once("close", () => gone.abort(new Error("the client is gone")))
  const headers = Object.fromEntries(
    Object.entries(incoming.headers).map(([name, value]) => [
      name,
      Array.isArray(value) ? value.join(", ") : (value ?? ""),
    ]),
  )
  if (token !== undefined && headers.authorization !== `Bearer ${token}`)
    return refuse(outgoing, 401, "Unauthorized", "Unauthorized")
  const body = await readBody(incoming)
  if (body === undefined)
    return refuse(outgoing, 413, "RequestEntityTooLarge", `Request entity too large: limit is ${maxBodyBytes}`)
  const { method = "GET", url = "/" } = incoming
  const text = textOf(body, headers)
  if (typeof text !== "string") return refuse(outgoing, text.code, text.reason, text.message)
  const response = await transport.send({
    method: (method === "HEAD" ? "GET" : method) as Request["method"],
    path: url,
    headers,
    body: text === "" ? undefined : text,
    signal: gone.signal,
  })
  outgoing.writeHead(response.status, withoutUndefined(response.headers))
  if (method === "HEAD") return outgoing.end()
  outgoing.flushHeaders()
  for await (const chunk of response.body) if (!outgoing.write(chunk)) await drained(outgoing)
  outgoing.end()
}

/** Resolves when more can be written, or never again. Leaves no listener behind: a watch may have to wait very often. */
function drained(outgoing: http.ServerResponse): Promise<void> {
  if (outgoing.destroyed) return Promise.resolve()
  return new Promise(resolve => {
    const done = () => {
      outgoing.off("drain", done).off("close", done)
      resolve()
    }
    outgoing.on("drain", done).on("close", done)
  })
}

/** A body as text. Protobuf, which is none, becomes the JSON it stands for: the transport carries only text. */
function textOf(body: Buffer, headers: Record<string, string>): string | StatusError {
  if (headers["content-type"] !== protobufType || body.length === 0) return body.toString("utf8")
  try {
    headers["content-type"] = "application/json"
    return JSON.stringify(readProtobuf(body))
  } catch (error) {
    if (error instanceof StatusError) return error
    throw error
  }
}

function refuse(outgoing: http.ServerResponse, code: number, reason: string, message: string) {
  outgoing.writeHead(code, { "content-type": "application/json" })
  outgoing.end(
    JSON.stringify({ kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", message, reason, code }),
  )
}

async function readBody(incoming: http.IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of incoming) {
    size += chunk.length
    if (size > maxBodyBytes) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks, size)
}

const withoutUndefined = (headers: Record<string, string | undefined>) =>
  Object.fromEntries(Object.entries(headers).filter((entry): entry is [string, string] => entry[1] !== undefined))
