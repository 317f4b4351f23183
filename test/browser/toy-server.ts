import { readFileSync } from "node:fs"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { extname, join } from "node:path"
import type { ErrorAnswer, Frame, Session, WatchRequest } from "#web/wire.ts"
import { policy } from "./serve.ts"

const session: Session = {
  ...{ session: "s1", program: "aim", version: "0", cluster: "https://toy", user: "ada", operates: true, whyNot: "" },
  kinds: [
    { id: "serviceimages", kind: "ServiceImage", short: "si", isNamespaced: false, view: "rollout", actions: [] },
  ],
}
const types: Record<string, string> = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css" }

/** Speaks the wire as the real server does, and does what a test asks: fall silent, end, or know no session. */
export class ToyServer {
  /** Each answer that is open now, with what it was asked to show. */
  readonly streams = new Map<string, { response: ServerResponse; pages: string[] }>()
  opened = 0
  key = "k1"
  isSilent = false
  #rows = 3
  readonly #folder: string
  readonly #server = createServer((request, response) => void this.#answer(request, response))
  #beat: NodeJS.Timeout | undefined

  constructor(folder: string) {
    this.#folder = folder
  }

  async listen(port = 0): Promise<string> {
    await new Promise<void>(resolve => this.#server.listen(port, "127.0.0.1", resolve))
    this.#beat = setInterval(() => this.#send({ type: "tick", time: Date.now(), speed: 1 }), 200)
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/`
  }

  async close(): Promise<void> {
    clearInterval(this.#beat)
    this.#server.closeAllConnections()
    await new Promise<void>(resolve => this.#server.close(() => resolve()))
  }

  /** Ends every stream, as a proxy does that restarts. */
  cut(): void {
    for (const { response } of this.streams.values()) response.destroy()
  }

  setRows(count: number): void {
    this.#rows = count
    this.#send({ type: "whole", feed: "list/serviceimages", ...this.#list() })
  }

  #send(frame: Frame): void {
    if (!this.isSilent) for (const { response } of this.streams.values()) response.write(`${JSON.stringify(frame)}\n`)
  }

  #list() {
    const head = { isReady: true, scope: "All" as const, namespaces: [], scopeMessage: "" }
    const rows = Array.from({ length: this.#rows }, (_, at) => ({
      ...{ kind: "serviceimages", namespace: "", name: `image-${at}`, id: `image-${at}`, attention: "Act" as const },
      ...{
        view: "rollout" as const,
        state: "Halted" as const,
        reason: "AllFailed",
        message: "<b>all</b> fail",
        target: "Dicom",
      },
      ...{
        image: "app:v1",
        progress: { done: at, total: 10 },
        tiers: 1,
        currentPriority: 0,
        awaitsApproval: false,
        operation: "g1",
      },
    }))
    return { head, rows }
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname } = new URL(request.url ?? "/", "http://toy")
    if (request.method === "GET" && !pathname.startsWith("/api/")) return this.#file(pathname, response)
    const json = (status: number, body: object) =>
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body))
    const refuse = (status: number, error: ErrorAnswer["error"], message: string) => json(status, { error, message })
    const body = JSON.parse((await textOf(request)) || "{}")
    if (pathname === "/api/session") {
      if (body.key !== this.key) return void refuse(401, body.key ? "KeyUsed" : "NoSession", "this key was used before")
      this.key = ""
      return void json(200, session)
    }
    if (request.headers["x-aim-session"] !== session.session)
      return void refuse(401, "NoSession", "there is no such session")
    if (pathname === "/api/stream") return this.#stream(response)
    if (pathname === "/api/watch") {
      const { stream, pages } = body as WatchRequest
      const entry = this.streams.get(stream)
      if (entry) entry.pages = pages.map(page => (page.page === "overview" ? "overview" : page.name))
      if (!this.isSilent) this.#send({ type: "whole", feed: "list/serviceimages", ...this.#list() })
      return void json(200, {})
    }
    refuse(404, "NotFound", "not here")
  }

  #stream(response: ServerResponse): void {
    const stream = `stream-${++this.opened}`
    response.writeHead(200, { "content-type": "application/x-ndjson" })
    this.streams.set(stream, { response, pages: [] })
    response.on("close", () => this.streams.delete(stream))
    response.write(`${JSON.stringify({ type: "hello", stream, time: Date.now(), speed: 1 } satisfies Frame)}\n`)
  }

  #file(path: string, response: ServerResponse): void {
    const name = path === "/" ? "index.html" : path.slice(1)
    if (!/^(index\.html|assets\/[\w.-]+)$/.test(name)) return void response.writeHead(404).end()
    const headers = { "content-type": types[extname(name)] ?? "", "content-security-policy": policy }
    response.writeHead(200, headers).end(readFileSync(join(this.#folder, name)))
  }
}

async function textOf(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = []
  for await (const part of request) parts.push(part as Buffer)
  return Buffer.concat(parts).toString()
}
