import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import { createServer as createTlsServer } from "node:https"
import type { AddressInfo } from "node:net"
import { KubeError } from "#runtime/client/errors.ts"
import type { Clock } from "#runtime/clock.ts"
import type { Random } from "#runtime/random.ts"
import { Access } from "./access.ts"
import { act, preview } from "./actions.ts"
import { detailsPanel } from "./details.ts"
import { answerTo } from "./failures.ts"
import { Feeds } from "./feeds.ts"
import { fileOf } from "./files.ts"
import { bodyOf, guard, Refusal, securityHeaders } from "./guard.ts"
import { actionIn, objectIn, pagesIn, textIn } from "./input.ts"
import { pageOf, pages } from "./kinds/all.ts"
import { listPanel, type Panel } from "./panel.ts"
import { type Session, Sessions } from "./sessions.ts"
import { signInWith, type Viewers } from "./sign-in.ts"
import { Stream } from "./stream.ts"
import { why } from "./why.ts"
import type { Acted, Page, SessionHeader } from "./wire.ts"

export type DashboardOptions = {
  /** The folder of the built page. */
  folder: string
  /** Names by which browsers may address the server. Without a port, the one that it listens on is meant. */
  hosts: readonly string[]
  port: number
  /** The address to listen on; undefined: all of the machine. */
  listen: string | undefined
  /** `/aim`, or empty. */
  basePath: string
  tls?: { cert: string; key: string } | undefined
  program: string
  version: string
  cluster: string
  operates: boolean
  /** What a read-only page says about its buttons. */
  whyNot: string
  clock: Clock
  random: Random
  /** The cluster's own clock, and how fast it runs. */
  clusterNow(): number
  speed: number
  viewers: Viewers
  /** Tells the person at the terminal. */
  say(line: string): void
}

export type Dashboard = {
  readonly url: string
  readonly port: number
  /** An address with a key that opens one session. */
  address(): string
  /** How many browsers have a stream open. */
  readonly streams: number
  close(): Promise<void>
}

type Open = { session: Session; access: Access; stream: Stream }
const sessionHeader: SessionHeader = "x-aim-session"
const streamsMost = 8

