import { createHash } from "node:crypto"
import { type ImageReference, normaliseImageReference } from "#core/image/reference.ts"
import { type Failure, failure, type Resolution } from "#core/image/resolution.ts"
import { createLimiter, LineIsFull, type Limits as TurnLimits } from "#lib/limiter.ts"
import type { Clock } from "#runtime/clock.ts"
import { jitter, type Random } from "#runtime/random.ts"
import { parseChallenge, pullScope } from "./challenge.ts"
import { connectTo, type Dial, systemDial, timedOut } from "./connect.ts"
import { type Endpoint, readAllowed, registryEndpoint, urlEndpoint } from "./endpoint.ts"
import { type Answer, exchange, type Question } from "./exchange.ts"
import { createExpiring } from "./expiring.ts"
import { acceptManifest, fromHead, manifestReader, maxManifestBytes } from "./manifest.ts"
import { type Lookup, nameLookup } from "./names.ts"
import { parseRetryAfter } from "./retry-after.ts"
import { maxTokenAnswerBytes, readToken } from "./token.ts"

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
  const nameless = createExpiring<Failure>(clock, maxRemembered)
  const means = { lookup, dial: options.dial ?? systemDial(options.trust), clock, connectMs, lookupMs, nameless }
  const inTurn = createLimiter(limits.atOnce).run
  const tokens = createExpiring<string>(clock, maxRemembered)
  const resting = createExpiring<Failure>(clock, maxRemembered)
  const slow = createExpiring<Failure>(clock, maxRemembered)

  /** One request, unless the server has limited `identity` for now. */
  async function ask(
    to: Endpoint,
    question: Question,
    identity: string,
    signal: AbortSignal,
  ): Promise<Answer | Failure> {
    const key = `${to.origin} ${identity}`
    const rest = resting.get(key)
    if (rest) return { ...rest.value, retryAfterMs: rest.leftMs }
    const connection = await connectTo(to, means, signal)
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

  async function resolveAt(
    endpoint: Endpoint,
    image: ImageReference,
    {
      credentials,
      platforms,
      signal,
    }: { credentials: Credentials | undefined; platforms: boolean; signal: AbortSignal },
  ): Promise<Resolution> {
    const { hostname } = endpoint
    const identity = identityOf(credentials)
    const tokenKey = `${endpoint.origin} ${image.path} ${identity}`
    const cached = tokens.get(tokenKey)?.value
    let authorization = cached && `Bearer ${cached}`
    let isAuthorized = false
    const reader = manifestReader({ asked: image.digest, platforms })

    /** Requests the manifest. Sends credentials once, when required: a registry that asks again has refused them. */
    async function manifest(method: "HEAD" | "GET"): Promise<Answer | Failure> {
      const path = `/v2/${image.path}/manifests/${image.digest ?? image.tag}`
      const headers = { accept: acceptManifest, ...(authorization !== undefined && { authorization }) }
      const question = { method, path, headers, maxBytes: maxManifestBytes, read: reader.read }
      const answer = await ask(endpoint, question, identity, signal)
      if (!answer.ok || answer.status !== 401) return answer
      if (isAuthorized) return answer
      isAuthorized = true
      const authorized = await authorize(answer.headers["www-authenticate"])
      if (!authorized.ok) return authorized
      authorization = authorized.header
      return manifest(method)
    }

    async function authorize(header: string | undefined): Promise<{ ok: true; header: string } | Failure> {
      const challenge = parseChallenge(header)
      if (!challenge) return failure("Denied", `${hostname} asks for credentials in a way that is not known here`)
      if (challenge.scheme === "Basic")
        return credentials
          ? { ok: true, header: basic(credentials) }
          : failure("Denied", `${hostname} asks for credentials, and none were given for it`)

      const url = URL.parse(challenge.realm)
      if (!url || url.username || url.password)
        return failure("InvalidAnswer", `${hostname} names a token server by what is no URL`)
      const server = urlEndpoint(url, allowed)
      if (!server || (endpoint.isSecure && !server.isSecure))
        return failure("InvalidAnswer", `${hostname} names a token server that is not reached over TLS`)
      // Otherwise any registry could make us request a token from an allowed server, and receive that token.
      if (server.isAllowed && !endpoint.isAllowed) return refusedRealm(hostname, "only allowed registries may name it")

      if (challenge.service) url.searchParams.set("service", challenge.service)
      url.searchParams.set("scope", pullScope(challenge.scope, image.path))
      const headers: Record<string, string> = credentials ? { authorization: basic(credentials) } : {}
      const pieces: Buffer[] = []
      const question = {
        method: "GET" as const,
        path: url.pathname + url.search,
        headers,
        maxBytes: maxTokenAnswerBytes,
        read: () => (piece: Buffer) => void pieces.push(piece),
      }
      const answer = await ask(server, question, identity, signal)
      if (!answer.ok) return tokenTroubleOf(answer, hostname)
      if (answer.status !== 200) return tokenFailureOf(answer, server.hostname)
      const token = readToken(Buffer.concat(pieces), server.hostname)
      if (!token.ok) return token
      if (token.lastsMs > 0) tokens.set(tokenKey, token.value, token.lastsMs)
      return { ok: true, header: `Bearer ${token.value}` }
    }

    const head = await manifest("HEAD")
    if (!head.ok) return head
    const canHead = head.status !== 405
    if (canHead && head.status !== 200) return failureOf(head, hostname)
    const told = canHead ? fromHead(head) : undefined
    if (told && image.digest && told.digest !== image.digest)
      return failure("InvalidAnswer", `${hostname} answers with another digest than it was asked for`)
    if (told && !platforms) return told

    const whole = await manifest("GET")
    if (!whole.ok) return whole
    return whole.status === 200 ? reader.result(whole, hostname) : failureOf(whole, hostname)
  }

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
            resolveAt(endpoint, image, { credentials: credentials?.get(host), platforms, signal }),
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

/** The class of an unsuccessful answer. */
function failureOf({ status }: Answer, hostname: string): Failure {
  if (status === 404) return failure("NotFound", `${hostname} has no such image`)
  if (status === 401 || status === 403)
    return failure("Denied", `${hostname} does not let us read this image (${status})`)
  if (status === 429) return failure("RateLimited", `${hostname} asks us to come back later`)
  if (status === 408 || status >= 500) return failure("Unreachable", `${hostname} is in trouble (${status})`)
  // A redirect is not followed: the question is about this registry, and the new address would have to be checked.
  if (status >= 300 && status < 400) return failure("InvalidAnswer", `${hostname} redirects, which is not followed`)
  return failure("InvalidAnswer", `${hostname} answers with status ${status}`)
}

/** A missing token server does not mean that the image is missing. */
const tokenFailureOf = (answer: Answer, hostname: string): Failure =>
  answer.status === 404 ? failure("InvalidAnswer", `${hostname} is not a token server`) : failureOf(answer, hostname)

/**
 * A registry that names a token server we may not ask has refused us. Where nothing is known
 * about a registry because its own address is forbidden, a pod may try it; a registry must not be able to choose that.
 */
const refusedRealm = (hostname: string, why: string): Failure => ({
  ...failure("Denied", `${hostname} names a token server that may not be asked: ${why}`),
  isFinal: true,
})

const tokenTroubleOf = (trouble: Failure, hostname: string): Failure =>
  trouble.class === "ForbiddenAddress" ? refusedRealm(hostname, trouble.message) : trouble

const basic = ({ username, password }: Credentials) =>
  `Basic ${Buffer.from(`${username}:${password}`, "utf8").toString("base64")}`

/** Distinguishes users without keeping their passwords. */
const identityOf = (credentials: Credentials | undefined) =>
  credentials
    ? createHash("sha256")
        .update(JSON.stringify([credentials.username, credentials.password]))
        .digest("hex")
    : "anonymous"
