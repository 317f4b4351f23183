import * as net from "node:net"
import type { Duplex } from "node:stream"
import * as tls from "node:tls"
import { aborted } from "#lib/aborted.ts"
import type { Clock } from "#runtime/clock.ts"
import type { Endpoint } from "./endpoint.ts"
import type { Expiring } from "./expiring.ts"
import { type Failure, failure } from "./failure.ts"
import type { Lookup } from "./names.ts"

export type Connection = { ok: true; socket: Duplex }

/** Opens one connection to one address, ready to be written to, or rejects. The only place that opens connections. */
export type Dial = (to: Destination, signal: AbortSignal) => Promise<Duplex>

export type Destination = {
  address: string
  port: number
  /** Use TLS, and accept only a certificate for this name (or address). */
  secureFor?: string
  /** Accept every certificate. */
  isUnchecked?: true
}

/** Where to connect, and to which of its addresses. */
export type Way = Pick<Endpoint, "hostname" | "port" | "isSecure" | "isAllowed"> & {
  /** Why an address must not be connected to, in words for people; undefined if it may. */
  refusal: (address: string) => string | undefined
  /** Addresses and ports that are known without a name server. */
  places?: readonly Place[]
  /** Accept every certificate. */
  isUnchecked?: boolean
  /** What else the name may be, in words for people, if no name server knows it. */
  ifNameless?: string
}

/** One place on the network. */
export type Place = { address: string; port: number }

export type Connecting = {
  lookup: Lookup
  dial: Dial
  clock: Clock
  connectMs: number
  lookupMs: number
  /** Why a name has no address, until it may be asked again. */
  nameless: Expiring<Failure>
}

const namelessMs = 60_000

/** More addresses of one name would cost an attacker nothing, and us a connection each. */
const maxAddresses = 4

/**
 * Looks the name up once, checks every address and connects to one of these addresses: a name server that gives
 * another answer a moment later is not asked again.
 */
export async function connectTo(way: Way, means: Connecting, signal: AbortSignal): Promise<Connection | Failure> {
  const { hostname, isSecure, isUnchecked, refusal, ifNameless } = way
  const found = way.places ?? (await placesOf(way, means, signal))
  if (signal.aborted) return timedOut(hostname)
  if ("ok" in found) return ifNameless ? failure(found.class, `${found.message}; ${ifNameless}`) : found
  const refused = found.map(({ address }) => refusal(address)).find(why => why !== undefined)
  if (refused !== undefined) return failure("ForbiddenAddress", refused)

  // IPv4 first: in many clusters IPv6 has addresses and no route.
  const order = found.toSorted((a, b) => net.isIP(a.address) - net.isIP(b.address)).slice(0, maxAddresses)
  let last: Failure = timedOut(hostname)
  for (const place of order) {
    if (signal.aborted) return timedOut(hostname)
    const attempt = new AbortController()
    const cancel = means.clock.after(means.connectMs, () => attempt.abort(new ConnectTimeout()))
    try {
      const to = { ...place, ...(isSecure && { secureFor: hostname, ...(isUnchecked && { isUnchecked }) }) }
      return { ok: true, socket: await means.dial(to, AbortSignal.any([signal, attempt.signal])) }
    } catch (error) {
      last = connectFailure(hostname, error)
    } finally {
      cancel()
    }
  }
  return signal.aborted ? timedOut(hostname) : last
}

export const timedOut = (hostname: string) => failure("Timeout", `${hostname} took too long`)

async function placesOf(way: Way, means: Connecting, signal: AbortSignal): Promise<readonly Place[] | Failure> {
  const { hostname, port } = way
  const found = net.isIP(hostname) ? [hostname] : await addressesOf(way, means, signal)
  return "ok" in found ? found : found.map(address => ({ address, port }))
}

/**
 * The addresses of a name, or why there is none. A name without an answer is asked for once a minute:
 * a tenant can make up any number of such names. Hosts that an administrator allowed are always asked for.
 */
async function addressesOf(
  { hostname, isAllowed }: Way,
  { lookup, clock, lookupMs, nameless }: Connecting,
  signal: AbortSignal,
): Promise<readonly string[] | Failure> {
  const known = isAllowed ? undefined : nameless.get(hostname)
  if (known) return known.value
  const late = new AbortController()
  const cancel = clock.after(lookupMs, () => late.abort(new LookupTimeout()))
  try {
    const either = AbortSignal.any([signal, late.signal])
    const found = await Promise.race([lookup(hostname, { isAllowed, signal: either }), rejectedBy(either)])
    if (found.length > 0) return found
    throw new Error("no address")
  } catch (error) {
    const isSilence = late.signal.aborted || codeOf(error) === "ETIMEOUT"
    const why = isSilence ? `no name server tells the address of ${hostname}` : `the name ${hostname} has no address`
    const none = failure("Unreachable", why)
    // If no name server was reached, nothing is known about the name.
    if (!isAllowed && !signal.aborted && codeOf(error) !== "ECONNREFUSED") nameless.set(hostname, none, namelessMs)
    return none
  } finally {
    cancel()
  }
}

const rejectedBy = (signal: AbortSignal) => aborted(signal).then(() => Promise.reject(signal.reason))

/** A failure of the TLS handshake, as opposed to a server that was not reached. */
class HandshakeError extends Error {}
class ConnectTimeout extends Error {}
class LookupTimeout extends Error {}

function connectFailure(hostname: string, error: unknown): Failure {
  if (error instanceof ConnectTimeout) return failure("Timeout", `${hostname} does not accept connections in time`)
  const code = codeOf(error)
  if (error instanceof HandshakeError)
    return failure("TLS", `the certificate or TLS of ${hostname} cannot be trusted (${codeOf(error.cause)})`)
  return failure("Unreachable", `${hostname} cannot be reached (${code})`)
}

/** The code of a system or TLS error: from a fixed list, unlike its message, which may quote the other side. */
function codeOf(error: unknown): string {
  const code = (error as { code?: unknown } | undefined)?.code
  return typeof code === "string" && /^[A-Z0-9_]{1,64}$/.test(code) ? code : "unknown error"
}

/** Dials for real. Certificates are verified by the machine's authorities and those in `trust`, unless all are accepted. */
export function systemDial(trust: readonly string[] = []): Dial {
  const ca = trust.length > 0 ? [...tls.getCACertificates("default"), ...trust] : undefined
  return ({ address, port, secureFor, isUnchecked }, signal) =>
    new Promise((resolve, reject) => {
      let isReached = false
      const socket =
        secureFor === undefined
          ? net.connect({ host: address, port })
          : tls.connect({
              host: address,
              port,
              // Explicit, because Node otherwise reads NODE_TLS_REJECT_UNAUTHORIZED.
              rejectUnauthorized: !isUnchecked,
              ALPNProtocols: ["http/1.1"],
              ...(!net.isIP(secureFor) && { servername: secureFor }),
              ...(ca && { ca }),
            })
      const abort = () => socket.destroy(signal.reason)
      signal.addEventListener("abort", abort, { once: true })
      socket.on("connect", () => {
        isReached = true
      })
      socket.on("error", cause => {
        signal.removeEventListener("abort", abort)
        const isBroken = signal.aborted || ["ECONNRESET", "EPIPE", "ETIMEDOUT"].includes(codeOf(cause))
        reject(secureFor !== undefined && isReached && !isBroken ? new HandshakeError("TLS", { cause }) : cause)
      })
      socket.once(secureFor === undefined ? "connect" : "secureConnect", () => {
        signal.removeEventListener("abort", abort)
        resolve(socket)
      })
      if (signal.aborted) abort()
    })
}
