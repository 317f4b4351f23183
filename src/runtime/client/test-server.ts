import { execFileSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import * as http from "node:http"
import * as https from "node:https"
import type { AddressInfo, Socket } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll } from "vitest"
import { fixedCredentials, type ServerConfig } from "./server-config.ts"

/** For tests: a real server on a real socket that follows the test's commands, and remembers what it received. */
export type TestServer = {
  config: ServerConfig
  url: string
  port: number
  /** Every request whose head arrived, in order. */
  seen: Seen[]
  /** TCP connections accepted so far. */
  readonly connections: number
  /** Resolves once `count` requests have arrived. */
  arrived(count: number): Promise<void>
  close(): Promise<void>
}

export type Seen = { method: string; url: string; headers: http.IncomingHttpHeaders; body: string; socket: Socket }
export type Reply = (seen: Seen, response: http.ServerResponse) => void

export type TestServerOptions = { tls?: https.ServerOptions }

export async function testServer(reply: Reply, { tls }: TestServerOptions = {}): Promise<TestServer> {
  const seen: Seen[] = []
  const waiting: { count: number; resolve: () => void }[] = []
  const sockets = new Set<Socket>()
  let connections = 0

  const handle: http.RequestListener = (incoming, response) => {
    const chunks: Buffer[] = []
    incoming.on("error", () => {})
    incoming.on("data", chunk => chunks.push(chunk))
    incoming.on("end", () => {
      const { method = "", url = "", headers, socket } = incoming
      const request = { method, url, headers, body: Buffer.concat(chunks).toString("utf8"), socket }
      seen.push(request)
      for (const { count, resolve } of waiting) if (seen.length >= count) resolve()
      reply(request, response)
    })
  }
  const server = tls ? https.createServer(tls, handle) : http.createServer(handle)
  server.keepAliveTimeout = 0 // never closes by itself: the client and the test decide when connections end
  server.on("connection", (socket: Socket) => {
    connections++
    sockets.add(socket)
    socket.on("error", () => {})
    socket.on("close", () => sockets.delete(socket))
  })
  await new Promise<void>(resolve => server.listen(0, "127.0.0.1", resolve))
  const { port } = server.address() as AddressInfo
  const url = `${tls ? "https" : "http"}://127.0.0.1:${port}`
  return {
    config: configFor(url, tls ? { ca: String(tls.ca) } : {}),
    url,
    port,
    seen,
    get connections() {
      return connections
    },
    arrived: count => new Promise(resolve => (seen.length >= count ? resolve() : waiting.push({ count, resolve }))),
    close: () =>
      new Promise(resolve => {
        for (const socket of sockets) socket.destroy()
        server.close(() => resolve())
      }),
  }
}

export const configFor = (server: string, tls: Partial<ServerConfig["tls"]> = {}): ServerConfig => ({
  server,
  namespace: "default",
  tls: { verify: true, ...tls },
  credentials: fixedCredentials({}),
  headers: {},
})

export function json(
  response: http.ServerResponse,
  body: unknown,
  status = 200,
  headers: http.OutgoingHttpHeaders = {},
) {
  response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body))
}

export const statusBody = (code: number, reason: string, details: object = {}) => ({
  kind: "Status",
  status: "Failure",
  code,
  reason,
  message: `because ${reason}`,
  details,
})

const folders: string[] = []
afterAll(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

/** A new folder, removed after the test file. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "aim-client-"))
  folders.push(folder)
  return folder
}

export type KeyPair = { cert: string; key: string }
export type Certificates = { ca: string; server: KeyPair; client: KeyPair; folder: string }

/** A CA of our own, a server certificate for 127.0.0.1 and kube.test, and a client certificate for `tester`. */
export function makeCertificates(): Certificates {
  const folder = temporaryFolder()
  const openssl = (...args: string[]) => execFileSync("openssl", args, { cwd: folder, stdio: "pipe" })
  const newKey = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
  openssl("req", "-x509", ...newKey, "-keyout", "ca.key", "-out", "ca.crt", "-subj", "/CN=test-ca")
  const signed = (name: string, subject: string, extension: string) => {
    const by = ["-CA", "ca.crt", "-CAkey", "ca.key"]
    openssl(
      "req",
      "-x509",
      ...newKey,
      ...by,
      "-keyout",
      `${name}.key`,
      "-out",
      `${name}.crt`,
      "-subj",
      subject,
      "-addext",
      extension,
    )
    return { cert: read(`${name}.crt`), key: read(`${name}.key`) }
  }
  const read = (file: string) => readFileSync(join(folder, file), "utf8")
  return {
    folder,
    ca: read("ca.crt"),
    server: signed("server", "/CN=server", "subjectAltName=IP:127.0.0.1,DNS:kube.test"),
    client: signed("client", "/O=testers/CN=tester", "extendedKeyUsage=clientAuth"),
  }
}
