/**
 * Container image references, after the grammar of the distribution project and the OCI specification:
 *
 *     [HOST[:PORT]/]PATH[:TAG][@ALGORITHM:HEX]
 *
 * The parser reads each character a bounded number of times and never throws: references come from users and from
 * objects that tenants write.
 */

export type ImageReference = {
  /** With port, without a trailing slash; absent where the text leaves it to the runtime (docker.io). */
  host?: string
  path: string
  tag?: string
  /** `sha256:…` */
  digest?: string
}

export type ParsedImageReference = { ok: true; reference: ImageReference } | { ok: false; error: string }

/** Hexadecimal digits by algorithm. Runtimes refuse every other algorithm, so a fleet stamped with one could not pull. */
const digestLengths: Record<string, number> = { sha256: 64, sha384: 96, sha512: 128 }
const maxNameLength = 255
const maxTagLength = 128

export function parseImageReference(text: string): ParsedImageReference {
  if (text === "") return failed("the image is empty: write one such as registry.example.com/team/app:v2")
  const odd = /[^\x21-\x7e]/.exec(text)
  if (odd) return failed(`${JSON.stringify(odd[0])} cannot be part of an image`)
  // A bare ID names a local image, and nodes would read a name of this shape as one.
  if (/^[a-f0-9]{64}$/.test(text))
    return failed("64 hexadecimal digits are an image ID, not a name: write NAME@sha256:DIGITS")

  const [beforeDigest, digest] = cut(text, text.indexOf("@"))
  const badDigest = digest === undefined ? undefined : digestProblem(digest)
  if (badDigest) return failed(badDigest)

  // A colon behind the last slash begins the tag; one before it belongs to the host's port.
  const colon = beforeDigest.lastIndexOf(":")
  const [name, tag] = cut(
    beforeDigest,
    colon > beforeDigest.lastIndexOf("/") && !beforeDigest.endsWith("]") ? colon : -1,
  )
  const badTag = tag === undefined ? undefined : tagProblem(tag)
  if (badTag) return failed(badTag)

  if (name.length > maxNameLength)
    return failed(`the name has ${name.length} characters; at most ${maxNameLength} are allowed`)
  const [first, rest] = cut(name, name.indexOf("/"))
  const hasHost = rest !== undefined && looksLikeHost(first)
  const badHost = hasHost ? hostProblem(first) : undefined
  if (badHost) return failed(badHost)
  const path = hasHost ? rest : name
  const badPath = pathProblem(path)
  if (badPath) return failed(badPath)

  return {
    ok: true,
    reference: { ...(hasHost && { host: first }), path, ...(tag && { tag }), ...(digest && { digest }) },
  }
}

export function formatImageReference({ host, path, tag, digest }: ImageReference): string {
  return (host ? `${host}/` : "") + path + (tag ? `:${tag}` : "") + (digest ? `@${digest}` : "")
}

/** The reference a runtime would use: host and `library/` spelled out, `latest` where neither tag nor digest is given. */
export function normaliseImageReference(reference: ImageReference): ImageReference & { host: string } {
  // The case of a host has no meaning, and index.docker.io is the older name of the same registry.
  const written = (reference.host ?? dockerHub).toLowerCase()
  const host = written === "index.docker.io" ? dockerHub : written
  const path = host === dockerHub && !reference.path.includes("/") ? `library/${reference.path}` : reference.path
  return { ...reference, host, path, ...(!reference.tag && !reference.digest && { tag: "latest" }) }
}

/** Do both texts name the same image? Digests on both sides decide; the tag beside a digest is ignored. */
export function sameImage(a: string, b: string): boolean {
  if (a === b) return true
  const left = identityOf(a)
  return left !== undefined && left === identityOf(b)
}

/** The normalised repository, without tag and digest: `docker.io/library/nginx`. */
export function repositoryOf(reference: ImageReference): string {
  const { host, path } = normaliseImageReference(reference)
  return `${host}/${path}`
}

/** The same image, pinned to the digest of its tag: `repo:tag@sha256:…`. An image with a digest stays as it is. */
export const pinned = (image: string, digest: string) => (image.includes("@") ? image : `${image}@${digest}`)

/** What was written before it was pinned: `repo:tag@sha256:…` → `repo:tag`. */
export const unpinned = (image: string) => cut(image, image.indexOf("@"))[0]

