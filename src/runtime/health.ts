import type { IncomingMessage, ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { createServer } from "#lib/http.ts"
import type { Logger } from "./log.ts"
import type { Metrics } from "./metrics.ts"

/** What is wrong, or undefined if all is well. */
export type Check = () => string | undefined

export type HealthOptions = {
  host: string
  /** 0 takes any that is free. */
  port: number
  /** Fails when only a restart helps. */
  livez: Record<string, Check>
  /** Fails when this process does not do its part (yet, or any more). */
  readyz: Record<string, Check>
  metrics: Pick<Metrics, "text" | "contentType">
  log: Logger
}

export type HealthServer = { readonly port: number; close(): Promise<void> }

/** `/livez` and `/readyz` as the API server answers them (`?verbose` lists the checks), and `/metrics`. */
export async function startHealthServer(options: HealthOptions): Promise<HealthServer> {
  const { host, log } = options
  // Anybody in the cluster can connect: little is read, nobody is waited for.
  const server = createServer(
    { maxHeaderSize: 8192, headersTimeout: 5_000, requestTimeout: 5_000, keepAliveTimeout: 5_000 },
    (request, response) => {
      answer(options, request)
        .catch((error): Answer => {
          log.error("a health request failed", { path: request.url, error })
          return { status: 500, text: "internal error\n" }
        })
        .then(found => send(request, response, found))
    },
  )
  server.maxConnections = 256
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
