import { createHash } from "node:crypto"
import type { Instant } from "#lib/instant.ts"
import type { PullCredentials } from "#runtime/cri/container-runtime.ts"
import type { Behaviour } from "./behaviour.ts"
import { type ImageReference, parseImage } from "./image-reference.ts"

/** A fault between a node and a registry. Status codes are answers of the registry. */
export type Fault = (
  | { kind: "status"; status: number; retryAfterSeconds?: number; challenge?: Challenge }
  | { kind: "refused" | "unreachable" | "no-such-host" | "timeout" | "reset" | "tls" | "plain-http" }
) & {
  /** When the fault ends; never if absent. */
  until?: Instant
  /** The number of pulls that it still affects. */
  times?: number
}

/**
 * How a 401 asks for credentials: not at all, by password, by a token that is refused without credentials (`token`) or
 * with them (`oauth`), or by one without rights.
 */
export type Challenge = "none" | "basic" | "token" | "oauth" | "scope"

/** One image under one tag. */
export type ImageContent = Behaviour & {
  /** By default derived from name and content, so that a tag with other content is another image. */
  digest?: string
  sizeBytes?: number
  /** `linux/amd64`; every platform if absent. */
  platforms?: readonly string[]
}

export type RegistryOptions = {
  host: string
  bytesPerSecond?: number
  latencyMs?: number
  fault?: Fault
  /** User → password. With accounts, nothing can be pulled without one of them. */
  accounts?: Readonly<Record<string, string>>
  /** How a registry with accounts asks for one: by password, or by a token of its token server. Default: `basic`. */
  challenge?: "basic" | "token"
  /** Repository → tag → content. A registry with contents has only these; one without has every image. */
  images?: Readonly<Record<string, Readonly<Record<string, ImageContent & { fault?: Fault }>>>>
}

/** The outcome of a pull: an image, or the container runtime's error. */
export type Pull =
  | { isFound: true; durationMs: number; latencyMs: number; digest: string; sizeBytes: number; behaviour: Behaviour }
  | { isFound: false; durationMs: number; message: string }

export type Registries = {
  /** The outcome of a pull at this time. `credentials` is called where the registry has accounts. */
  pull(
    image: ImageReference,
    at: { now: Instant; platform: string; credentials?: () => readonly PullCredentials[] },
  ): Pull
  /** An image, regardless of faults. */
  find(image: ImageReference): { digest: string; sizeBytes: number; behaviour: Behaviour } | undefined
  /** Adds an image or moves its tag; returns its digest. In an open registry all other images stay pullable. */
  push(image: string, content?: ImageContent): string
  /** Removes a tag, or a whole repository (`ghcr.io/shop/web`), for good. */
  remove(image: string): void
  /** Sets the fault of a host, a repository or one image; the narrowest counts. */
  setFault(place: string, fault: Fault | undefined): void
  /** Sets the accounts of a registry, user → password. With none of them, it is public. */
  setAccounts(host: string, accounts: Readonly<Record<string, string>>): void
  /** Sets the speed of a registry. */
  setSpeed(host: string, speed: { bytesPerSecond?: number; latencyMs?: number }): void
}

type Registry = {
  bytesPerSecond: number
  latencyMs: number
  isOpen: boolean
  accounts: ReadonlyMap<string, string>
  challenge: "basic" | "token"
  /** By `repository:tag`, and by `repository@digest`; undefined: removed. */
  images: Map<string, ImageContent | undefined>
}

/** The defaults of a registry. */
const ordinary = { bytesPerSecond: 100_000_000, latencyMs: 100, sizeBytes: 50_000_000 }

const timeoutMs = 30_000

/**
 * The registries that a simulated cluster pulls from. By default every well-formed image exists. Messages are those of
 * containerd 1.6, as recorded (see `recorded/`).
 */
