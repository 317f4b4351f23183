import { type Instant, parseInstant } from "#lib/instant.ts"
import { type Clock, sleep } from "../clock.ts"
import { jitter, type Random } from "../random.ts"
import { apiVersionOf, type KubeObject, type ObjectName, type Resource, resourceName } from "../resource.ts"
import type {
  Client,
  DeleteOptions,
  List,
  ListOptions,
  Patch,
  WatchEvent,
  WatchOptions,
  WriteOptions,
} from "./client.ts"
import { KubeError } from "./errors.ts"
import { failureOf } from "./failure.ts"
import { LineSplitter } from "./lines.ts"
import { collectionPath, groupVersionPath, objectPath, type Query, rawPath, subject } from "./path.ts"
import { ConfigError } from "./server-config.ts"
import { NotSent, type Request, type Response, type Transport } from "./transport.ts"

export type RequestInfo = {
  verb: Verb
  /** `pods`, `deployments.apps/status`, or the path of a raw request. */
  resource: string
  /** HTTP status; 0 where there was no answer. */
  code: number
  durationMs: number
}

export type ClientOptions = {
  transport: Transport
  clock: Clock
  random: Random
  userAgent?: string | undefined
  /** Its requests never wait for those of other clients. */
  isUrgent?: boolean | undefined
  /** Called before each write leaves; throws if this process may not write any more. */
  guard?: (() => void) | undefined
  /** Called for every request when its answer begins, retries included: for metrics. */
  onRequest?: ((info: RequestInfo) => void) | undefined
  /** Called with the server's warnings (deprecated APIs, unknown fields), once per answer. */
  onWarning?: ((message: string) => void) | undefined
}

type Verb = "get" | "list" | "watch" | "create" | "update" | "patch" | "delete"

const deadlinesMs = { list: 60_000, other: 30_000 }

/**
 * An object in etcd has at most 1.5 MB (CRDs sent through aggregated servers a little more). A list of 256 MB is about
 * 50,000 pods, more than should be listed at once, and still fits into one string.
 */
const maxBytes = { object: 16 << 20, list: 256 << 20, event: 64 << 20, failure: 1 << 20 }

/** Repeats after the first try, for requests that certainly changed nothing. */
const retries = { asked: 4, read: 2, unsent: 1 }

const patchTypes: Record<Patch["type"], string> = {
  merge: "application/merge-patch+json",
  strategic: "application/strategic-merge-patch+json",
  json: "application/json-patch+json",
  apply: "application/apply-patch+yaml", // JSON is YAML
}

/** One request to the server, with all its retries. */
type Call = {
  verb: Verb
  /** "creating pods web/a", for messages. */
  doing: string
  resource: string
  method: Request["method"]
  path: string
  body?: object
  contentType?: string
  accept?: string
  deadlineMs: number
  maxBytes: number
  signal?: AbortSignal | undefined
}

type Write = Pick<Call, "method" | "body" | "contentType"> & {
  verb: keyof typeof writing
  resource: Resource
  name: ObjectName
  options: WriteOptions
  force?: boolean | undefined
}

const writing = { create: "creating", update: "replacing", patch: "patching" }

