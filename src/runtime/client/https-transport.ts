import type * as http from "node:http"
import type * as https from "node:https"
import type { Duplex } from "node:stream"
import { setImmediate as nextTurn } from "node:timers/promises"
import { Agent, loadHttps, request as requestPlain } from "#lib/http.ts"
import type { Credential, ServerConfig } from "./server-config.ts"
import { NotSent, type Request, type Response, type Transport } from "./transport.ts"

/**
 * An API server takes 200 writes at a time from all clients together; this is our share of connections. A request
 * beyond it waits for its turn, within its deadline.
 */
const maxSockets = 32

/** For the Lease alone: one request at a time, and another where the first connection hangs. */
const urgentSockets = 2

/**
 * Shorter than servers (kube-apiserver: 90 s) and load balancers (60 s) allow. We close an idle connection first;
 * otherwise a write on it could fail with its outcome unknown.
 */
const idleMs = 30_000

/**
 * HTTP/1.1 over kept-alive TLS connections. Does not ask for compression: inside a cluster the network is faster than
 * gzip, and all clients share the server's CPU. Proxies in the environment are not used: only the kubeconfig decides
 * how an API server is reached.
 */
export function httpsTransport(config: ServerConfig): Transport {
  const url = new URL(config.server)
  const isSecure = url.protocol === "https:"
  const basePath = url.pathname.replace(/\/+$/, "")
  // Watches stay open for minutes, and tenants can cause many slow reads. Neither may take the last connection from a
  // Lease renewal, so each has a pool of its own.
  const ready = new WeakMap<Duplex, Promise<void>>()
  const pools = {
    ordinary: keepAliveAgent(isSecure, maxSockets, ready),
    longLived: keepAliveAgent(isSecure, Number.POSITIVE_INFINITY, ready),
    urgent: keepAliveAgent(isSecure, urgentSockets, ready),
  }

  const target = {
    protocol: url.protocol,
    host: url.hostname.replace(/^\[|\]$/g, ""),
    port: url.port || (isSecure ? 443 : 80),
    ...(config.lookup && { lookup: config.lookup }),
    ...(isSecure && {
      // Set explicitly, since Node otherwise reads NODE_TLS_REJECT_UNAUTHORIZED.
      rejectUnauthorized: config.tls.verify,
      ...(config.tls.ca !== undefined && { ca: config.tls.ca }),
      ...(config.tls.serverName !== undefined && { servername: config.tls.serverName }),
    }),
  }

  /** Throws for a header that cannot be sent, such as a token with a line break in it. */
  function prepare(options: https.RequestOptions): http.ClientRequest {
    try {
      return (isSecure ? loadHttps().request : requestPlain)(options)
    } catch (error) {
      throw notSent(asError(error))
    }
  }

  function sendAs({ authorization, ...certificate }: Credential, request: Request): Promise<Response> {
    return new Promise((resolve, reject) => {
      const { signal, body } = request
      let hasLeft = false
      let answer: http.IncomingMessage | undefined
      const outgoing = prepare({
        ...target,
        ...certificate,
        agent: pools[request.longLived ? "longLived" : request.isUrgent ? "urgent" : "ordinary"],
        method: request.method,
        path: basePath + request.path,
        headers: {
          host: url.host,
          "accept-encoding": "identity",
          ...request.headers,
          ...config.headers,
          ...(authorization !== undefined && { authorization }),
          ...(body !== undefined && { "content-length": Buffer.byteLength(body) }),
        },
      })

      const abort = () => {
        const reason = asError(signal.reason)
        ;(answer ?? outgoing).destroy(reason)
        // Node reports the abort of a request that still waits for a connection only when it would have got one.
        if (!hasLeft) fail(reason)
      }
      const fail = (error: Error) => {
        signal.removeEventListener("abort", abort)
        reject(hasLeft ? error : notSent(error))
      }
      outgoing.on("error", fail)
      const closed = () => fail(new Error("the connection was closed"))
      outgoing.on("close", closed)
      outgoing.on("response", incoming => {
        answer = incoming
        outgoing.off("close", closed)
        incoming.on("close", () => signal.removeEventListener("abort", abort))
        if (signal.aborted) abort()
        const body = request.longLived ? inTurns(incoming) : incoming
        resolve({ status: incoming.statusCode ?? 0, headers: flat(incoming.headers), body })
      })

      // Nothing is written before `end`: Node keeps the head back until then. So the order is
      //   connection there → guard → head and body leave, the last two within one turn of the event loop.
      const leave = (socket: Duplex) => {
        if (outgoing.destroyed) return
        if (!socket.writable) return outgoing.destroy(new Error("the connection was closed while it was idle"))
        try {
          request.guard?.()
        } catch (refusal) {
          return outgoing.destroy(asError(refusal))
        }
        hasLeft = true
        outgoing.end(body)
      }
      outgoing.on("socket", socket => {
        ready.get(socket)?.then(() => leave(socket)) // never, if it cannot be made; the error says so
      })

      signal.addEventListener("abort", abort, { once: true })
      if (signal.aborted) abort()
    })
  }

  return {
    async send(request) {
      const credential = await inTime(config.credentials.current(), request.signal)
      const response = await sendAs(credential, request)
      if (response.status !== 401) return response
      // A 401 was certainly not applied. Tokens are rotated, so a newer one may be available.
      const renewed = await inTime(config.credentials.renew(credential), request.signal).catch(() => undefined)
      if (!renewed) return response
      await drained(response) // frees the connection
      return await sendAs(renewed, request)
    },
    close() {
      for (const agent of Object.values(pools)) {
        agent.maxFreeSockets = 0 // those in use are ended, too, once they are free
        for (const sockets of Object.values(agent.freeSockets)) for (const socket of sockets ?? []) socket.destroy()
      }
    },
  }
}

