import { createHash, type Hash } from "node:crypto"
import { isDigest } from "#core/image/reference.ts"
import { type Failure, failure, type Platform, type Resolved } from "#core/image/resolution.ts"
import type { Answer, BodyReader } from "#egress/exchange.ts"

const mediaTypes: readonly string[] = [
  "application/vnd.oci.image.index.v1+json",
  "application/vnd.docker.distribution.manifest.list.v2+json",
  "application/vnd.oci.image.manifest.v1+json",
  "application/vnd.docker.distribution.manifest.v2+json",
]

export const acceptManifest = mediaTypes.join(", ")

/** The bound that registries use themselves. */
const maxManifestBytes = 4 * 1024 * 1024
const maxPlatforms = 100

/** The result of a HEAD; undefined where the manifest has to be read. */
export function fromHead({ headers }: Answer): Resolved | undefined {
  const digest = digestHeader(headers)
  const mediaType = contentType(headers)
  if (!digest || !isDigest(digest) || !mediaType) return undefined
  const length = headers["content-length"] ?? ""
  return { ok: true, digest, mediaType, ...(/^\d{1,10}$/.test(length) && { size: Number(length) }) }
}

/**
 * Reads a manifest as a stream, and accepts only the digest of its bytes. They are kept only where the
 * platforms are needed, by the command line and never by a controller.
 */
export function manifestReader({ asked, platforms }: { asked: string | undefined; platforms: boolean }) {
  let hashes = new Map<string, Hash>()
  let kept: Buffer[] = []
  let size = 0

  const algorithmsOf = (headers: Answer["headers"]) =>
    [asked, digestHeader(headers)].flatMap(digest => (digest && isDigest(digest) ? [algorithmOf(digest)] : []))

  function digestsOf(headers: Answer["headers"], hostname: string): { digest: string } | Failure {
    const found = new Map([...hashes].map(([algorithm, hash]) => [algorithm, `${algorithm}:${hash.digest("hex")}`]))
    const told = digestHeader(headers)
    for (const digest of [asked, told])
      if (digest !== undefined && found.get(algorithmOf(digest)) !== digest)
        return failure("InvalidAnswer", `${hostname} sent a manifest that does not have the digest it should have`)
    return { digest: asked ?? told ?? found.get("sha256")! }
  }

  return {
    read({ status, headers }: Answer): BodyReader | undefined {
      if (status !== 200) return undefined
      hashes = new Map(["sha256", ...algorithmsOf(headers)].map(algorithm => [algorithm, createHash(algorithm)]))
      kept = []
      size = 0
      const take = (piece: Buffer) => {
        for (const hash of hashes.values()) hash.update(piece)
        if (platforms) kept.push(piece)
        size += piece.length
      }
      return { take, maxBytes: maxManifestBytes }
    },
    /** The result, once the manifest is complete. */
    result({ headers }: Answer, hostname: string): Resolved | Failure {
      const found = digestsOf(headers, hostname)
      if (!("digest" in found)) return found
      const manifest = platforms ? parse(Buffer.concat(kept)) : {}
      // Nodes use the header too: they cannot pull a manifest without a content type.
      const mediaType = contentType(headers) ?? mediaTypes.find(type => type === manifest?.mediaType)
      if (!manifest || !mediaType) return failure("InvalidAnswer", `${hostname} sent no manifest of an image`)
      const entries = Array.isArray(manifest.manifests) ? platformsOf(manifest.manifests) : undefined
      return { ok: true, ...found, mediaType, size, ...(entries && { platforms: entries }) }
    },
  }
}

function platformsOf(entries: readonly unknown[]): Platform[] {
  const platforms: Platform[] = []
  for (const entry of entries.slice(0, maxPlatforms)) {
    const { os, architecture, variant } = fields(fields(entry).platform)
    // An index lists attestations with the platform unknown/unknown; they are not images.
    if (!isWord(os) || !isWord(architecture) || os === "unknown") continue
    platforms.push({ os, architecture, ...(isWord(variant) && { variant }) })
  }
  return platforms
}

const isWord = (value: unknown): value is string => typeof value === "string" && /^[A-Za-z0-9._-]{1,64}$/.test(value)

const fields = (value: unknown): Record<string, unknown> =>
  typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {}

function parse(body: Buffer): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(body.toString("utf8"))
    return typeof value === "object" && value !== null && !Array.isArray(value) ? fields(value) : undefined
  } catch {
    return undefined
  }
}

const algorithmOf = (digest: string) => digest.slice(0, digest.indexOf(":"))

/** A repeated header is invalid: the two values would be joined by a comma. */
const digestHeader = (headers: Answer["headers"]) => {
  const value = headers["docker-content-digest"]
  return typeof value === "string" ? value : undefined
}

const contentType = (headers: Answer["headers"]) => {
  const type = headers["content-type"]?.split(";")[0]?.trim().toLowerCase()
  return mediaTypes.find(known => known === type)
}