/** Is `text` only `image` with a digest? So a decision that recorded digests is not mistaken for a changed spec. */
export const isPinOf = (text: string, image: string) =>
  text.includes("@") && !image.includes("@") && parseImageReference(text).ok && sameImage(unpinned(text), image)

/** `sha256:…` and the like, by the grammar of references. */
export const isDigest = (text: string) => digestProblem(text) === undefined

const dockerHub = "docker.io"

/**
 * A fleet has many objects and few images, and each is compared again with every change: without this, reading the same
 * references over and over was a third of the cost of a changed spec. Tenants write the texts, so both bounds are
 * needed.
 */
const identities = new Map<string, string | undefined>()
const identitiesMost = 1000
const lengthMost = 1024

function identityOf(text: string): string | undefined {
  const known = identities.get(text)
  if (known !== undefined || identities.has(text)) return known
  const parsed = parseImageReference(text)
  const found = parsed.ok ? identity(parsed.reference) : undefined
  if (text.length > lengthMost) return found
  if (identities.size >= identitiesMost) identities.clear()
  identities.set(text, found)
  return found
}

function identity(reference: ImageReference): string {
  const { digest, tag } = normaliseImageReference(reference)
  return digest ? `${repositoryOf(reference)}@${digest}` : `${repositoryOf(reference)}:${tag}`
}

const failed = (error: string): ParsedImageReference => ({ ok: false, error })

/** The text before and after the character at `index`; all of it and nothing when the character is absent. */
const cut = (text: string, index: number): [string, string | undefined] =>
  index < 0 ? [text, undefined] : [text.slice(0, index), text.slice(index + 1)]

const looksLikeHost = (text: string) => text === "localhost" || /[.:[]/.test(text)

function hostProblem(text: string): string | undefined {
  const bracketed = text.startsWith("[")
  const [name, port] = cut(text, text.indexOf(":", bracketed ? text.indexOf("]") : 0))
  if (bracketed && !/^\[[0-9A-Fa-f:]+\]$/.test(name)) return `"${name}" is not an IPv6 address in brackets`
  if (port !== undefined && !/^[0-9]+$/.test(port)) return `"${port}" is not a port number`
  const labels = bracketed ? [] : name.split(".")
  const bad = labels.some(label => !/^[A-Za-z0-9-]+$/.test(label) || label.startsWith("-") || label.endsWith("-"))
  return bad ? `"${text}" is not a host: its parts are letters, digits and "-" inside, separated by dots` : undefined
}

function pathProblem(path: string): string | undefined {
  if (/[A-Z]/.test(path)) return `"${path}" has upper-case letters: write the path in lower case`
  const bad = path.split("/").find(part => !isPathPart(part))
  if (bad === "") return "the path has an empty part: write PATH or PATH/NAME, with single slashes between"
  if (bad === undefined) return undefined
  return `"${bad}" is not part of a path: write lower-case letters and digits, with ".", "_", "__" or "-" between them`
}

/** Runs of letters and digits with single separators between: `.`, `_`, `__`, or any number of `-`. */
function isPathPart(part: string): boolean {
  if (!/^[a-z0-9._-]+$/.test(part)) return false
  const separators = part.split(/[a-z0-9]+/)
  // The pieces before the first and behind the last run are empty in a good name.
  return separators.every((separator, index) => {
    const outside = index === 0 || index === separators.length - 1
    return outside ? separator === "" : /^([._]|__|-+)$/.test(separator)
  })
}

function tagProblem(tag: string): string | undefined {
  if (tag.length > maxTagLength) return `the tag has ${tag.length} characters; at most ${maxTagLength} are allowed`
  if (!/^[A-Za-z0-9_][A-Za-z0-9_.-]*$/.test(tag))
    return `"${tag}" is not a tag: write letters, digits, "_", "." and "-", not beginning with "." or "-"`
}

function digestProblem(digest: string): string | undefined {
  const [algorithm, hex] = cut(digest, digest.indexOf(":"))
  if (hex === undefined) return `"${digest}" is not a digest: write sha256: and 64 hexadecimal digits`
  const length = Object.hasOwn(digestLengths, algorithm) ? digestLengths[algorithm] : undefined
  if (length === undefined)
    return `"${algorithm}" is not a digest algorithm: write one of ${Object.keys(digestLengths).join(", ")}`
  if (hex.length !== length || !/^[a-f0-9]*$/.test(hex))
    return `a ${algorithm} digest has ${length} digits from 0 to 9 and a to f`
}
