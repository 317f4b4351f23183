import { Heap } from "#lib/heap.ts"
import type { Instant } from "#lib/instant.ts"
import type { Random } from "#runtime/random.ts"
import type { AppliedRoute } from "../gateway-api/index.ts"
import { type Counters, createCounters, type Target } from "./counters.ts"
import { createLedger, type Failure, type Ledger, type TrafficRecord, type Why } from "./record.ts"
import { type Asked, type Backend, type Choice, type CookieJar, choose, cookieHeader, keepCookie } from "./route.ts"
import { showIn } from "./shown.ts"

/** How the pods of a version answer. */
export type Version = {
  /** Part of the requests that are answered with 500, from 0 to 1. */
  readonly errorRate: number
  /** The mean. Single requests take up to a fifth more or less. */
  readonly latencyMs: number
}

/** A process that answers. It stands in the network from the moment it listens until it ends. */
export type Server = {
  readonly uid: string
  readonly revision: string
  readonly version: () => Version
  /** It was told to end: requests in hand are answered, and kept connections are closed without a loss. */
  isEnding: boolean
  /** Of its own `/metrics`. */
  readonly target: Target
}

/** An address behind a Service. */
export type Endpoint = { readonly uid: string; readonly ready: boolean; readonly serving: boolean }

/** What divides requests, as it is configured now. */
export type NetworkState = {
  /** By `NAMESPACE/NAME`; a Service without an entry does not exist. */
  readonly services: Map<string, readonly Endpoint[]>
  routes: readonly AppliedRoute[]
  /** Those that the gateway can send requests to. Undefined: all. */
  clusters?: ReadonlySet<string> | undefined
}

export type ClientsOptions = {
  /** In the record of failures. */
  name?: string
  perSecond: number
  /** A Service, through kube-proxy, or a gateway (each as `NAMESPACE/NAME`). */
  through: { service: string } | { gateway: string; host?: string }
  /** Whether a client goes on with its connection. Through a gateway each request is balanced anyway. */
  connections?: "kept" | "fresh"
  /** How many clients there are, each with its own connection and cookies. They take turns. */
  clients?: number
  path?: string
  method?: string
  headers?: Readonly<Record<string, string>>
  query?: Readonly<Record<string, string>>
  cookies?: Readonly<Record<string, string>>
  /** Whether clients keep cookies that they are sent. Default: they do. */
  keepsCookies?: boolean
}

export type Clients = {
  stop(): void
  /** What became of their requests so far. */
  record(): TrafficRecord
}

/**
 * Requests in virtual time. Nothing waits for a timer: `advance` computes what happened up to an instant, in order, from
 * the changes that were put in. So it costs nothing between two changes, and the same seed gives the same requests.
 */
export type Network = {
  /** Puts in a change that has its effect at an instant that is not yet computed. */
  put(at: Instant, change: (state: NetworkState) => void): void
  advance(now: Instant): void
  /** A server listens, or ends. Both have their effect at once. */
  listen(server: Server): void
  end(uid: string): void
  send(now: Instant, options: ClientsOptions): Clients
  record(): TrafficRecord
  readonly counters: Counters
}

type Event = { at: Instant; order: number; run: () => void }
type Client = { jar: CookieJar; connection: string | undefined }
/** Where the answer goes. The answer to a copy goes nowhere. */
type Asker = { ledgers: readonly Ledger[]; name: string; backend: Backend | undefined; isCopy: boolean }
type Outcome = { ms: number; isError: boolean; isLate: boolean }
type Flight = { at: Instant; server: Server; asker: Asker; isOver: boolean; done(): void }

