import type { IncomingMessage, ServerResponse } from "node:http"
import type { AddressInfo, Socket } from "node:net"
import { createServer } from "#lib/http.ts"
import type { Logger } from "./log.ts"
import type { Metrics } from "./metrics.ts"

/** The problem, or undefined if all is well. */
export type Check = () => string | undefined

export type HealthOptions = {
  host: string
  /** 0 takes any free port. */
  port: number
  /** Fails when only a restart helps. */
  livez: Record<string, Check>
  /** Fails while this process does not do its part. */
  readyz: Record<string, Check>
  metrics: Pick<Metrics, "text" | "contentType">
  log: Logger
}

export type HealthServer = { readonly port: number; close(): Promise<void> }

/** `/livez` and `/readyz` as the API server answers them (`?verbose` lists the checks), and `/metrics`. */
export async function startHealthServer(options: HealthOptions): Promise<HealthServer> {
  const { host, log } = options
  const connections = new Connections()
  // Any pod of the cluster can connect: reads are bounded, and no client is waited for.
  const server = createServer(
    {
      maxHeaderSize: 8192,
      headersTimeout: 5_000,
      requestTimeout: 5_000,
      keepAliveTimeout: 5_000,
      connectionsCheckingInterval: 1_000,
    },
    (request, response) => {
      connections.asks(request.socket)
      answer(options, request)
        .catch((error): Answer => {
          log.error("a health request failed", { path: request.url, error })
          return { status: 500, text: "internal error\n" }
        })
        .then(found => send(request, response, found))
        .finally(() => connections.answered(request.socket))
    },
  )
  server.maxConnections = connectionsMost
  server.on("connection", socket => connections.opened(socket))
  server.on("clientError", (_error, socket) => socket.destroy())
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject)
    server.listen(options.port, host, resolve)
  })
  server.on("error", error => log.error("the health server failed", { error }))
  const { port } = server.address() as AddressInfo
  log.debug("serving health and metrics", { host, port })
  return {
    port,
    close: () =>
      new Promise(resolve => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

/** What one turn of the event loop may bring. Further connections wait in the kernel's queue, which is long enough. */
const connectionsMost = 1024
const silentMost = { ofAddress: 16, inAll: 128 }

/**
 * Closes connections without a request, the oldest first, so that the kubelet's probe always finds a place. A
 * connection counts as silent unless a request on it is being answered: also one whose client sends its request byte by
 * byte, or does not read the answer.
 */
class Connections {
  /** In the order in which they fell silent. */
  readonly #silent = new Set<Socket>()
  #isDue = false

  opened(socket: Socket): void {
    this.#silent.add(socket)
    socket.once("close", () => this.#silent.delete(socket))
    if (this.#isDue) return
    this.#isDue = true
    // A client's first bytes are read in the turn after its connection was accepted. Until then the probe is as silent
    // as the connections that came with it.
    setImmediate(() => setImmediate(() => this.#thin()))
  }

  asks(socket: Socket): void {
    this.#silent.delete(socket)
  }

  answered(socket: Socket): void {
    if (!socket.destroyed) this.#silent.add(socket)
  }

  #thin(): void {
    this.#isDue = false
    const counts = new Map<string, number>()
    let kept = 0
    for (const socket of [...this.#silent].reverse()) {
      const address = socket.remoteAddress ?? ""
      const count = counts.get(address) ?? 0
      if (count >= silentMost.ofAddress || kept >= silentMost.inAll) socket.destroy()
      else {
        counts.set(address, count + 1)
        kept++
      }
    }
  }
}

type Answer = { status: number; text: string; headers?: Record<string, string> }

async function answer({ livez, readyz, metrics }: HealthOptions, { method, url }: IncomingMessage): Promise<Answer> {
  const [path, query = ""] = (url ?? "/").split("?", 2)
  const pages: Record<string, () => Answer | Promise<Answer>> = {
    "/livez": () => examine("livez", livez, query),
    "/readyz": () => examine("readyz", readyz, query),
    "/metrics": async () => ({
      status: 200,
      text: await metrics.text(),
      headers: { "content-type": metrics.contentType },
    }),
  }
  const page = Object.hasOwn(pages, path!) ? pages[path!] : undefined
  if (!page) return { status: 404, text: "not found\n" }
  if (method !== "GET" && method !== "HEAD") {
    return { status: 405, text: "only GET and HEAD\n", headers: { allow: "GET, HEAD" } }
  }
  return page()
}

function examine(name: string, checks: Record<string, Check>, query: string): Answer {
  const found = Object.entries(checks).map(([check, look]) => ({ check, problem: attempt(look) }))
  const isWell = found.every(({ problem }) => problem === undefined)
  if (isWell && !new URLSearchParams(query).has("verbose")) return { status: 200, text: "ok" }
  const lines = found.map(({ check, problem }) => (problem ? `[-]${check} failed: ${problem}` : `[+]${check} ok`))
  lines.push(`${name} check ${isWell ? "passed" : "failed"}`, "")
  return { status: isWell ? 200 : 500, text: lines.join("\n") }
}

function attempt(look: Check): string | undefined {
  try {
    return look()
  } catch (error) {
    return `the check itself failed: ${error instanceof Error ? error.message : error}`
  }
}

function send({ method }: IncomingMessage, response: ServerResponse, { status, text, headers }: Answer) {
  response.writeHead(status, {
    "content-type": "text/plain; charset=utf-8",
    "content-length": Buffer.byteLength(text),
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    ...headers,
  })
  response.end(method === "HEAD" ? undefined : text)
}
