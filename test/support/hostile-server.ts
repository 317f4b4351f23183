import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { NotSent, type Request, type Response, type Transport } from "../../src/runtime/client/transport.ts"
import type { Clock } from "../../src/runtime/clock.ts"
import { apiVersionOf, type KubeObject, keyOf, type ObjectName, type Resource } from "../../src/runtime/resource.ts"

/** What can be done to one request. */
export type Fault =
  | { do: "answer"; status: number; retryAfterSeconds?: number }
  /** The connection is refused: nothing was sent. */
  | { do: "refuse" }
  /** Accepted, and never answered. */
  | { do: "hang" }
  /** The connection breaks after so many bytes of the body, also in the middle of a line. */
  | { do: "cut"; afterBytes: number }
  /** The body comes in pieces of so many bytes, one every so many milliseconds. */
  | { do: "dribble"; bytes: number; everyMs: number }
  /** A watch that says nothing, not even a bookmark. */
  | { do: "silence" }
  /** A watch whose only event is an ERROR. */
  | { do: "errorEvent"; code: number }
  /** 200, and a body that is not JSON. */
  | { do: "garbage" }

/** What can be done to the order of events, from now on. */
export type Mischief = { duplicate?: boolean; reorder?: boolean; bookmarks?: boolean }

type Event = { type: "ADDED" | "MODIFIED" | "DELETED"; version: number; object: KubeObject }

type Watch = {
  send(line: object): void
  body: Body
  silent: boolean
}

export type HostileServer = ReturnType<typeof hostileServer>

/**
 * Serves one resource from a small versioned store, badly: lists in pages of one snapshot, watches with bookmarks and
 * WatchList, 410 for what was compacted away, and whatever fault is set. It answers the client's
 * transport in process, and the same over HTTP on the loopback address. GET only: its objects are changed directly.
 */
