import { type ImageReference, normaliseImageReference } from "#core/image/reference.ts"
import { type Failure, failure, type Resolution } from "#core/image/resolution.ts"
import { forbiddenAddress } from "#egress/address.ts"
import { type Connecting, connectTo, type Dial, systemDial, timedOut } from "#egress/connect.ts"
import { type Endpoint, hostAndPort } from "#egress/endpoint.ts"
import { exchange } from "#egress/exchange.ts"
import { createExpiring } from "#egress/expiring.ts"
import { type Lookup, nameLookup } from "#egress/names.ts"
import { createLimiter, LineIsFull, type Limits as TurnLimits } from "#lib/limiter.ts"
import type { Clock } from "#runtime/clock.ts"
import { jitter, type Random } from "#runtime/random.ts"
import type { Ask } from "./authorize.ts"
import { readAllowed, registryEndpoint } from "./endpoint.ts"
import { failureOf } from "./failure-of.ts"
import { resolveAt } from "./resolve-at.ts"
import { parseRetryAfter } from "./retry-after.ts"

/** Asks image registries what a reference means. References come from tenants, and so do the registries they name. */
export type RegistryClient = {
  /** Rejects only when `signal` is aborted; every other outcome is a value. */
  resolve(reference: ImageReference, options?: ResolveOptions): Promise<Resolution>
}

export type ResolveOptions = {
  /** By the host that references name (`docker.io`, `registry.example.com:5000`). Each is sent only there, and to
   * the token server that this host names. */
  credentials?: ReadonlyMap<string, Credentials>
  /** Read the manifest to learn the platforms of an index. Some registries count that as a pull. */
  platforms?: boolean
  /** The namespace that the request is for. Tenants take turns, and each may have a limited number of requests at once. */
  tenant?: string
  signal?: AbortSignal
}

export type Credentials = { username: string; password: string }

export type RegistryClientOptions = {
  clock: Clock
  random: Random
  /** `[http://|https://]HOST:PORT` of registries that may be on private addresses; throws for anything else. */
  allow?: readonly string[]
  /** Certificates (PEM) of authorities to trust beside those of the machine. */
  trust?: readonly string[]
  lookup?: Lookup
  dial?: Dial
  limits?: Partial<Limits>
}

export type Limits = {
  /** For the name server. */
  lookupMs: number
  connectMs: number
  /** For all requests of one resolution, from the start of its turn. */
  wholeMs: number
  /** Until its turn starts. */
  waitMs: number
  /** Resolutions at a time; each has at most one connection, and keeps no more of an answer than a token's 64 kB. */
  atOnce: TurnLimits
}

const defaultLimits: Limits = {
  lookupMs: 4000,
  connectMs: 3000,
  wholeMs: 10_000,
  waitMs: 30_000,
  atOnce: { all: 64, owner: 8, place: 6, ownerAtPlace: 3, waiting: 4096 },
}

/** How long a registry that timed out is not asked again for the same tenant, whose other requests wait. */
const slowMs = 5000

/** After a 429 without Retry-After. */
const restMs = 60_000
const maxRemembered = 1000

export function createRegistryClient(options: RegistryClientOptions): RegistryClient {
  const { clock, random, lookup = nameLookup({ clock }) } = options
  const limits = { ...defaultLimits, ...options.limits }
  const allowed = readAllowed(options.allow ?? [])
  const { connectMs, lookupMs } = limits
  const nameless: Connecting["nameless"] = createExpiring(clock, maxRemembered)
  const reach = { lookup, dial: options.dial ?? systemDial(options.trust), clock, connectMs, lookupMs, nameless }
  const inTurn = createLimiter(limits.atOnce).run
  const tokens = createExpiring<string>(clock, maxRemembered)
  const resting = createExpiring<Failure>(clock, maxRemembered)
  const slow = createExpiring<Failure>(clock, maxRemembered)

  const ask: Ask = async (to, question, identity, signal) => {
    const key = `${to.origin} ${identity}`
    const rest = resting.get(key)
    if (rest) return { ...rest.value, retryAfterMs: rest.leftMs }
    const connection = await connectTo({ ...to, refusal: address => refusalOf(to, address) }, reach, signal)
    if (!connection.ok) return connection
    const answer = await exchange(connection.socket, to, question, signal)
    if (!answer.ok || answer.status < 400) return answer
    const said = parseRetryAfter(answer.headers["retry-after"], clock.now())
    const restFor = answer.status === 429 ? (said ?? jitter(random, restMs)) : answer.status === 503 ? said : undefined
    if (restFor === undefined) return answer
    const refusal = failureOf(answer, to.hostname)
    resting.set(key, refusal, restFor)
    return { ...refusal, retryAfterMs: restFor }
  }

  const means = { ask, tokens, allowed }

  /** The result of `work` within its time; a time-out at once if the registry was just too slow for this tenant. */
  async function within(
    key: string,
    hostname: string,
    signal: AbortSignal | undefined,
    work: (signal: AbortSignal) => Promise<Resolution>,
  ): Promise<Resolution> {
    const known = slow.get(key)
    if (known) return known.value
    const late = new AbortController()
    const cancel = clock.after(limits.wholeMs, () => late.abort())
    try {
      const resolution = await work(AbortSignal.any(signal ? [signal, late.signal] : [late.signal]))
      signal?.throwIfAborted()
      if (!resolution.ok && resolution.class === "Timeout") slow.set(key, timedOut(hostname), slowMs)
      return resolution
    } finally {
      cancel()
    }
  }

  return {
    async resolve(reference, { credentials, platforms = false, tenant = "", signal } = {}) {
      const { host, ...image } = normaliseImageReference(reference)
      const endpoint = registryEndpoint(host, allowed)
      if (!endpoint) return failure("Unreachable", `${host} is not a host`)
      const busy = failure("Timeout", `too many other questions wait for ${endpoint.hostname}`)
      const impatient = new AbortController()
      const cancel = clock.after(limits.waitMs, () => impatient.abort(busy))
      const either = AbortSignal.any(signal ? [signal, impatient.signal] : [impatient.signal])
      try {
        return await inTurn({ owner: tenant, place: endpoint.origin, signal: either }, () => {
          cancel()
          return within(`${endpoint.origin} of ${tenant}`, endpoint.hostname, signal, signal =>
            resolveAt(means, endpoint, image, { credentials: credentials?.get(host), platforms, signal }),
          )
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

/** The address itself is not reported: an author of a host name must not read a cluster's own name server. */
function refusalOf({ hostname, port, isAllowed }: Endpoint, address: string): string | undefined {
  const what = isAllowed ? undefined : forbiddenAddress(address)
  return (
    what &&
    `${hostname} has ${what} address: an administrator may allow it with --allow-registry ${hostAndPort(hostname, port)}`
  )
}
