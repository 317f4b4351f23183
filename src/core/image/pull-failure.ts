import type { PullFailure } from "#api/v1alpha1/alternateimagesource/reasons.ts"

/** No more of a message is read. The cause stands before the text of the registry. */
const maxLength = 4096

/**
 * Why a container waits for its image, from the kubelet's reason and message (`state.waiting`). Undefined where it waits
 * for something else, or where the fault is the node's own and no registry was asked.
 */
export function classify(reason: string, message: string): PullFailure | undefined {
  if (reason === "SignatureValidationFailed") return "SignatureRejected"
  if (reason === "RegistryUnavailable") return "Unreachable"
  if (reason !== "ErrImagePull" && reason !== "ImagePullBackOff") return undefined
  const text = withoutNames(withoutMirrors(message.slice(0, maxLength).toLowerCase()))
  // A failed check comes before everything: whatever else the message says, switching would bypass it.
  if (isRejected(text)) return "SignatureRejected"
  if (nodesOwn.test(text)) return undefined
  return wordings.find(({ words }) => words.test(text))?.failure ?? fromStatus(text) ?? fromAnswer(text)
}

/** The kubelet starts only so many pulls a second (registryPullQPS), and has not started this one. */
export const isHeldBack = (reason: string, message: string) =>
  (reason === "ErrImagePull" || reason === "ImagePullBackOff") && /(^|: )pull QPS exceeded$/.test(message)

/** The kubelet holds pulls back, or does not reach its container runtime. */
const nodesOwn = /pull qps exceeded|dial unix|error reading from server|transport is closing/

/**
 * Wordings that are enough on their own, in order: the first match counts. The node writes all of them, except the
 * wording of rate limits, which some registries send with a 403.
 */
const wordings: { failure: PullFailure; words: RegExp }[] = [
  { failure: "Unreachable", words: /because the registry is unavailable/ },
  {
    failure: "NoPlatform",
    words:
      /no match for platform|no matching manifest for|no image found in (manifest list|image index) for architecture|architecture mismatch|the specified platform/,
  },
  { failure: "DiskFull", words: /no space left on device|disk quota exceeded/ },
  { failure: "RateLimited", words: /\btoomanyrequests\b|too many requests|\brate limit|\brate exceeded|\bpull limit/ },
  // A handshake that takes too long says nothing about the certificate. containerd cancels pulls that do not advance.
  {
    failure: "Timeout",
    words: /i\/o timeout|deadline exceeded|client\.timeout|tls handshake timeout|timed out|context canceled/,
  },
  {
    failure: "TLS",
    words: /\bx509: |\btls: |remote error: tls|certificate (has|is|signed)|http response to https client/,
  },
  {
    failure: "Unreachable",
    words:
      /connection refused|connection reset|no such host|no route to host|(network|host) is unreachable|server misbehaving|name resolution|dial tcp|proxyconnect|broken pipe|\beof\b|closed network connection|server closed|stream error|goaway|malformed http/,
  },
]

/** What the registry answered. Its status code counts more than its text, which any server may have written. */
function fromStatus(text: string): PullFailure | undefined {
  const status = Number(/(?:: |\bstatus |\bcode |\bregistry )([45]\d\d)(?=$|[ ,])/.exec(text)?.[1])
  if (status === 401 || status === 403 || status === 451) return "Denied"
  if (status === 404 || status === 410) return "NotFound"
  if (status === 408) return "Timeout"
  if (status === 429) return "RateLimited"
  // Harbor answers so for images that its owner's policy withholds: unsigned, or with known vulnerabilities.
  if (status === 412) return "SignatureRejected"
  if (status >= 500) return "Unreachable"
  return undefined
}

/** "pull access denied, repository does not exist or may require authorization" is denied, unless more is known. */
function fromAnswer(text: string): PullFailure {
  if (
    /\bunauthorized\b|\bforbidden\b|(?<!permission )\bdenied\b|insufficient_scope|no basic auth credentials/.test(text)
  )
    return "Denied"
  if (/authentication required|incorrect username or password|invalid username\b/.test(text)) return "Denied"
  if (/\bnot found\b|\b(manifest|name|blob|repository)[ _](name not known|unknown)\b|does not exist/.test(text))
    return "NotFound"
  if (/internal server error|bad gateway|service unavailable|gateway timeout/.test(text)) return "Unreachable"
  return "UnknownFailure"
}

function isRejected(text: string): boolean {
  // Go's certificate errors contain the word signature, and so do S3's links.
  const rest = text.replace(/\b(x509|tls): [^:"]*|request signature/g, "")
  return /\bsignatures?\b|\bcosign\b|\bsigstore\b|\bnotation\b|source image rejected|image verifier|\bpolicy\b|projectpolicyviolation|trust data/.test(
    rest,
  )
}

/** CRI-O reports the answers of its mirrors first; the class is that of the registry which the image names. */
function withoutMirrors(text: string): string {
  const end = text.includes("(mirrors also failed: [") ? text.lastIndexOf("]): ") : -1
  return end < 0 ? text : text.slice(end + 3)
}

/**
 * The text without images, hosts, addresses and links. People choose these names: an image may be called
 * `tools/x509-signature:denied`.
 */
function withoutNames(text: string): string {
  const words = text.split(/\s+/)
  return words
    .map((word, index) => {
      const [before, after] = [words[index - 1], words[index + 1]]
      const isPlace = before === "lookup" || before === "host" || before === "[manifests"
      const isTag = before === "manifest" && after === "in"
      if (!isPlace && !isTag && !isName(word)) return word
      return word.endsWith(":") ? "…:" : "…"
    })
    .join(" ")
}

/** Anything with a slash, an at sign, or a dot or colon inside; or in quotes. Words of sentences have none of these. */
const isName = (word: string) =>
  word !== "i/o" && word !== "(client.timeout" && /[/@]|[.:][a-z0-9[]|^"[^"]*"[:,.]?$/.test(word)