/** Serves the page, and what it asks. */
export async function serveDashboard(options: DashboardOptions): Promise<Dashboard> {
  const { clock, random, tls, basePath, program, operates, whyNot } = options
  const sessions = new Sessions(clock)
  const feeds = new Feeds({ clock, random, clusterNow: options.clusterNow })
  const streams = new Map<string, Open>()
  const hosts = new Set<string>()
  const endStreams = (session: Session, message?: string) => {
    for (const open of [...streams.values()]) if (open.session === session) open.stream.end(message)
  }
  const signIn = signInWith(options, sessions, (session, before) => {
    feeds.expel(before)
    endStreams(session)
    before.client.close()
  })

  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    for (const [name, value] of Object.entries(securityHeaders)) response.setHeader(name, value)
    try {
      guard(request, { hosts, isTls: tls !== undefined })
      const path = new URL(request.url ?? "/", "http://page").pathname
      if (path !== basePath && !path.startsWith(`${basePath}/`)) throw notServed()
      if (path === basePath && basePath !== "") {
        response.writeHead(308, { location: `${basePath}/` }).end()
        return
      }
      await route(path.slice(basePath.length + 1), request, response)
    } catch (error) {
      refuse(response, error)
    }
  }

  async function route(path: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (!path.startsWith("api/")) return serveFile(path, request, response)
    if (path === "api/session" && request.method === "POST")
      return json(response, await signIn.open(request, await bodyOf(request)))
    const session = sessions.find(header(request, sessionHeader))
    if (!session)
      throw new Refusal(401, {
        error: "NoSession",
        message:
          options.viewers.by === "Key"
            ? `this session has ended; the terminal of ${program} dashboard prints an address that opens another`
            : "this session has ended; sign in again",
      })
    await signIn.renew(session, request)
    if (path === "api/stream" && request.method === "GET") return openStream(session, response)
    if (request.method !== "POST") throw notServed()
    const body = await bodyOf(request)
    const deps = { viewer: session.viewer, feeds, clock, now: options.clusterNow, program }
    switch (path) {
      case "api/watch": {
        const open = streams.get(textIn(body, "stream", 64) ?? "")
        if (open?.session !== session)
          throw new Refusal(404, { error: "NotFound", message: "this stream has ended: open another" })
        open.stream.show(pagesIn(body))
        return json(response, {})
      }
      case "api/why":
        return json(response, await why(session.viewer, objectIn(body), deps))
      case "api/preview":
        return json(response, await preview(actionIn(body), deps))
      case "api/act": {
        if (!operates) throw new Refusal(403, { error: "ReadOnly", message: whyNot, done: "Nothing was changed." })
        const decision = textIn(body, "decision", 128) ?? ""
        const acted: Acted = await act({ ...actionIn(body), decision }, deps)
        return json(response, acted)
      }
      default:
        throw notServed()
    }
  }

  function openStream(session: Session, response: ServerResponse): void {
    const own = [...streams.values()].filter(open => open.session === session)
    if (own.length >= streamsMost) own[0]!.stream.end("Another tab has taken over.")
    response.writeHead(200, {
      "content-type": "application/x-ndjson",
      "cache-control": "no-store",
      "x-accel-buffering": "no",
    })
    const access = new Access(session.viewer, clock, error => {
      // Credentials that the server no longer accepts end the session; a server that does not answer ends nothing.
      if (!(error instanceof KubeError) || error.status !== 401) return
      feeds.expel(session.viewer)
      sessions.close(session)
      if (options.viewers.by === "Token") session.viewer.client.close()
      endStreams(session, "The API server no longer accepts your credentials.")
    })
    const deps = { access, feeds, program, operates, whyNot, now: options.clusterNow }
    const panelsOf = (page: Page, touch: (feed: string) => void): Panel[] => {
      const made = (make: (touch: () => void) => Panel): Panel => {
        let panel: Panel | undefined
        panel = make(() => panel && touch(panel.feed)) // a panel may touch itself before it is made
        return panel
      }
      if (page.page === "details")
        return [made(touched => detailsPanel(pageOf(page.kind)!, page, { ...deps, touch: touched }))]
      return pages.map(each => made(touched => listPanel(each, { ...deps, touch: touched })))
    }
    const tick = () => ({ time: options.clusterNow(), speed: options.speed })
    const stream = new Stream(response, { clock, tick, panelsOf })
    streams.set(stream.id, { session, access, stream })
    response.on("close", () => {
      stream.close()
      access.close()
      streams.delete(stream.id)
    })
  }

  async function serveFile(path: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method === "POST") throw notServed()
    const file = await fileOf(options.folder, path)
    if (!file) throw notServed()
    response.writeHead(200, {
      "content-type": file.type,
      "content-length": file.content.length,
      "cache-control": file.isNamedByContent ? "public, max-age=31536000, immutable" : "no-cache",
    })
    response.end(request.method === "HEAD" ? undefined : file.content)
  }

  const server: Server = tls ? createTlsServer(tls, answer) : createServer(answer)
  server.requestTimeout = 30_000
  server.headersTimeout = 10_000
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject)
    server.listen(options.port, options.listen, resolve)
  })
  const { port } = server.address() as AddressInfo
  const addressed = options.hosts.map(host => (/:\d+$/.test(host) ? host : `${host}:${port}`))
  // Behind a proxy, or at the usual port, a browser leaves the port out.
  const isWithout = options.viewers.by === "Token" || port === (tls ? 443 : 80)
  for (const host of [...addressed, ...(isWithout ? options.hosts : [])]) hosts.add(host.toLowerCase())
  const url = `${tls ? "https" : "http"}://${addressed[0]}${basePath}/`
  return {
    ...{ url, port },
    address: () => (options.viewers.by === "Key" ? `${url}#key=${sessions.newKey()}` : url),
    get streams() {
      return streams.size
    },
    async close() {
      for (const { stream } of [...streams.values()]) stream.end("The dashboard's server has ended.")
      feeds.close()
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
}

const notServed = () => new Refusal(404, { error: "NotFound", message: "there is nothing here" })

const header = ({ headers }: IncomingMessage, name: string) => {
  const value = headers[name]
  return typeof value === "string" ? value : undefined
}

function json(response: ServerResponse, body: object, status = 200): void {
  const text = JSON.stringify(body)
  response.writeHead(status, { "content-type": "application/json", "cache-control": "no-store" })
  response.end(text)
}

function refuse(response: ServerResponse, error: unknown): void {
  if (response.headersSent) {
    response.destroy()
    return
  }
  const [status, answer] = answerTo(error)
  if (status === 413) response.setHeader("connection", "close")
  json(response, answer, status)
}