export function createClient(options: ClientOptions): Client {
  const { transport, clock, random, guard, isUrgent, onRequest, onWarning, userAgent = "aim" } = options
  let toldTime: Instant | undefined

  /** Sends once. Resolves with the head of the answer, whatever its status. */
  async function open(call: Call, signal: AbortSignal, more?: Pick<Request, "longLived">): Promise<Response> {
    const startedAt = clock.monotonic()
    let code = 0
    let refusal: { error: unknown } | undefined
    const askGuard = () => {
      try {
        guard?.()
      } catch (error) {
        refusal = { error }
        throw error
      }
    }
    const contentType = call.body && { "content-type": call.contentType ?? "application/json" }
    const request: Request = {
      method: call.method,
      path: call.path,
      headers: { accept: call.accept ?? "application/json", "user-agent": userAgent, ...contentType },
      body: call.body && JSON.stringify(call.body),
      signal,
      guard: writes(call) ? askGuard : undefined,
      isUrgent,
      ...more,
    }
    try {
      const response = await transport.send(request)
      code = response.status
      toldTime = parseInstant(response.headers.date) ?? toldTime
      return response
    } catch (cause) {
      if (!refusal) throw noAnswer(call, cause, signal)
      const { error } = refusal
      throw new KubeError("WritesRefused", `${call.doing}: ${messageOf(error)}`, { cause: error })
    } finally {
      onRequest?.({ verb: call.verb, resource: call.resource, code, durationMs: clock.monotonic() - startedAt })
    }
  }

  async function attempt(call: Call, signal: AbortSignal): Promise<{ text: string; headers: Response["headers"] }> {
    const response = await open(call, signal)
    const { status, headers } = response
    if (status < 200 || status > 299) throw await refused(call, response)
    if (onWarning && headers.warning) for (const warning of warnings(headers.warning)) onWarning(warning)
    let bytes: Buffer | undefined
    try {
      bytes = await readAll(response.body, call.maxBytes)
    } catch (cause) {
      throw noAnswer(call, cause, signal)
    }
    if (bytes) return { text: bytes.toString("utf8"), headers }
    const problem = `${call.doing}: the answer is larger than ${call.maxBytes >> 20} MB`
    throw writes(call)
      ? new KubeError("UnknownOutcome", problem)
      : new KubeError("Invalid", `${problem}: ask for less (limit)`)
  }

  /** The error in an answer that is not a 2xx. The status decides, even if the explanation was cut off. */
  async function refused(call: Call, { status, headers, body }: Response): Promise<KubeError> {
    const bytes = await readAll(body, maxBytes.failure).catch(() => undefined)
    return failureOf(call.doing, writes(call), { status, headers, body: bytes?.toString("utf8") ?? "" }, clock.now())
  }

  /** Sends until there is an answer, or until a retry within the deadline is pointless. */
  async function ask(call: Call): Promise<{ text: string; headers: Response["headers"] }> {
    const deadline = clock.monotonic() + call.deadlineMs
    const life = lifetime(call.signal)
    const cancelTimer = clock.after(call.deadlineMs, () =>
      life.end(new Error(`no answer within ${call.deadlineMs / 1000} s`)),
    )
    try {
      for (let failures = 1; ; failures++) {
        try {
          return await attempt(call, life.signal)
        } catch (error) {
          const waitMs = life.signal.aborted ? undefined : retryIn(call, error, failures)
          if (waitMs === undefined || clock.monotonic() + waitMs >= deadline) throw error
          if (waitMs > 0) await sleep(clock, waitMs, life.signal).catch(() => Promise.reject(error))
        }
      }
    } finally {
      cancelTimer()
      life.release()
    }
  }

  /** How long to wait before the retry, or undefined where a retry could do harm or would not help. */
  function retryIn(call: Call, error: unknown, failures: number): number | undefined {
    if (!(error instanceof KubeError)) return undefined
    const { kind, retryAfterMs, cause } = error
    // The user has to act, and a failed login should not be asked for three times.
    if (cause instanceof NotSent && cause.cause instanceof ConfigError) return undefined
    if (kind !== "Throttled" && kind !== "Unreachable") return undefined // an Unreachable write never left
    if (kind === "Throttled" || retryAfterMs !== undefined) {
      if (failures > retries.asked) return undefined
      // Never sooner than the server asked, and not all clients at the same moment.
      return retryAfterMs === undefined ? jitter(random, 250 * 2 ** failures) : retryAfterMs * (1 + 0.2 * random.next())
    }
    if (failures > (writes(call) ? retries.unsent : retries.read)) return undefined
    // The first retry is immediate: mostly the server had closed a kept-alive connection.
    return failures === 1 ? 0 : jitter(random, 250)
  }

  async function askFor<T>(call: Call): Promise<T> {
    return parse(call, (await ask(call)).text)
  }

  function parse<T>(call: Call, text: string): T {
    try {
      return JSON.parse(text)
    } catch (cause) {
      throw new KubeError(writes(call) ? "UnknownOutcome" : "Unreachable", `${call.doing}: the answer is not JSON`, {
        cause,
      })
    }
  }

  function write<T>({ verb, resource, name, options, force, ...content }: Write): Promise<T> {
    const { subresource, deadlineMs = deadlinesMs.other } = options
    const query: Query = {
      fieldManager: options.fieldManager ?? "aim",
      // Otherwise the server silently drops a field that it does not know, and the write seems to have worked.
      fieldValidation: "Strict",
      dryRun: options.dryRun ? "All" : undefined,
      force,
      timeout: serverTimeout(deadlineMs),
    }
    const isNew = verb === "create" && subresource === undefined
    if (isNew && resource.namespaced && name.namespace === undefined)
      throw new KubeError("Invalid", `creating ${subject(resource, name)}: metadata.namespace is missing`)
    return askFor<T>({
      verb,
      doing: `${writing[verb]} ${subject(resource, name)}`,
      resource: withSubresource(resource, subresource),
      path: isNew
        ? collectionPath(resource, name.namespace, query)
        : objectPath(resource, name, { subresource, query }),
      deadlineMs,
      maxBytes: maxBytes.object,
      ...content,
    })
  }

  async function* watch<T extends KubeObject>(
    resource: Resource,
    options: WatchOptions,
    signal: AbortSignal,
  ): AsyncGenerator<WatchEvent<T>> {
    const { namespace, silenceMs, sendInitialEvents, metadataOnly, ...selection } = options
    const query: Query = {
      watch: true,
      allowWatchBookmarks: true,
      labelSelector: selection.labelSelector,
      fieldSelector: selection.fieldSelector,
      resourceVersion: selection.resourceVersion,
      timeoutSeconds: selection.timeoutSeconds,
      ...(sendInitialEvents && { sendInitialEvents: true, resourceVersionMatch: "NotOlderThan" }),
    }
    const call: Call = {
      verb: "watch",
      doing: `${sendInitialEvents ? "listing" : "watching"} ${subject(resource, { namespace })}`,
      resource: resourceName(resource),
      method: "GET",
      path: collectionPath(resource, namespace, query),
      ...(metadataOnly && { accept: metadataAs("PartialObjectMetadata") }),
      deadlineMs: silenceMs ?? deadlinesMs.list,
      maxBytes: maxBytes.event,
    }
    if (signal.aborted) return
    const life = lifetime(signal)
    const silence = silenceTimer(clock, life.end)
    try {
      silence.listen(call.deadlineMs)
      const response = await open(call, life.signal, { longLived: true })
      if (response.status !== 200) throw await refused(call, response)

      const lines = new LineSplitter(maxBytes.event)
      const chunks = response.body[Symbol.asyncIterator]()
      for (;;) {
        if (silenceMs === undefined) silence.stop()
        else silence.listen(silenceMs)
        const chunk = await chunks.next()
        silence.rest() // the reader's own time does not count as the server's silence
        if (chunk.done) break
        for (const line of lines.push(chunk.value)) if (line !== "") yield parseEvent<T>(line)
      }
      if (lines.rest > 0) throw new Error("the stream ended in the middle of an event")
    } catch (error) {
      if (signal.aborted) return
      throw error instanceof KubeError ? error : noAnswer(call, error, life.signal)
    } finally {
      silence.stop()
      life.release()
      life.end(new Error("the watch is over")) // ends the request if our reader left before the server did
    }
  }

  async function list<T extends KubeObject>(resource: Resource, options: ListOptions = {}, signal?: AbortSignal) {
    const { namespace, metadataOnly, ...query } = options
    const answer = await askFor<Partial<List<T>> | null>({
      verb: "list",
      doing: `listing ${subject(resource, { namespace })}`,
      resource: resourceName(resource),
      method: "GET",
      path: collectionPath(resource, namespace, query),
      ...(metadataOnly && { accept: metadataAs("PartialObjectMetadataList") }),
      deadlineMs: deadlinesMs.list,
      maxBytes: maxBytes.list,
      signal,
    })
    if (!answer?.metadata) throw new KubeError("Unreachable", `listing ${subject(resource, { namespace })}: not a list`)
    const items = answer.items ?? [] // Go writes an empty slice as null
    // In a watch the server names the kind of each object, in a list it does not. Callers get it in both.
    const apiVersion = apiVersionOf(resource)
    for (const item of items) {
      item.apiVersion ??= apiVersion
      item.kind ??= resource.kind
    }
    return { metadata: answer.metadata, items }
  }

  return {
    async get(resource, name) {
      return askFor({
        verb: "get",
        doing: `getting ${subject(resource, name)}`,
        resource: resourceName(resource),
        method: "GET",
        path: objectPath(resource, name),
        deadlineMs: deadlinesMs.other,
        maxBytes: maxBytes.object,
      })
    },
    list,
    watch,
    async create(resource, object, options = {}) {
      const body = typed(resource, object, options)
      return write({ verb: "create", method: "POST", resource, name: object.metadata, body, options })
    },
    async replace(resource, object, options = {}) {
      const body = typed(resource, object, options)
      return write({ verb: "update", method: "PUT", resource, name: object.metadata, body, options })
    },
    async patch(resource, name, patch, options = {}) {
      const contentType = patchTypes[patch.type]
      const what = { verb: "patch", method: "PATCH", resource, name, contentType, options } as const
      if (patch.type !== "apply") return write({ ...what, body: patch.body })
      return write({ ...what, body: typed(resource, patch.body, options), force: patch.force })
    },
    async delete(resource, name, options = {}) {
      const { subresource, deadlineMs = deadlinesMs.other } = options
      await ask({
        verb: "delete",
        doing: `deleting ${subject(resource, name)}`,
        resource: withSubresource(resource, subresource),
        method: "DELETE",
        path: objectPath(resource, name, { subresource, query: { timeout: serverTimeout(deadlineMs) } }),
        body: deleteBody(options),
        deadlineMs,
        maxBytes: maxBytes.object,
      })
    },
    async discover(apiVersion, kind) {
      const parts = apiVersion.split("/")
      if (parts.length > 2) throw new KubeError("Invalid", `${JSON.stringify(apiVersion)} is not GROUP/VERSION`)
      const version = parts.pop() ?? ""
      const group = parts[0] ?? ""
      type ResourceList = { resources?: { name: string; kind: string; namespaced: boolean }[] } | null
      try {
        const answer = await askFor<ResourceList>({
          verb: "get",
          doing: `discovering ${kind} in ${apiVersion}`,
          resource: "discovery",
          method: "GET",
          path: groupVersionPath(group, version),
          deadlineMs: deadlinesMs.other,
          maxBytes: maxBytes.object,
        })
        const found = answer?.resources?.find(entry => entry.kind === kind && !entry.name.includes("/"))
        return found && { group, version, plural: found.name, kind, namespaced: found.namespaced }
      } catch (error) {
        if (error instanceof KubeError && error.kind === "NotFound") return undefined
        throw error
      }
    },
    async raw(path, signal) {
      const call: Call = {
        verb: "get",
        doing: `getting ${path.slice(0, 80)}`,
        resource: path.split("?", 1)[0] ?? "",
        method: "GET",
        path: rawPath(path),
        deadlineMs: deadlinesMs.other,
        maxBytes: maxBytes.object,
        signal,
      }
      const { text, headers } = await ask(call)
      return headers["content-type"]?.includes("json") ? parse(call, text) : text
    },
    serverTime: () => toldTime,
    close: () => transport.close(),
  }
}