export function hostileServer({ resource, clock }: { resource: Resource; clock: Clock }) {
  const objects = new Map<string, KubeObject>()
  const snapshots = new Map<string, { version: number; items: KubeObject[] }>()
  const watches = new Set<Watch>()
  const faults: Record<"list" | "watch", Fault[]> = { list: [], watch: [] }
  const requests: string[] = []
  let history: Event[] = []
  let version = 1
  let compactedAt = 1
  let uids = 0
  let mischief: Mischief = {}
  let watchList: "served" | "refused" | "ignored" = "served"
  let goneAs: "status" | "event" = "status"
  let down: Fault | undefined

  function happen(type: Event["type"], object: KubeObject) {
    const event = { type, version, object }
    history.push(event)
    for (const watch of watches) watch.send({ type, object })
  }

  function put({ name, namespace }: ObjectName, fields: object = {}) {
    const key = keyOf({ name, namespace })
    const before = objects.get(key)
    version++
    const metadata = {
      name,
      ...(namespace !== undefined && { namespace }),
      uid: before?.metadata.uid ?? `uid-${++uids}`,
      resourceVersion: String(version),
    }
    const object = { apiVersion: apiVersionOf(resource), kind: resource.kind, ...fields, metadata }
    objects.set(key, object)
    happen(before ? "MODIFIED" : "ADDED", object)
    return object
  }

  function remove(name: ObjectName) {
    const before = objects.get(keyOf(name))
    if (!before) return
    version++
    objects.delete(keyOf(name))
    happen("DELETED", { ...before, metadata: { ...before.metadata, resourceVersion: String(version) } })
  }

  const bookmark = (annotations?: Record<string, string>) => ({
    type: "BOOKMARK",
    object: {
      apiVersion: apiVersionOf(resource),
      kind: resource.kind,
      metadata: { name: "", resourceVersion: String(version), ...(annotations && { annotations }) },
    },
  })

  function list(query: URLSearchParams): Response {
    const limit = Number(query.get("limit") ?? 0) || Number.POSITIVE_INFINITY
    const [id = String(version), start = "0"] = (query.get("continue") ?? undefined)?.split(":") ?? []
    if (!query.has("continue")) snapshots.set(id, { version, items: [...objects.values()] })
    const snapshot = snapshots.get(id)
    if (!snapshot) return status(410, "Expired")
    const end = Number(start) + limit
    return json(200, {
      kind: `${resource.kind}List`,
      apiVersion: apiVersionOf(resource),
      metadata: {
        resourceVersion: String(snapshot.version),
        ...(end < snapshot.items.length && { continue: `${id}:${end}` }),
      },
      items: snapshot.items.slice(Number(start), end).map(({ apiVersion: _, kind: __, ...item }) => item),
    })
  }

  function watch(query: URLSearchParams, fault: Fault | undefined): Response {
    const body = createBody(clock, fault)
    const initial = query.get("sendInitialEvents") === "true"
    if (initial && watchList === "refused") return status(422, "Invalid")
    const from = initial || !query.get("resourceVersion") ? undefined : Number(query.get("resourceVersion"))
    if (from !== undefined && from < compactedAt) {
      if (goneAs === "status") return status(410, "Expired")
      body.push(line({ type: "ERROR", object: statusObject(410, "Expired") }))
      body.end()
      return { status: 200, headers: {}, body }
    }
    if (fault?.do === "errorEvent") {
      body.push(line({ type: "ERROR", object: statusObject(fault.code, "InternalError") }))
      body.end()
      return { status: 200, headers: {}, body }
    }

    // A pair that changes places leaves in one piece: if only its second half arrived, what was lost could not be known.
    let held: string | undefined
    const release = () => {
      if (held !== undefined) body.push(held)
      held = undefined
    }
    const entry: Watch = {
      body,
      silent: fault?.do === "silence",
      send(event) {
        if (entry.silent) return
        const text = line(event).repeat(mischief.duplicate ? 2 : 1)
        if (held !== undefined) {
          body.push(text + held)
          held = undefined
        } else if (mischief.reorder && !fault) {
          held = text
          clock.after(200, release)
        } else body.push(text)
      },
    }
    watches.add(entry)
    const timeoutMs = Number(query.get("timeoutSeconds") ?? 1800) * 1000
    const sendBookmark = () => {
      if (mischief.bookmarks !== false) entry.send(bookmark())
    }
    // As a real server does: the last one 2 s before the end.
    const timers = [
      clock.after(timeoutMs, () => body.end()),
      ...(timeoutMs > 2000 ? [clock.after(timeoutMs - 2000, sendBookmark)] : []),
    ]
    const tick = () => {
      sendBookmark()
      timers[2] = clock.after(60_000, tick)
    }
    timers[2] = clock.after(60_000, tick)
    body.onEnd(() => {
      watches.delete(entry)
      for (const cancel of timers) cancel()
    })

    if (!entry.silent) {
      if (from === undefined) for (const object of objects.values()) body.push(line({ type: "ADDED", object }))
      else for (const { type, object } of history.filter(event => event.version > from)) entry.send({ type, object })
      if (initial && watchList === "served") body.push(line(bookmark({ "k8s.io/initial-events-end": "true" })))
    }
    return { status: 200, headers: {}, body }
  }

  async function handle(path: string, signal: AbortSignal): Promise<Response> {
    const query = new URLSearchParams(path.split("?")[1])
    const verb = query.get("watch") === "true" || query.get("watch") === "1" ? "watch" : "list"
    requests.push(`${verb} ${path}`)
    const fault = down ?? faults[verb].shift()
    if (fault?.do === "refuse") throw new NotSent("connection refused")
    if (fault?.do === "hang")
      return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason), { once: true }))
    if (fault?.do === "answer") return status(fault.status, "", fault.retryAfterSeconds)
    if (fault?.do === "garbage") return bodyOf(200, "<html>welcome to the hotel wifi</html>\n")
    const response = verb === "watch" ? watch(query, fault) : list(query)
    if (!(response.body instanceof Object && "onAbort" in response.body)) return throttled(response, fault)
    signal.addEventListener("abort", () => (response.body as Body).onAbort(signal.reason), { once: true })
    return response
  }

  /** A finished answer, made to break or to drip like a stream. */
  async function throttled(response: Response, fault: Fault | undefined): Promise<Response> {
    if (fault?.do !== "cut" && fault?.do !== "dribble") return response
    const body = createBody(clock, fault)
    for await (const chunk of response.body) body.push(Buffer.from(chunk).toString())
    body.end()
    return { ...response, body }
  }

  const transport: Transport = {
    async send(request: Request) {
      request.signal.throwIfAborted()
      request.guard?.()
      return handle(request.path, request.signal)
    },
    close() {},
  }

  return {
    transport,
    objects: objects as ReadonlyMap<string, KubeObject>,
    /** Every request, in order: `list /api/…` or `watch /api/…`. */
    requests: requests as readonly string[],
    put,
    remove,
    get version() {
      return String(version)
    },
    get openWatches() {
      return watches.size
    },
    /** Lets versions go by, as writes to other resources do. */
    skipVersions(count: number) {
      version += count
    },
    bookmark() {
      for (const watch of watches) watch.send(bookmark())
    },
    /** Sends any event to all watches. */
    say(event: object) {
      for (const watch of watches) watch.send(event)
    },
    /** Forgets the past: a request for it gets a 410, as a status or as an ERROR event. Lists under way expire, too. */
    compact(as: "status" | "event" = "status") {
      compactedAt = version
      goneAs = as
      history = []
      snapshots.clear()
    },
    /** As after a restore from an old backup: another state, and a lower version. */
    rewind(to: { version: number; objects: readonly KubeObject[] }) {
      objects.clear()
      for (const object of to.objects) objects.set(keyOf(object.metadata), object)
      version = compactedAt = to.version
      history = []
    },
    /** All watches break, or with `cleanly` end in good order. */
    cut({ cleanly = false } = {}) {
      for (const { body } of [...watches]) cleanly ? body.end() : body.fail(new Error("socket hang up"))
    },
    /** Present watches stay open and say nothing more. */
    goSilent() {
      for (const watch of watches) watch.silent = true
    },
    /** Sends the beginning of an event to all watches, then breaks the connection. */
    sendHalf() {
      for (const { body } of [...watches]) {
        body.push('{"type":"ADDED","object":{"metadata":{"name":"ha')
        body.fail(new Error("socket hang up"))
      }
    },
    misbehave(next: Mischief) {
      mischief = next
    },
    /** The next request of this verb meets the fault. */
    next(verb: "list" | "watch", fault: Fault) {
      faults[verb].push(fault)
    },
    /** Every request meets the fault, until called without one. */
    breakDown(fault?: Fault) {
      down = fault
    },
    serveWatchList(how: "served" | "refused" | "ignored") {
      watchList = how
    },
    heal() {
      mischief = {}
      down = undefined
      faults.list = []
      faults.watch = []
    },
    /** The same behind a real socket. */
    async listen(): Promise<{ url: string; close: () => Promise<void> }> {
      const server = createServer(async (request, response) => {
        const gone = new AbortController()
        response.on("close", () => gone.abort(new Error("the client went away")))
        try {
          const answer = await handle(request.url ?? "/", gone.signal)
          const headers = Object.entries(answer.headers).filter((header): header is [string, string] => !!header[1])
          response.writeHead(answer.status, Object.fromEntries(headers))
          response.flushHeaders()
          for await (const chunk of answer.body) response.write(chunk)
          response.end()
        } catch {
          response.destroy()
        }
      })
      await new Promise<void>(resolve => server.listen(0, "127.0.0.1", resolve))
      return {
        url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
        close: () =>
          new Promise(resolve => {
            server.close(() => resolve())
            server.closeAllConnections()
          }),
      }
    },
  }
}

