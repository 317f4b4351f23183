import { type ImageReference, repositoryOf } from "./reference.ts"

/** A Secret as the API returns it, with values in base64. A tenant may have written it. */
export type PullSecret = { type?: string; data?: Readonly<Record<string, string>> }

type Credentials = { username: string; password: string }

/**
 * Credentials by their location: `HOST[:PORT][/PATH]`, where the host may have `*` in its parts. Keys are as the
 * kubelet reads them, without scheme and without the `/v1/` and `/v2/` that docker writes.
 */
export type Keyring = ReadonlyMap<string, Credentials>

const maxBytes = 64 * 1024
const maxBase64 = Math.ceil(maxBytes / 3) * 4

/** The credentials in a pull Secret. An unreadable entry is left out and never quoted: it may be part of a password. */
export function credentialsOf(secret: PullSecret): Keyring {
  const keyring = new Map<string, Credentials>()
  for (const [location, entry] of Object.entries(entriesOf(secret))) {
    const key = keyOf(location)
    const credentials = credentialsIn(entry)
    if (key !== undefined && credentials) keyring.set(key, credentials)
  }
  return keyring
}

/**
 * The credentials that the kubelet sends to pull an image, in the order in which it tries them: the most specific key
 * first, and for one key in the order of the keyrings.
 */
export function credentialsFor(reference: ImageReference, keyrings: readonly Keyring[]): Credentials[] {
  const image = pulledName(reference)
  const keys = [...new Set(keyrings.flatMap(keyring => [...keyring.keys()]))]
  const matching = keys
    .filter(key => isFor(key, image))
    .sort()
    .reverse()
  const at = (key: string) => keyrings.flatMap(keyring => keyring.get(key) ?? [])
  if (matching.length > 0) return matching.flatMap(at)
  return image.startsWith("docker.io/") ? at("index.docker.io") : []
}

/** Compares hosts letter by letter, like the kubelet: a Secret for `quay.io` does not help to pull from `Quay.io`. */
function pulledName(reference: ImageReference): string {
  const host = reference.host ?? "docker.io"
  return host === "docker.io" || host === "index.docker.io" ? repositoryOf(reference) : `${host}/${reference.path}`
}

function entriesOf({ type, data }: PullSecret): object {
  if (type === "kubernetes.io/dockerconfigjson") return fieldOf(jsonIn(data, ".dockerconfigjson"), "auths")
  if (type === "kubernetes.io/dockercfg") return objectOr(jsonIn(data, ".dockercfg"))
  return {}
}

function jsonIn(data: PullSecret["data"], name: string): unknown {
  const text = data && Object.hasOwn(data, name) ? decoded(data[name]) : undefined
  if (text === undefined) return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const objectOr = (value: unknown): object =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? value : {}

const fieldOf = (value: unknown, name: string): object => objectOr(memberOf(value, name))

const memberOf = (value: unknown, name: string): unknown =>
  Object.hasOwn(objectOr(value), name) ? (value as Record<string, unknown>)[name] : undefined

function credentialsIn(entry: unknown): Credentials | undefined {
  const auth = memberOf(entry, "auth")
  if (typeof auth === "string" && auth !== "") {
    const text = decoded(auth)
    const colon = text?.indexOf(":") ?? -1
    return text === undefined || colon < 0
      ? undefined
      : orNothing({ username: text.slice(0, colon), password: text.slice(colon + 1) })
  }
  const [username = "", password = ""] = [memberOf(entry, "username"), memberOf(entry, "password")]
  return typeof username === "string" && typeof password === "string" ? orNothing({ username, password }) : undefined
}

/** Tools that keep passwords elsewhere leave an entry without either. */
const orNothing = (credentials: Credentials) =>
  credentials.username === "" && credentials.password === "" ? undefined : credentials

function decoded(base64: unknown): string | undefined {
  if (typeof base64 !== "string" || base64.length > maxBase64) return undefined
  const digits = base64.replace(/[\r\n]/g, "")
  return /^[A-Za-z0-9+/]*={0,2}$/.test(digits) ? Buffer.from(digits, "base64").toString("utf8") : undefined
}

/** `https://index.docker.io/v1/` → `index.docker.io`. */
function keyOf(location: string): string | undefined {
  const url = location.replace(/^https?:\/\//, "").replace(/[?#].*$/s, "")
  const slash = url.indexOf("/")
  const authority = slash < 0 ? url : url.slice(0, slash)
  const host = authority.slice(authority.lastIndexOf("@") + 1)
  if (!/^(\[[0-9A-Fa-f:]+\]|[A-Za-z0-9._*-]+)(:[0-9]+)?$/.test(host)) return undefined
  const path = (slash < 0 ? "" : url.slice(slash)).replace(/^\/v[12](?=\/)/, "")
  if (!/^[\x21-\x7e]*$/.test(path) || path.includes("%")) return undefined
  return path === "/" ? host : host + path
}

/** Hosts part by part, where `*` stands for anything within a part; the port exactly; the path as a beginning. */
function isFor(key: string, image: string): boolean {
  const [wanted, given] = [split(key), split(image)]
  return (
    wanted.port === given.port &&
    given.path.startsWith(wanted.path) &&
    wanted.parts.length === given.parts.length &&
    wanted.parts.every((glob, index) => globMatches(glob, given.parts[index]!))
  )
}

function split(location: string): { parts: string[]; port: string; path: string } {
  const slash = location.indexOf("/")
  const host = slash < 0 ? location : location.slice(0, slash)
  const colon = host.indexOf(":", Math.max(0, host.lastIndexOf("]")))
  const name = colon < 0 ? host : host.slice(0, colon)
  return {
    parts: name.split("."),
    port: colon < 0 ? "" : host.slice(colon + 1),
    path: slash < 0 ? "" : location.slice(slash),
  }
}

/** Each piece between stars is looked for once, from where the last one ended, so that no glob takes long. */
function globMatches(glob: string, text: string): boolean {
  const [first = "", ...rest] = glob.split("*")
  const last = rest.pop()
  if (last === undefined) return glob === text
  if (!text.startsWith(first) || !text.endsWith(last)) return false
  let at = first.length
  for (const piece of rest) {
    const found = text.indexOf(piece, at)
    if (found < 0) return false
    at = found + piece.length
  }
  return at <= text.length - last.length
}
