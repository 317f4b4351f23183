import type { IncomingHttpHeaders } from "node:http"
import { createLimiter, LineIsFull, type Limits as TurnLimits } from "#lib/limiter.ts"
import type { Clock } from "#runtime/clock.ts"
import { createBody } from "./body.ts"
import { type Connecting, connectTo, type Dial, systemDial, type Way } from "./connect.ts"
import { type Answer, type BodyReader, exchange } from "./exchange.ts"
import { createExpiring } from "./expiring.ts"
import { type Failure, type FailureClass, failure } from "./failure.ts"
import { type Lookup, nameLookup } from "./names.ts"
import { howToAllow, mayConnect, type Rules, routeOf } from "./rules.ts"
import { type Headers, type Target, targetOf } from "./target.ts"

/** The one way out to hosts that users name: metrics, hooks, alerts. */
export type Egress = {
  /**
   * One attempt: no redirect is followed, no proxy of the environment is used, no cookie is kept, and no token of ours is
   * sent. Rejects only when `signal` is aborted; every other outcome is a value.
   */
  request(asked: EgressRequest): Promise<EgressAnswer | EgressFailure>
}

export type EgressRequest = {
  /** The namespace that named the URL: it decides where we may connect. */
  namespace: string
  /** The namespace whose turn it is; default: the same. Another one where it uses a URL that was shared with it. */
  onBehalfOf?: string
  url: string
  method: "GET" | "POST"
  headers?: Headers
  body?: string
  /** For everything from the start of its turn. */
  timeoutMs: number
  /** Until the head of the answer has arrived, once the connection is open. Default: as long as everything. */
  firstByteMs?: number
  /** Of a successful answer (2xx). Default: 256 KiB. */
  maxBytes?: number
  /** `insecureSkipVerify`, `disableTLS`: accept every certificate. Only for hosts that an administrator allowed. */
  isUnchecked?: boolean
  signal?: AbortSignal
}

export type EgressAnswer = {
  ok: true
  /** Any status: 3xx, 4xx and 5xx are answers, too. */
  status: number
  headers: IncomingHttpHeaders
  /** The whole body of a 2xx. Of others the beginning, for a message: see `excerptOf`. */
  body: Buffer
}

export type EgressFailure = Failure<
  | FailureClass
  /** It cannot be sent as it is: its author must change the URL or a header. */
  | "InvalidRequest"
  /** Too many other requests wait. */
  | "Busy"
>

export type EgressOptions = {
  clock: Clock
  rules: Rules
  /** Certificates (PEM) of authorities to trust beside those of the machine. */
  trust?: readonly string[]
  lookup?: Lookup
  dial?: Dial
  limits?: Partial<EgressLimits>
}

export type EgressLimits = {
  /** For the name server. */
  lookupMs: number
  /** For one address, with its TLS handshake. */
  connectMs: number
  /** Until a turn starts. */
  waitMs: number
  /** Requests at a time; each has one connection and at most `maxBytes` in memory. Owners are namespaces. */
  atOnce: TurnLimits
}

const defaultLimits: EgressLimits = {
  lookupMs: 4000,
  connectMs: 3000,
  waitMs: 10_000,
  atOnce: { all: 32, owner: 6, place: 16, ownerAtPlace: 3, waiting: 1024 },
}

const defaultMaxBytes = 256 * 1024
/** Of an answer that is no success. */
const beginningBytes = 4096
const maxRemembered = 1000