export function createRegistries(options: readonly RegistryOptions[] = []): Registries {
  const registries = new Map<string, Registry>()
  const faults = new Map<string, Fault>()

  const registry = (host: string): Registry => {
    const found = registries.get(host)
    if (found) return found
    const { bytesPerSecond, latencyMs } = ordinary
    const made: Registry = {
      ...{ bytesPerSecond, latencyMs, isOpen: true },
      ...{ accounts: new Map(), challenge: "basic", images: new Map() },
    }
    registries.set(host, made)
    return made
  }

  const put = (host: string, repository: string, tag: string, content: ImageContent): string => {
    const digest = content.digest ?? digestOf(`${host}/${repository}:${tag}`, content)
    const { images } = registry(host)
    images.set(`${repository}:${tag}`, { ...content, digest })
    images.set(`${repository}@${digest}`, { ...content, digest })
    return digest
  }

  for (const { host, bytesPerSecond, latencyMs, fault, accounts = {}, challenge, images } of options) {
    const made = registry(host)
    made.bytesPerSecond = bytesPerSecond ?? made.bytesPerSecond
    made.latencyMs = latencyMs ?? made.latencyMs
    made.isOpen = images === undefined
    made.accounts = new Map(Object.entries(accounts))
    made.challenge = challenge ?? made.challenge
    if (fault) faults.set(host, fault)
    for (const [repository, tags] of Object.entries(images ?? {}))
      for (const [tag, { fault: own, ...content }] of Object.entries(tags)) {
        put(host, repository, tag, content)
        if (own) faults.set(`${host}/${repository}:${tag}`, own)
      }
  }

  const faultAt = ({ host, repository, name }: ImageReference, now: Instant): Fault | undefined => {
    for (const place of [name, `${host}/${repository}`, host]) {
      const fault = faults.get(place)
      if (!fault) continue
      const isOver =
        (fault.until !== undefined && now >= fault.until) || (fault.times !== undefined && fault.times <= 0)
      if (isOver) faults.delete(place)
      else {
        if (fault.times !== undefined) faults.set(place, { ...fault, times: fault.times - 1 })
        return fault
      }
    }
    return undefined
  }

  const find = ({ host, repository, tag, digest, name }: ImageReference): ImageContent | undefined => {
    const { images, isOpen } = registry(host)
    const key = digest ? `${repository}@${digest}` : `${repository}:${tag}`
    if (images.has(key)) return images.get(key)
    if (!isOpen || images.has(repository)) return undefined
    if (digest) return { digest }
    const content = { digest: digestOf(name, {}) }
    images.set(`${repository}@${content.digest}`, content) // so that it can be pulled by digest
    return content
  }

  return {
    find(image) {
      const content = find(image)
      if (!content) return undefined
      const { digest = "", sizeBytes = ordinary.sizeBytes, platforms: _, ...behaviour } = content
      return { digest, sizeBytes, behaviour }
    },
    pull(image, { now, platform, credentials = () => [] }) {
      const { bytesPerSecond, latencyMs, accounts, challenge } = registry(image.host)
      const fault = faultAt(image, now) ?? refusal({ host: image.host, accounts, challenge, credentials })
      if (fault) {
        const durationMs = fault.kind === "timeout" ? timeoutMs : fault.kind === "status" ? latencyMs : 5
        return { isFound: false, durationMs, message: explain(image, fault) }
      }
      const content = find(image)
      if (!content) {
        const message = explain(image, { kind: "status", status: 404 })
        return { isFound: false, durationMs: latencyMs, message }
      }
      const { digest = "", sizeBytes = ordinary.sizeBytes, platforms, ...behaviour } = content
      if (platforms && !platforms.includes(platform))
        return { isFound: false, durationMs: latencyMs, message: explainNoPlatform(image) }
      const durationMs = Math.round(latencyMs + (1000 * sizeBytes) / bytesPerSecond)
      return { isFound: true, durationMs, latencyMs, digest, sizeBytes, behaviour }
    },
    push(image, content = {}) {
      const { host, repository, tag } = parsed(image)
      if (!tag) throw new Error(`push ${image}: name a tag`)
      registry(host).images.delete(repository)
      return put(host, repository, tag, content)
    },
    remove(image) {
      const { host, repository, tag } = parsed(image)
      const { images } = registry(host)
      if (/:[^/]+$/.test(image)) return void images.set(`${repository}:${tag}`, undefined)
      for (const key of [...images.keys()])
        if (key.startsWith(`${repository}:`) || key.startsWith(`${repository}@`)) images.delete(key)
      images.set(repository, undefined)
    },
    setFault(place, fault) {
      if (fault) faults.set(place, fault)
      else faults.delete(place)
    },
    setAccounts(host, accounts) {
      registry(host).accounts = new Map(Object.entries(accounts))
    },
    setSpeed(host, speed) {
      Object.assign(registry(host), speed)
    },
  }
}

