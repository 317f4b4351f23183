import { createHash } from "node:crypto"
import type * as http from "node:http"
import type { AddressInfo } from "node:net"
import type { TLSSocket } from "node:tls"
import { createServer, loadHttps } from "#lib/http.ts"
import { protobufType } from "#lib/kube-protobuf.ts"
import type { Request, Transport } from "#runtime/client/index.ts"
import { separator, type User } from "../auth/index.ts"
import { StatusError } from "../status-error.ts"
import { readProtobuf } from "./protobuf.ts"

export type ServeOptions = {
  /** 0: any free port. */
  port?: number
  /** Default: loopback. */
  host?: string
  /** `clientAuthority` verifies client certificates. A client with one uses the transport of `forClient`. */
  tls?: { key: string; cert: string; clientAuthority?: string }
  forClient?: (user: User) => Transport
}

export type Serving = { url: string; port: number; close(): Promise<void> }

const maxBodyBytes = 3 << 20 // as the API server

/** The same server over HTTP(S) on a socket of this machine. */
export async function serveHttp(transport: Transport, options: ServeOptions = {}): Promise<Serving> {
  const { port = 0, host = "127.0.0.1", tls, forClient } = options
  const listener: http.RequestListener = (incoming, outgoing) => {
    const user = forClient && clientOf(incoming)
    answer(user ? forClient(user) : transport, incoming, outgoing).catch(error => {
      // The head was sent or the connection is gone: the connection can only be closed.
      outgoing.destroy(error instanceof Error ? error : undefined)
    })
  }
  const server = tls ? loadHttps().createServer(secured(tls), listener) : createServer(listener)
  server.requestTimeout = 0 // a watch has its own timeout
  // As a real API server. Clients close earlier: a request that is on its way when a server closes is lost.
  server.keepAliveTimeout = 90_000
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

const secured = ({ key, cert, clientAuthority: ca }: NonNullable<ServeOptions["tls"]>) => ({
  ...{ key, cert },
  // A client without a valid certificate may still have a token.
  ...(ca && { ca, requestCert: true, rejectUnauthorized: false }),
})

/** The user of a verified certificate. */
function clientOf({ socket }: http.IncomingMessage): User | undefined {
  const { authorized, getPeerCertificate } = socket as Partial<TLSSocket>
  if (!authorized || !getPeerCertificate) return undefined
  const { subject, raw } = getPeerCertificate.call(socket)
  // biome-ignore lint/complexity/useLiteralKeys: what the types leave open
  const organizations = (subject as Record<string, string | string[] | undefined>)["O"] ?? []
  const groups = [organizations].flat()
  const digest = createHash("sha256").update(raw).digest("hex")
  return {
    name: [subject.CN].flat()[0] ?? "",
    groups: [...groups, "system:authenticated"],
    extra: { "authentication.kubernetes.io/credential-id": [`X509SHA256=${digest}`] },
  }
}

async function answer(transport: Transport, incoming: http.IncomingMessage, outgoing: http.ServerResponse) {
  const gone = new AbortController()
  outgoing.once("close", () => gone.abort(new Error("the client is gone")))
  const headers = Object.fromEntries(
    Object.entries(incoming.headersDistinct).map(([name, values = []]) => [
      name,
      values.join(name.startsWith("impersonate-") ? separator : ", "),
    ]),
  )
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

/** Resolves when more can be written, or never can. Removes its listeners, since a watch may wait very often. */
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

/** A body as text. Protobuf becomes the equivalent JSON, since the transport carries only text. */
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