export function createEgress(options: EgressOptions): Egress {
  const { clock, rules, lookup = nameLookup({ clock }) } = options
  const { connectMs, lookupMs, waitMs, atOnce } = { ...defaultLimits, ...options.limits }
  const nameless: Connecting["nameless"] = createExpiring(clock, maxRemembered)
  const reach = { lookup, dial: options.dial ?? systemDial(options.trust), clock, connectMs, lookupMs, nameless }
  const inTurn = createLimiter(atOnce).run

  /** Connects and asks. What the rules say is read again here, when the turn has come: caches may have changed. */
  async function attempt(target: Target, asked: EgressRequest): Promise<EgressAnswer | EgressFailure> {
    const way = wayTo(target, asked, rules)
    if ("ok" in way) return way
    const late = new AbortController()
    const within = (ms: number, what: string) =>
      clock.after(ms, () => late.abort(failure("Timeout", `${target.hostname} ${what} within ${ms / 1000} s`)))
    const orLate = (trouble: Failure): Failure => (late.signal.aborted ? late.signal.reason : trouble)
    const signal = AbortSignal.any(asked.signal ? [asked.signal, late.signal] : [late.signal])
    const cancelWhole = within(asked.timeoutMs, "did not send its whole answer")
    let cancelFirst = () => {}
    try {
      const connection = await connectTo(way, reach, signal)
      if (!connection.ok) return orLate(connection)
      if (asked.firstByteMs !== undefined) cancelFirst = within(asked.firstByteMs, "did not begin its answer")
      let body = createBody(0)
      const read = ({ status, headers }: Answer): BodyReader | undefined => {
        cancelFirst()
        const isSuccess = status >= 200 && status < 300
        body = createBody(isSuccess ? (asked.maxBytes ?? defaultMaxBytes) : beginningBytes)
        if (isSuccess) return body
        // The status says enough. An encoded beginning would say nothing.
        return headers["content-encoding"] === undefined ? { ...body, isBeginningEnough: true } : undefined
      }
      const { method, headers = {} } = asked
      const question = { method, path: target.path, headers, read, ...bodyOf(asked) }
      const answer = await exchange(connection.socket, target, question, signal)
      return answer.ok ? { ...answer, body: body.bytes() } : orLate(answer)
    } finally {
      cancelWhole()
      cancelFirst()
    }
  }

  return {
    async request(asked) {
      const { namespace, onBehalfOf = namespace, signal } = asked
      const target = targetOf(asked, rules)
      if ("ok" in target) return target
      const way = wayTo(target, asked, rules)
      if ("ok" in way) return way // at once, without a turn
      const busy = failure("Busy", `too many other requests wait, of namespace ${onBehalfOf} or to ${target.hostname}`)
      const impatient = new AbortController()
      const cancel = clock.after(waitMs, () => impatient.abort(busy))
      const either = AbortSignal.any(signal ? [signal, impatient.signal] : [impatient.signal])
      // Services of two namespaces may have the same name in their URLs.
      const place = way.places ? `${target.origin} of ${namespace}` : target.origin
      try {
        return await inTurn({ owner: onBehalfOf, place, signal: either }, async () => {
          cancel()
          const result = await attempt(target, asked)
          signal?.throwIfAborted()
          return result
        })
      } catch (error) {
        if (error === busy || error instanceof LineIsFull) return busy
        throw error
      } finally {
        cancel()
      }
    },
  }
}

const bodyOf = ({ method, body = "" }: EgressRequest) => (method === "POST" ? { body } : {})

/** How to connect, or why not. */
function wayTo(target: Target, { namespace, isUnchecked = false }: EgressRequest, rules: Rules): Way | Failure {
  const { hostname, port, isSecure } = target
  const asked = { namespace, host: hostname, port }
  const route = routeOf(asked, rules)
  if (!route.ok) return route
  if (isUnchecked && isSecure && route.by !== "Allowance")
    return failure(
      "ForbiddenAddress",
      `${hostname} may not be used without checking its certificate: ${howToAllow(asked)}`,
    )
  return {
    ...target,
    isUnchecked,
    refusal(address) {
      const verdict = mayConnect({ ...asked, address }, rules)
      return verdict.ok ? undefined : verdict.message
    },
    ...(route.by === "Service" && { places: route.places }),
    ...(route.by === "PublicAddress" &&
      hostname.split(".").length === 2 && { ifNameless: `if it is a Service, ${howToAllow(asked)}` }),
  }
}