/** A server without support for it sends whole objects, which include the metadata. */
const metadataAs = (kind: string) => `application/json;as=${kind};g=meta.k8s.io;v=v1,application/json`

const writes = ({ method }: Pick<Call, "method">) => method !== "GET"

/** The connection broke before the answer was complete. Only a request that may have arrived leaves a write open. */
function noAnswer(call: Call, cause: unknown, signal: AbortSignal): KubeError {
  const why = messageOf(signal.aborted ? signal.reason : cause)
  const kind = writes(call) && !(cause instanceof NotSent) ? "UnknownOutcome" : "Unreachable"
  return new KubeError(kind, `${call.doing}: ${why}`, { cause })
}

const messageOf = (error: unknown) => (error instanceof Error && error.message ? error.message : String(error))

/** The whole body, or undefined if it is longer than `max`. Leaving early ends the stream and its connection. */
async function readAll(body: AsyncIterable<Uint8Array>, max: number): Promise<Buffer | undefined> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of body) {
    size += chunk.length
    if (size > max) return undefined
    chunks.push(chunk)
  }
  const [only] = chunks
  // In process a body is one chunk of up to megabytes: copying it would be most of the cost of a list.
  if (only && chunks.length === 1) return Buffer.from(only.buffer, only.byteOffset, only.byteLength)
  return Buffer.concat(chunks, size)
}

