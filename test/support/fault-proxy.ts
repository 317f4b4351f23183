import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import {
  createServer as createHttpServer,
  Agent as HttpAgent,
  request as httpRequest,
  type IncomingMessage,
  type ServerResponse,
} from "node:http"
import { createServer as createHttpsServer, Agent as HttpsAgent, request as httpsRequest } from "node:https"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { buffer } from "node:stream/consumers"
import { makeLoopbackCertificate } from "#tools/kube/certificates.ts"
import { kubeconfig } from "#tools/kube/components.ts"

/** Which requests a rule is about. What is left out matches everything. */
export type Match = {
  method?: string | string[]
  /** Tried on path and query together. */
  path?: RegExp
  /** Tried on what the request carries. */
  body?: RegExp
  /** Only the nth of the requests that match, counted from 1 since the rule was made. */
  nth?: number
  /** Only the first so many of those that match. */
  times?: number
}

/** What is done to a request. */
export type Fault =
  /** Reaches the server so much later, even when the client has gone by then. */
  | { do: "delay"; ms: number }
  /** The connection breaks before anything reaches the server. */
  | { do: "cut" }
  /** The server does it, and the connection breaks before the client hears of it. */
  | { do: "swallow" }
  /** Reaches the server when the rule is released, even when the client has gone by then. */
  | { do: "hold" }
  /** The server does it, and the client hears of it when the rule is released. */
  | { do: "holdAnswer" }
  /** The proxy answers in the server's place. */
  | { do: "answer"; status: number; reason?: string; retryAfterSeconds?: number }
  /** Every event of a watch comes twice. */
  | { do: "duplicateEvents" }
  /** The events of a watch wait until the rule is released. */
  | { do: "holdEvents" }

export type Rule = {
  /** How many requests the fault has struck. */
  readonly hits: number
  /**
   * Resolves when the fault has struck for the first time; for `swallow` and `holdAnswer`, when the server has done the
   * work.
   */
  readonly struck: Promise<void>
  /** Lets go what `hold`, `holdAnswer` and `holdEvents` hold, now and from now on. */
  release(): void
  /** The rule no longer applies to new requests; what it holds is released. */
  remove(): void
}

export type SeenRequest = {
  method: string
  /** With query. */
  path: string
  /** What the request carried, as text. */
  body: string
  /** Set once the server or the proxy has answered. */
  status?: number
  /** What was done to it, if anything. */
  fault?: Fault["do"]
}

export type FaultProxy = {
  server: string
  access: { server: string; certificateAuthority: string; token: string }
  /** Path of a kubeconfig that leads through the proxy, with the target's token. */
  kubeconfig: string
  /** Every request since the start or the last `forget`, in the order of arrival. */
  readonly requests: readonly SeenRequest[]
  /** The requests that change something. */
  writes(path?: RegExp): SeenRequest[]
  forget(): void
  /** From now on; the first rule that matches a request is the one that applies. */
  fault(rule: { match?: Match; do: Fault }): Rule
  /** Breaks the open watches (of paths that match). */
  cutWatches(path?: RegExp): void
  /** Breaks every connection and lets none through until the returned function is called. */
  disconnect(): () => void
  close(): Promise<void>
}

type Target = { server: string; certificateAuthority?: string; token?: string }

/**
 * Stands between a client and an API server and does to their talk what networks and processes do: delays it, cuts it,
 * loses answers. Requests are forwarded as they are, credentials included.
 */