/** An agent that records for each connection when it can be written to. */
function keepAliveAgent(isSecure: boolean, sockets: number, ready: WeakMap<Duplex, Promise<void>>): http.Agent {
  const options = { keepAlive: true, keepAliveMsecs: 15_000, maxSockets: sockets, timeout: idleMs }
  const agent = isSecure ? new (loadHttps().Agent)(options) : new Agent(options)
  // Recorded where the connection is made: one whose first request was given up is reused, connected or not yet.
  const connect = agent.createConnection.bind(agent)
  agent.createConnection = (to, callback) => {
    const socket = connect(to, callback)
    if (socket) {
      const isReady = new Promise<void>(resolve => {
        // TLS reports that it is connected while its last handshake message is on its way, and holds back our writes
        // for one more turn of the event loop. The guard would have been called that turn too early.
        socket.once(isSecure ? "secureConnect" : "connect", () => setImmediate(resolve))
      })
      ready.set(socket, isReady)
    }
    return socket
  }
  return agent
}

/**
 * Lets other work have a turn between two pieces. Node reads a socket up to 32 times before it looks at anything else.
 * That is two megabytes, or a tenth of a second's work for a list of pods, and the Lease must be renewed in between.
 */
async function* inTurns(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const piece of body) {
    yield piece
    await nextTurn()
  }
}

/** Without credentials nothing was sent; a browser login that takes too long does not outlive the request. */
function inTime<T>(credential: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(notSent(asError(signal.reason)))
    if (signal.aborted) abort()
    signal.addEventListener("abort", abort, { once: true })
    credential
      .then(resolve, cause => reject(notSent(asError(cause))))
      .finally(() => signal.removeEventListener("abort", abort))
  })
}

const notSent = (cause: Error) => new NotSent(cause.message, { cause })

async function drained({ body }: Response): Promise<void> {
  try {
    for await (const _ of body);
  } catch {
    // A refusal counts, even if its explanation was cut off.
  }
}

const asError = (reason: unknown) => (reason instanceof Error ? reason : new Error(String(reason)))

function flat(headers: http.IncomingHttpHeaders): Record<string, string | undefined> {
  const result: Record<string, string | undefined> = {}
  for (const [name, value] of Object.entries(headers)) result[name] = Array.isArray(value) ? value.join(", ") : value
  return result
}