/** A signal that ends with its parent or by `end`. `release` lets go of the parent, which may live for ever. */
function lifetime(parent: AbortSignal | undefined) {
  const controller = new AbortController()
  const follow = () => controller.abort(parent?.reason)
  if (parent?.aborted) follow()
  parent?.addEventListener("abort", follow, { once: true })
  return {
    signal: controller.signal,
    end: (reason: Error) => controller.abort(reason),
    release: () => parent?.removeEventListener("abort", follow),
  }
}

/** Ends something after a time of listening without a byte. One timer, however many bytes arrive. */
function silenceTimer(clock: Clock, end: (reason: Error) => void) {
  let limitMs = 0
  let listeningSince: number | undefined
  let cancel: (() => void) | undefined
  const arm = (ms: number) => {
    cancel = clock.after(ms, () => {
      const quietMs = listeningSince === undefined ? 0 : clock.monotonic() - listeningSince
      if (quietMs >= limitMs) end(new Error(`not a byte for ${limitMs / 1000} s`))
      else arm(limitMs - quietMs)
    })
  }
  return {
    listen(ms: number) {
      listeningSince = clock.monotonic()
      if (ms === limitMs) return
      cancel?.()
      limitMs = ms
      arm(ms)
    },
    rest() {
      listeningSince = undefined
    },
    stop() {
      cancel?.()
      limitMs = 0
    },
  }
}