export async function faultProxy({ target }: { target: Target }): Promise<FaultProxy> {
  const isTls = target.server.startsWith("https:")
  const folder = mkdtempSync(join(tmpdir(), "aim-fault-proxy-"))
  // Only what a test asks for is lost. The server behind closes a connection that was not used for 90 s, and a request may be
  // on its way on it: those that are not used are closed here first.
  const unused = { keepAlive: true, timeout: 30_000 }
  const agent = isTls ? new HttpsAgent({ ...unused, ca: target.certificateAuthority }) : new HttpAgent(unused)
  const send = isTls ? httpsRequest : httpRequest

  let requests: SeenRequest[] = []
  const rules: ActiveRule[] = []
  const watches = new Set<{ path: string; response: ServerResponse }>()

  async function handle(request: IncomingMessage, response: ServerResponse) {
    const seen: SeenRequest = { method: request.method ?? "", path: request.url ?? "", body: "" }
    requests.push(seen)
    // A held request outlives its client, so its body cannot be streamed from the client later.
    const body = await buffer(request)
    seen.body = body.toString()
    const rule = rules.find(candidate => candidate.takes(seen))
    const fault = rule?.fault
    if (fault) seen.fault = fault.do

    if (fault?.do !== "swallow" && fault?.do !== "holdAnswer") rule?.strike()
    switch (fault?.do) {
      case "cut":
        return response.destroy()
      case "answer":
        return answer(response, seen, fault)
      case "delay":
        await new Promise(resolve => setTimeout(resolve, fault.ms))
        break
      case "hold":
        await rule?.released
        break
    }
    await forward(request, body, response, seen, rule)
  }

  function forward(
    request: IncomingMessage,
    body: Buffer,
    response: ServerResponse,
    seen: SeenRequest,
    rule: ActiveRule | undefined,
  ) {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const headers = { ...request.headers, host: new URL(target.server).host }
    const sent = send(new URL(seen.path, target.server), { method: seen.method, headers, agent })
    sent.once("error", reject)
    sent.once("response", async (reply: IncomingMessage) => {
      seen.status = reply.statusCode ?? 0
      reply.once("error", reject)
      if (rule?.fault.do === "holdAnswer") {
        rule.strike()
        await rule.released
      }
      if (rule?.fault.do === "swallow") {
        reply.resume().once("end", () => {
          response.destroy()
          rule.strike()
          resolve()
        })
        return
      }
      response.writeHead(seen.status, reply.headers)
      if (isWatch(seen.path)) carryEvents(reply, response, seen, rule)
      else reply.pipe(response)
      reply.once("close", resolve)
      response.once("close", () => reply.destroy())
    })
    sent.end(body)
    return promise
  }

  function carryEvents(
    reply: IncomingMessage,
    response: ServerResponse,
    seen: SeenRequest,
    rule: ActiveRule | undefined,
  ) {
    const watch = { path: seen.path, response }
    watches.add(watch)
    response.once("close", () => watches.delete(watch))
    response.flushHeaders()
    const copies = rule?.fault.do === "duplicateEvents" ? 2 : 1
    let held: Buffer[] | undefined = rule?.fault.do === "holdEvents" && !rule.isReleased ? [] : undefined
    if (held)
      rule?.released.then(() => {
        for (const event of held ?? []) response.write(event)
        held = undefined
      })
    const deliver = (event: Buffer) => {
      if (held) held.push(event)
      else for (let copy = 0; copy < copies; copy++) response.write(event)
    }
    const lengthOf = reply.headers["content-type"]?.includes("protobuf") ? frameLength : lineLength
    let rest: Buffer = Buffer.alloc(0)
    reply.on("data", (chunk: Buffer) => {
      rest = Buffer.concat([rest, chunk])
      for (let length = lengthOf(rest); length > 0; length = lengthOf(rest)) {
        deliver(rest.subarray(0, length))
        rest = rest.subarray(length)
      }
    })
    reply.once("end", () => (held ? rule?.released.then(() => response.end()) : response.end()))
    reply.once("close", () => reply.complete || response.destroy())
  }

  const listener = (request: IncomingMessage, response: ServerResponse) => {
    handle(request, response).catch(() => response.destroy())
  }
  const files = isTls ? await makeLoopbackCertificate(folder) : undefined
  const identity = files && { cert: readFileSync(files.certificate, "utf8"), key: readFileSync(files.key, "utf8") }
  const server = identity ? createHttpsServer(identity, listener) : createHttpServer(listener)
  server.keepAliveTimeout = 0 // for the same reason, the client closes those that it does not use
  await new Promise<void>(resolve => server.listen(0, "127.0.0.1", resolve))

  const address = `${isTls ? "https" : "http"}://127.0.0.1:${(server.address() as AddressInfo).port}`
  const access = { server: address, certificateAuthority: identity?.cert ?? "", token: target.token ?? "" }
  const file = join(folder, "kubeconfig")
  writeFileSync(file, kubeconfig(access), { mode: 0o600 })

  const addRule = (rule: { match?: Match; do: Fault }, place: "first" | "last") => {
    const active = new ActiveRule(rule.match ?? {}, rule.do, () => rules.splice(rules.indexOf(active), 1))
    if (place === "first") rules.unshift(active)
    else rules.push(active)
    return active
  }

  return {
    server: address,
    access,
    kubeconfig: file,
    get requests() {
      return requests
    },
    writes: (path = /./) => requests.filter(seen => !/^(GET|HEAD)$/.test(seen.method) && path.test(seen.path)),
    forget() {
      requests = []
    },
    fault: rule => addRule(rule, "last"),
    cutWatches(path = /./) {
      for (const watch of watches) if (path.test(watch.path)) watch.response.destroy()
    },
    disconnect() {
      const rule = addRule({ do: { do: "cut" } }, "first")
      server.closeAllConnections()
      return () => rule.remove()
    },
    async close() {
      for (const rule of [...rules]) rule.remove()
      const closed = new Promise(resolve => server.close(resolve))
      server.closeAllConnections()
      agent.destroy()
      await closed
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

class ActiveRule implements Rule {
  hits = 0
  isReleased = false
  readonly fault: Fault
  readonly struck: Promise<void>
  readonly released: Promise<void>
  strike: () => void
  #match: Match
  #matched = 0
  #letGo: () => void
  #onRemove: () => void

  constructor(match: Match, fault: Fault, onRemove: () => void) {
    this.#match = match
    this.fault = fault
    this.#onRemove = onRemove
    const struck = Promise.withResolvers<void>()
    const released = Promise.withResolvers<void>()
    this.struck = struck.promise
    this.released = released.promise
    this.#letGo = released.resolve
    this.strike = () => {
      this.hits++
      struck.resolve()
    }
  }

  /** Whether the rule applies to this request; counts it. */
  takes({ method, path, body }: SeenRequest): boolean {
    const { method: methods = method, nth, times = Number.POSITIVE_INFINITY } = this.#match
    if (![methods].flat().includes(method)) return false
    if (path.search(this.#match.path ?? /^/) < 0 || body.search(this.#match.body ?? /^/) < 0) return false
    const count = ++this.#matched
    return nth === undefined ? count <= times : count === nth
  }

  release() {
    this.isReleased = true
    this.#letGo()
  }

  remove() {
    this.#onRemove()
    this.#onRemove = () => {}
    this.release()
  }
}

function answer(response: ServerResponse, seen: SeenRequest, fault: Fault & { do: "answer" }) {
  seen.status = fault.status
  const reason = fault.reason ?? reasons[fault.status] ?? "InternalError"
  const status = { kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", reason, code: fault.status }
  const wait = fault.retryAfterSeconds
  response.writeHead(fault.status, {
    "content-type": "application/json",
    ...(wait === undefined ? {} : { "retry-after": String(wait) }),
  })
  response.end(JSON.stringify({ ...status, message: "the fault proxy answered in the server's place" }))
}

const reasons: Record<number, string> = {
  401: "Unauthorized",
  403: "Forbidden",
  404: "NotFound",
  409: "Conflict",
  410: "Expired",
  429: "TooManyRequests",
  503: "ServiceUnavailable",
  504: "Timeout",
}

/** How long the first event is in a stream of lines; 0 while it is not complete. */
const lineLength = (bytes: Buffer) => bytes.indexOf("\n") + 1

/** The same in a stream of frames: four bytes of length, then the event. */
function frameLength(bytes: Buffer): number {
  const length = bytes.length < 4 ? Number.POSITIVE_INFINITY : 4 + bytes.readUInt32BE()
  return length <= bytes.length ? length : 0
}

const isWatch = (path: string) => /[?&]watch=(1|true)\b/.test(path)
