import { NotSent, type Request, type Response, type Transport } from "#runtime/client/transport.ts"
import { type Clock, sleep } from "#runtime/clock.ts"

/**
 * Faults at the client's transport, between a process and its API server. Lost answers, stale views and the death of a
 * process can be simulated there without changing either side. Each fault is a small transport around another, so
 * faults compose. None is random: the caller decides which requests are hit.
 */
export type Fault = (next: Transport) => Transport

/** Wraps `next`; the first fault is the outermost. */
export const withFaults = (next: Transport, ...faults: readonly Fault[]): Transport =>
  faults.reduceRight((inner, fault) => fault(inner), next)

export type Matcher = (request: Request) => boolean

const isWrite: Matcher = ({ method }) => method !== "GET"
export const isWatch: Matcher = ({ method, path }) => method === "GET" && /[?&]watch=(true|1)(&|$)/.test(path)

/** Leases and Events are written as time passes, not by decisions, so a trace of decisions leaves them out. */
export const isDecision: Matcher = request => isWrite(request) && !/\/(leases|events)(\/|\?|$)/.test(request.path)

/** Only the nth request (from 1) that matches. */
export function nth(matches: Matcher, n: number): Matcher {
  let seen = 0
  return request => matches(request) && ++seen === n
}

const at =
  (strikes: Matcher, send: (request: Request, next: Transport) => Promise<Response>): Fault =>
  next => ({ ...next, send: request => (strikes(request) ? send(request, next) : next.send(request)) })

/** The connection breaks before anything reaches the server. */
export const cut = (strikes: Matcher) =>
  at(strikes, async () => {
    throw new NotSent("the connection was refused")
  })

/** The server handles the request, and its answer is lost. */
export const loseAnswer = (strikes: Matcher) =>
  at(strikes, async (request, next) => {
    await drained(await next.send({ ...request, signal: new AbortController().signal }))
    throw new Error("the connection broke before the answer")
  })

/** The request reaches the server later, even if its sender has given up or died by then. */
export const arriveLate = (strikes: Matcher, clock: Clock, ms: number) =>
  at(strikes, async (request, next) => {
    const late = sleep(clock, ms).then(async () => {
      const response = await next.send({ ...request, signal: new AbortController().signal })
      return { ...response, body: chunks(await Array.fromAsync(response.body)) }
    })
    return new Promise((resolve, reject) => {
      late.then(resolve, reject) // after an abort, the outcome is ignored
      request.signal.addEventListener("abort", () => reject(request.signal.reason), { once: true })
    })
  })

/** A fixed answer replaces the server's: 409, 429 with Retry-After, 500. */
export const answer = (
  strikes: Matcher,
  status: number,
  options: { reason?: string; message?: string; retryAfterSeconds?: number } = {},
) =>
  at(strikes, async () => {
    const { reason = "", message } = options
    const body = { kind: "Status", apiVersion: "v1", status: "Failure", code: status, reason, message }
    const retryAfter =
      options.retryAfterSeconds === undefined ? {} : { "retry-after": String(options.retryAfterSeconds) }
    return {
      status,
      headers: { "content-type": "application/json", ...retryAfter },
      body: chunks([new TextEncoder().encode(JSON.stringify(body))]),
    }
  })

/** A mutating webhook: the server stores the changed request. */
export const alter = (strikes: Matcher, change: (body: string) => string) =>
  at(strikes, (request, next) => next.send({ ...request, body: request.body && change(request.body) }))

/** The server handles the request after a delay. */
export const slow = (strikes: Matcher, clock: Clock, ms: number) =>
  at(strikes, async (request, next) => {
    await sleep(clock, ms)
    return next.send(request)
  })

/** Matching watches deliver nothing more, with their connections open. */
export const silence = (strikes: Matcher) =>
  at(strikes, async (request, next) => {
    const response = await next.send(request)
    return { ...response, body: silent(request.signal) }
  })

/** Matching watches break after so many chunks. */
export const breakWatch = (strikes: Matcher, afterChunks: number) =>
  at(strikes, async (request, next) => {
    const response = await next.send(request)
    return { ...response, body: broken(response.body, afterChunks) }
  })

/** Watch events arrive late, so the cache behind the watch is stale by that time. */
export const stale = (strikes: Matcher, clock: Clock, ms: number) =>
  at(strikes, async (request, next) => {
    const response = await next.send(request)
    return { ...response, body: delayed(response.body, clock, ms, request.signal) }
  })

/** A process that can die. After that, no request of it arrives, and no answer returns. */
export type Mortal = {
  fault: Fault
  readonly isDead: boolean
  die(): void
}

/** Dies before or after a request that matches, as by `kill -9`, or when `die` is called. */
export function mortal(options: { before?: Matcher; after?: Matcher; onDeath?: () => void } = {}): Mortal {
  let isDead = false
  const die = () => {
    if (isDead) return
    isDead = true
    options.onDeath?.()
  }
  const never = () => new Promise<never>(() => {})
  return {
    get isDead() {
      return isDead
    },
    die,
    fault: next => ({
      ...next,
      async send(request) {
        if (isDead) return never()
        if (options.before?.(request)) {
          die()
          return never()
        }
        const diesAfter = options.after?.(request) ?? false
        const response = await next.send(request)
        if (diesAfter) {
          await drained(response)
          die()
        }
        if (isDead) return never()
        return { ...response, body: whileAlive(response.body, () => isDead) }
      },
    }),
  }
}

async function drained({ body }: Response): Promise<void> {
  for await (const _ of body);
}

async function* chunks(all: readonly Uint8Array[]): AsyncIterable<Uint8Array> {
  yield* all
}

async function* silent(signal: AbortSignal): AsyncIterable<Uint8Array> {
  await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason), { once: true }))
}

async function* broken(body: AsyncIterable<Uint8Array>, afterChunks: number): AsyncIterable<Uint8Array> {
  let left = afterChunks
  for await (const chunk of body) {
    if (left-- <= 0) break
    yield chunk
  }
  throw new Error("the connection broke")
}

async function* delayed(body: AsyncIterable<Uint8Array>, clock: Clock, ms: number, signal: AbortSignal) {
  for await (const chunk of body) {
    await sleep(clock, ms, signal)
    yield chunk
  }
}

async function* whileAlive(body: AsyncIterable<Uint8Array>, isDead: () => boolean) {
  for await (const chunk of body) {
    if (isDead()) await new Promise<never>(() => {})
    yield chunk
  }
}