/** As a registry answers a pull without one of its accounts. */
function refusal({
  host,
  accounts,
  challenge,
  credentials,
}: Pick<Registry, "accounts" | "challenge"> & { host: string; credentials: () => readonly PullCredentials[] }):
  | Fault
  | undefined {
  if (accounts.size === 0) return undefined
  const own = credentials().filter(each => each.host === host)
  if (own.some(each => isAccount(each, accounts))) return undefined
  return { kind: "status", status: 401, challenge: challenge === "token" && own.length > 0 ? "oauth" : challenge }
}

function isAccount(given: PullCredentials, accounts: ReadonlyMap<string, string>): boolean {
  if ("identityToken" in given) return [...accounts.values()].includes(given.identityToken)
  return accounts.get(given.username) === given.password
}

function parsed(image: string): ImageReference {
  const reference = parseImage(image)
  if ("invalid" in reference) throw new Error(`${image}: ${reference.invalid}`)
  return reference
}

/** A made-up image digest. It is always the same for the same content under the same name. */
function digestOf(name: string, content: ImageContent): string {
  const text = `${name} ${JSON.stringify(Object.entries(content).sort(([a], [b]) => (a < b ? -1 : 1)))}`
  return `sha256:${createHash("sha256").update(text).digest("hex")}`
}

const statusText: Record<number, string> = {
  400: "Bad Request",
  401: "Unauthorized",
  403: "Forbidden",
  404: "Not Found",
  429: "Too Many Requests",
  500: "Internal Server Error",
  502: "Bad Gateway",
  503: "Service Unavailable",
  504: "Gateway Timeout",
}

/** The error of a pull as containerd returns it to the kubelet. */
function explain(image: ImageReference, fault: Fault): string {
  const { host, repository, name } = image
  const version = image.digest ?? image.tag
  const server = host === "docker.io" ? "registry-1.docker.io" : host
  const resolving = `failed to pull and unpack image "${name}": failed to resolve reference "${name}": `
  // containerd uses plain HTTP for a registry on the node itself.
  const scheme = /^(localhost|127\.0\.0\.1|\[::1\])(:|$)/.test(server) ? "http" : "https"
  const asking = `${resolving}failed to do request: Head "${scheme}://${server}/v2/${repository}/manifests/${version}": `
  switch (fault.kind) {
    case "status": {
      const words = `${fault.status} ${statusText[fault.status] ?? ""}`.trim()
      if (fault.status === 404) return `rpc error: code = NotFound desc = ${resolving}${name}: not found`
      if (fault.status === 401) {
        const challenge = fault.challenge ?? "token"
        const tokens = { token: "anonymous", oauth: "oauth" }
        if (challenge === "token" || challenge === "oauth")
          return `${resolving}failed to authorize: failed to fetch ${tokens[challenge]} token: unexpected status: ${words}`
        if (challenge === "scope")
          return `${resolving}pull access denied, repository does not exist or may require authorization: server message: insufficient_scope: authorization failed`
      }
      return `${resolving}pulling from host ${server} failed with status code [manifests ${version}]: ${words}`
    }
    case "refused":
      return `${asking}dial tcp ${addressOf(server)}: connect: connection refused`
    case "unreachable":
      return `${asking}dial tcp ${addressOf(server)}: connect: network is unreachable`
    case "no-such-host":
      return `${asking}dial tcp: lookup ${server.replace(/:\d+$/, "")}: no such host`
    case "timeout":
      return `${asking}dial tcp ${addressOf(server)}: i/o timeout`
    case "reset":
      return `${asking}EOF`
    case "tls":
      return `${asking}x509: certificate signed by unknown authority`
    case "plain-http":
      return `${asking}http: server gave HTTP response to HTTPS client`
  }
}

const explainNoPlatform = ({ name }: ImageReference) =>
  `rpc error: code = NotFound desc = failed to pull and unpack image "${name}": no match for platform in manifest: not found`

/** A made-up address for a host name, always the same for the same name (RFC 5737). */
function addressOf(server: string): string {
  const [host = "", port = "443"] = server.split(":")
  if (/^[\d.]+$/.test(host)) return `${host}:${port}`
  const digits = createHash("sha256").update(host).digest()
  return `203.0.113.${1 + (digits[0]! % 254)}:${port}`
}
