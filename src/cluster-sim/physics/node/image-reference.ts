/** An image as containerd names it, after the rules of distribution/reference. */
export type ImageReference = {
  /** `docker.io`, `ghcr.io`, `127.0.0.1:5000` */
  host: string
  /** `library/nginx` */
  repository: string
  tag?: string
  digest?: string
  /** The full name: `docker.io/library/nginx:1.25`. With a digest, the tag is dropped. */
  name: string
}

const tagRule = /^[\w][\w.-]{0,127}$/
const digestRule = /^sha256:[0-9a-f]{64}$/
const hostRule =
  /^(?:(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])(?:\.(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9]))*|\[[a-fA-F0-9:]+\])(?::\d+)?$/
const pathRule = /^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:\/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*$/

/** The parts of a reference, or what is wrong with it, in the words of a pod's status. */
export function parseImage(image: string): ImageReference | { invalid: string } {
  if (/^[a-f0-9]{64}$/.test(image))
    return { invalid: `invalid repository name (${image}), cannot specify 64-byte hexadecimal strings` }
  const at = image.indexOf("@")
  const digest = at < 0 ? undefined : image.slice(at + 1)
  const named = at < 0 ? image : image.slice(0, at)
  const slash = named.indexOf("/")
  const first = slash < 0 ? "" : named.slice(0, slash)
  const isHost = slash >= 0 && (/[.:]/.test(first) || first === "localhost" || first !== first.toLowerCase())
  const host = isHost ? (first === "index.docker.io" ? "docker.io" : first) : "docker.io"
  const rest = isHost ? named.slice(slash + 1) : named
  const colon = rest.lastIndexOf(":")
  const tag = colon > rest.lastIndexOf("/") ? rest.slice(colon + 1) : undefined
  const path = tag === undefined ? rest : rest.slice(0, colon)
  const repository = host === "docker.io" && !path.includes("/") ? `library/${path}` : path
  if (path !== path.toLowerCase())
    return { invalid: `invalid reference format: repository name (${repository}) must be lowercase` }
  const isWellFormed =
    hostRule.test(host) &&
    pathRule.test(path) &&
    (tag === undefined || tagRule.test(tag)) &&
    (digest === undefined || digestRule.test(digest))
  if (!isWellFormed) return { invalid: "invalid reference format" }
  const name = digest ? `${host}/${repository}@${digest}` : `${host}/${repository}:${tag ?? "latest"}`
  if (digest) return { host, repository, digest, ...(tag !== undefined && { tag }), name }
  return { host, repository, tag: tag ?? "latest", name }
}