export function createNetwork(start: Instant, random: Random): Network {
  const events = new Heap<Event>((a, b) => (a.at === b.at ? a.order < b.order : a.at < b.at))
  const state: NetworkState = { services: new Map(), routes: [] }
  const servers = new Map<string, { server: Server; flights: Set<Flight> }>()
  const total = createLedger()
  const counters = createCounters()
  const shown = showIn(counters)
  let order = 0
  let clock = start
  const put = (at: Instant, run: () => void) => events.push({ at: Math.max(at, clock), order: order++, run })
  const chance = () => random.next()
  const pick = <T>(list: readonly T[]): T | undefined => list[Math.floor(chance() * list.length)]

  const endpointOf = ({ namespace, service }: Backend, isGateway: boolean): string | undefined =>
    pick(usable(state.services.get(`${namespace}/${service}`) ?? [], isGateway))?.uid

  function fail({ ledgers, name, isCopy, backend }: Asker, why: Why, server?: Server) {
    const status = { NoRoute: "404", NoBackend: "500", TimedOut: "504" }[why as string] ?? "503"
    if (backend) shown.gateway(backend, status)
    if (isCopy) return
    const failure: Failure = {
      ...{ at: clock, clients: name, why },
      ...(server && { pod: server.uid, revision: server.revision }),
    }
    for (const ledger of ledgers) ledger.failed(failure)
  }

  /** Sends a request to a server. Returns whether it was there. */
  function work(uid: string, asker: Asker, answer: { timeoutMs?: number | undefined; done(): void }): boolean {
    const found = servers.get(uid)
    if (!found) {
      fail(asker, "Refused")
      return false
    }
    const { server, flights } = found
    const { latencyMs, errorRate } = server.version()
    const ms = latencyMs * (0.8 + 0.4 * chance())
    const isError = chance() < errorRate
    const { timeoutMs } = answer
    const isLate = timeoutMs !== undefined && ms > timeoutMs
    const flight: Flight = {
      ...{ at: clock, server, asker, isOver: false },
      done() {
        flights.delete(flight)
        finish(flight, { ms, isError, isLate })
        answer.done()
      },
    }
    flights.add(flight)
    put(clock + (isLate ? timeoutMs : ms), () => {
      if (!flight.isOver) flight.done()
    })
    return true
  }

  function finish({ server, asker }: Flight, { ms, isError, isLate }: Outcome) {
    const status = isError ? "500" : "200"
    shown.application(server.target, status, ms)
    if (isLate) return fail(asker, "TimedOut", server)
    if (asker.backend) shown.gateway(asker.backend, status, ms)
    for (const ledger of asker.ledgers) {
      ledger.answered(server, asker.isCopy ? "mirrored" : "requests")
      if (isError && !asker.isCopy) ledger.answered(server, "errors")
    }
  }

  function throughService(client: Client, service: string, options: ClientsOptions, asker: Asker) {
    const [namespace = "", name = ""] = service.split("/")
    const isKept = options.connections !== "fresh"
    if (!isKept || !client.connection || !servers.has(client.connection)) {
      if (!state.services.has(service)) return fail(asker, "NoBackend")
      client.connection = endpointOf({ namespace, service: name, port: 0 }, false)
    }
    if (client.connection === undefined) return fail(asker, "NoEndpoint")
    if (!work(client.connection, asker, { done() {} })) client.connection = undefined
  }

  function throughGateway(client: Client, gateway: string, options: ClientsOptions, asker: Asker) {
    const choice = choose(state.routes, requestOf(client, gateway, options), chance)
    if (!choice.isMatched) return fail(asker, "NoRoute")
    for (const backend of choice.mirrors) copy(backend, asker)
    const { backend } = choice
    const name = backend && `${backend.namespace}/${backend.service}`
    if (!backend || !(backend.pods || state.services.has(name!))) return fail(asker, "NoBackend")
    const behind = { ...asker, backend }
    if (!backend.pods && state.clusters?.has(name!) === false) return fail(behind, "NoCluster")
    const uid = backend.pods ? pick(backend.pods) : endpointOf(backend, true)
    if (uid === undefined) return fail(behind, "NoEndpoint")
    work(uid, behind, { timeoutMs: choice.timeoutMs, done: () => keepCookies(client, choice, options) })
  }

  function copy(backend: Backend, asker: Asker) {
    const uid = endpointOf(backend, true)
    if (uid !== undefined) work(uid, { ...asker, backend, isCopy: true }, { done() {} })
  }

  return {
    counters,
    put: (at, change) => put(at, () => change(state)),
    advance(now) {
      for (let next = events.first(); next && next.at <= now; next = events.first()) {
        events.pop()
        clock = next.at
        next.run()
      }
      clock = Math.max(clock, now)
    },
    listen(server) {
      servers.set(server.uid, { server, flights: new Set() })
    },
    end(uid) {
      const found = servers.get(uid)
      if (!found) return
      servers.delete(uid)
      for (const flight of [...found.flights]) {
        flight.isOver = true
        if (found.server.isEnding) flight.done()
        else fail(flight.asker, "Cut", found.server)
      }
      counters.drop(found.server.target)
    },
    send(now, options) {
      const own = createLedger()
      const asker: Asker = { ledgers: [own, total], name: options.name ?? "clients", backend: undefined, isCopy: false }
      const clients = clientsOf(options)
      const gapMs = 1000 / options.perSecond
      // Two groups of clients do not send at the same instants.
      const first = now + chance() * gapMs
      let isStopped = false
      let number = 0
      const next = () => {
        if (isStopped) return
        const client = clients[number % clients.length]!
        const { through } = options
        if ("service" in through) throughService(client, through.service, options, asker)
        else throughGateway(client, through.gateway, options, asker)
        put(first + ++number * gapMs, next)
      }
      put(first, next)
      return {
        record: own.read,
        stop() {
          isStopped = true
        },
      }
    },
    record: total.read,
  }
}

/** Those that kube-proxy or Envoy sends to. kube-proxy falls back to pods that end and still serve. */
function usable(all: readonly Endpoint[], isGateway: boolean): readonly Endpoint[] {
  const ready = all.filter(each => each.ready)
  return ready.length > 0 || isGateway ? ready : all.filter(({ serving }) => serving)
}

function clientsOf({ clients = 10, cookies = {} }: ClientsOptions): Client[] {
  return Array.from({ length: clients }, () => ({ jar: new Map(Object.entries(cookies)), connection: undefined }))
}

function requestOf({ jar }: Client, gateway: string, options: ClientsOptions): Asked {
  const { through, path = "/", method = "GET", headers = {}, query = {} } = options
  const cookie = cookieHeader(jar)
  const own = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])
  return {
    ...{ gateway, path, method, query },
    host: ("gateway" in through && through.host) || "",
    headers: { ...Object.fromEntries(own), ...(cookie && { cookie }) },
  }
}

function keepCookies({ jar }: Client, { setCookies }: Choice, { keepsCookies = true }: ClientsOptions): void {
  if (keepsCookies) for (const each of setCookies) keepCookie(jar, each)
}
