/** What a reference means at its registry now, or why that is unknown. Both are facts of the world, never thrown. */
export type Resolution = Resolved | Failure

export type Resolved = {
  ok: true
  digest: string
  mediaType: string
  /** Bytes of the manifest, where the registry says so. */
  size?: number
  /** What an index is made of; known only where the manifest itself was read. */
  platforms?: Platform[]
}

export type Platform = { os: string; architecture: string; variant?: string }

export type Failure = {
  ok: false
  class: FailureClass
  /** Our own words and host names. The registry's text is not repeated, since others read this in a status. */
  message: string
  /** Other credentials would not change it. */
  isFinal?: true
  /** The registry asks us to wait this long. */
  retryAfterMs?: number
}

export type FailureClass =
  /** The registry has no such tag or repository (or answers so where access is denied). */
  | "NotFound"
  /** Credentials are missing, wrong or not enough, or would go to a server that we may not ask. */
  | "Denied"
  | "RateLimited"
  /** No name, no connection, or a server in trouble (5xx). */
  | "Unreachable"
  /** Its certificate or handshake cannot be trusted. */
  | "TLS"
  | "Timeout"
  /** The registry itself is at a place this program may not connect to unless an administrator allows it. */
  | "ForbiddenAddress"
  /** An answer that no registry should give: a redirect, a wrong digest, too much. */
  | "InvalidAnswer"

export const failure = (kind: FailureClass, message: string, retryAfterMs?: number): Failure => ({
  ok: false,
  class: kind,
  message,
  ...(retryAfterMs !== undefined && { retryAfterMs }),
})