const line = (value: object) => `${JSON.stringify(value)}\n`

const statusObject = (code: number, reason: string) => ({
  kind: "Status",
  apiVersion: "v1",
  status: "Failure",
  message: `this server answers ${code}`,
  reason,
  code,
})

const status = (code: number, reason: string, retryAfterSeconds?: number): Response => ({
  ...json(code, statusObject(code, reason)),
  headers: {
    "content-type": "application/json",
    ...(retryAfterSeconds !== undefined && { "retry-after": String(retryAfterSeconds) }),
  },
})

const json = (code: number, value: object) => bodyOf(code, JSON.stringify(value))

function bodyOf(code: number, text: string): Response {
  async function* body() {
    yield Buffer.from(text)
  }
  return { status: code, headers: { "content-type": "application/json" }, body: body() }
}

type Body = AsyncIterable<Uint8Array> & {
  push(text: string): void
  end(): void
  fail(error: Error): void
  onAbort(reason: unknown): void
  onEnd(callback: () => void): void
}

/** A stream that is written to from outside, and ends, breaks or drips on request. */
function createBody(clock: Clock, fault?: Fault): Body {
  const chunks: Uint8Array[] = []
  let finished: { error?: unknown } | undefined
  let wake: () => void = () => {}
  let onEnd: () => void = () => {}
  let left = fault?.do === "cut" ? fault.afterBytes : Number.POSITIVE_INFINITY

  const finish = (how: { error?: unknown }) => {
    if (finished) return
    finished = how
    onEnd()
    wake()
  }

  function push(text: string) {
    if (finished) return
    const bytes = Buffer.from(text)
    chunks.push(bytes.subarray(0, left))
    left -= bytes.length
    if (left <= 0) finish({ error: new Error("socket hang up") })
    wake()
  }

  async function* read(): AsyncGenerator<Uint8Array> {
    try {
      for (;;) {
        const chunk = chunks.shift()
        if (chunk && fault?.do === "dribble") {
          for (let at = 0; at < chunk.length && !finished?.error; at += fault.bytes) {
            await new Promise<void>(resolve => {
              const cancel = clock.after(fault.everyMs, resolve)
              wake = () => {
                if (!finished?.error) return
                cancel()
                resolve()
              }
            })
            if (!finished?.error) yield chunk.subarray(at, at + fault.bytes)
          }
        } else if (chunk) yield chunk
        else if (finished?.error) throw finished.error
        else if (finished) return
        else
          await new Promise<void>(resolve => {
            wake = resolve
          })
      }
    } finally {
      finish({})
    }
  }

  return {
    [Symbol.asyncIterator]: read,
    push,
    end: () => finish({}),
    fail: error => finish({ error }),
    onAbort(reason) {
      chunks.length = 0
      finish({ error: reason })
    },
    onEnd(callback) {
      onEnd = callback
    },
  }
}
