import { type Instant, parseInstant } from "#lib/instant.ts"
import { protobufType, readKubeObject } from "#lib/kube-protobuf.ts"
import { type Clock, sleep } from "../clock.ts"
import { jitter, type Random } from "../random.ts"
import { KubeError } from "./errors.ts"
import { failureOf } from "./failure.ts"
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

export type Verb = "get" | "list" | "watch" | "create" | "update" | "patch" | "delete"

export const deadlinesMs = { list: 60_000, other: 30_000 }

/**
 * An object in etcd has at most 1.5 MB (CRDs sent through aggregated servers a little more). A list of 256 MB is about
 * 50,000 pods, more than should be listed at once, and still fits into one string.
 */
export const maxBytes = { object: 16 << 20, list: 256 << 20, event: 64 << 20, failure: 1 << 20 }

/** Repeats after the first try, for requests that certainly changed nothing. */
const retries = { asked: 4, read: 2, unsent: 1 }

/** One request to the server, with all its retries. */
export type Call = {
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
  /** A 429 is the answer, and not a request to wait. */
  isQuestion?: true
}

export type Caller = ReturnType<typeof createCaller>

/** Sends requests and reads their answers. Every failure is a `KubeError`. */
export function createCaller(options: ClientOptions) {
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
    return failureOf(call.doing, writes(call), { status, headers, body: statusText(headers, bytes) }, clock.now())
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
          const waitMs = life.signal.aborted ? undefined : retryIn(call, error, failures, random)
          if (waitMs === undefined || clock.monotonic() + waitMs >= deadline) throw error
          if (waitMs > 0) await sleep(clock, waitMs, life.signal).catch(() => Promise.reject(error))
        }
      }
    } finally {
      cancelTimer()
      life.release()
    }
  }

  return {
    /** Sends once and returns while the body may still be coming: for watches. */
    open,
    refused,
    ask,
    askFor: async <T>(call: Call): Promise<T> => parse(call, (await ask(call)).text),
    /** What the server said the time was, when it last answered. */
    serverTime: () => toldTime,
  }
}

/** A server that was asked for protobuf refuses in protobuf, too. */
function statusText(headers: Response["headers"], bytes: Buffer | undefined): string {
  if (!bytes || !headers["content-type"]?.startsWith(protobufType)) return bytes?.toString("utf8") ?? ""
  try {
    return JSON.stringify(readKubeObject(bytes))
  } catch {
    return ""
  }
}

/** How long to wait before the retry, or undefined where a retry could do harm or would not help. */
function retryIn(call: Call, error: unknown, failures: number, random: Random): number | undefined {
  if (!(error instanceof KubeError)) return undefined
  const { kind, retryAfterMs, cause } = error
  // The user has to act, and a failed login should not be asked for three times.
  if (cause instanceof NotSent && cause.cause instanceof ConfigError) return undefined
  if (kind !== "Throttled" && kind !== "Unreachable") return undefined // an Unreachable write never left
  if (call.isQuestion && kind === "Throttled") return undefined
  if (kind === "Throttled" || retryAfterMs !== undefined) {
    if (failures > retries.asked) return undefined
    // Never sooner than the server asked, and not all clients at the same moment.
    return retryAfterMs === undefined ? jitter(random, 250 * 2 ** failures) : retryAfterMs * (1 + 0.2 * random.next())
  }
  if (failures > (writes(call) ? retries.unsent : retries.read)) return undefined
  // The first retry is immediate: mostly the server had closed a kept-alive connection.
  return failures === 1 ? 0 : jitter(random, 250)
}

export function parse<T>(call: Call, text: string): T {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new KubeError(writes(call) ? "UnknownOutcome" : "Unreachable", `${call.doing}: the answer is not JSON`, {
      cause,
    })
  }
}

const writes = ({ method }: Pick<Call, "method">) => method !== "GET"

/** A server without support for it sends whole objects, which include the metadata. */
export const metadataAs = (kind: string) => `application/json;as=${kind};g=meta.k8s.io;v=v1,application/json`

/** The connection broke before the answer was complete. Only a request that may have arrived leaves a write open. */
export function noAnswer(call: Call, cause: unknown, signal: AbortSignal): KubeError {
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
export function lifetime(parent: AbortSignal | undefined) {
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

/** `Warning: 299 - "text"`, several joined by commas. */
function* warnings(header: string): Generator<string> {
  for (const [, text = ""] of header.matchAll(/\d{3} \S+ "((?:[^"\\]|\\.)*)"/g)) yield text.replace(/\\(.)/g, "$1")
}