const eventTypes = new Set(["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"])

function parseEvent<T>(line: string): WatchEvent<T> {
  const event = JSON.parse(line)
  if (!eventTypes.has(event?.type) || typeof event.object !== "object" || event.object === null)
    throw new Error("a line of the stream is not a watch event")
  return event
}

/** `Warning: 299 - "text"`, several joined by commas. */
function* warnings(header: string): Generator<string> {
  for (const [, text = ""] of header.matchAll(/\d{3} \S+ "((?:[^"\\]|\\.)*)"/g)) yield text.replace(/\\(.)/g, "$1")
}

const withSubresource = (resource: Resource, subresource: string | undefined) =>
  subresource ? `${resourceName(resource)}/${subresource}` : resourceName(resource)

/** The server needs apiVersion and kind. A Scale is not of its resource's kind and carries its own. */
const typed = (resource: Resource, object: object, { subresource }: WriteOptions) =>
  subresource === "scale" ? object : { apiVersion: apiVersionOf(resource), kind: resource.kind, ...object }

/** If there is a body, the server reads no options from the query, so all of them are here. */
function deleteBody({ uid, resourceVersion, propagationPolicy, dryRun }: DeleteOptions): object {
  const preconditions = { ...(uid && { uid }), ...(resourceVersion && { resourceVersion }) }
  return {
    apiVersion: "v1",
    kind: "DeleteOptions",
    ...(Object.keys(preconditions).length > 0 && { preconditions }),
    ...(propagationPolicy && { propagationPolicy }),
    ...(dryRun && { dryRun: ["All"] }),
  }
}

/** The server gives up when we do: a write with an unknown outcome cannot be applied much later than that. */
const serverTimeout = (deadlineMs: number) => `${Math.max(1, Math.ceil(deadlineMs / 1000))}s`
