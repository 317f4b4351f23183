import { createHash } from "node:crypto"
import { isDigest } from "#core/image-reference.ts"
import type { Answer } from "./exchange.ts"
import { type Failure, failure, type Platform, type Resolved } from "./resolution.ts"

const mediaTypes: readonly string[] = [
  "application/vnd.oci.image.index.v1+json",
  "application/vnd.docker.distribution.manifest.list.v2+json",
  "application/vnd.oci.image.manifest.v1+json",
  "application/vnd.docker.distribution.manifest.v2+json",
]

export const acceptManifest = mediaTypes.join(", ")

/** As registries bound it themselves. */
export const maxManifestBytes = 4 * 1024 * 1024
const maxPlatforms = 100

/** What the answer to a HEAD tells; undefined where the manifest has to be read to know. */
export function fromHead({ headers }: Answer): Resolved | undefined {
  const digest = digestHeader(headers)
  const mediaType = contentType(headers)
  if (!digest || !isDigest(digest) || !mediaType) return undefined
  const length = headers["content-length"] ?? ""
  return { ok: true, digest, mediaType, ...(/^\d{1,10}$/.test(length) && { size: Number(length) }) }
}

/** Reads a manifest, and believes no digest that its bytes do not have. */
export function fromManifest(
  { headers, body }: Answer,
  asked: string | undefined,
  hostname: string,
): Resolved | Failure {
  const told = digestHeader(headers)
  for (const digest of [asked, told])
    if (digest !== undefined && !hasDigest(body, digest))
      return failure("InvalidAnswer", `${hostname} sent a manifest that does not have the digest it should have`)

  const manifest = parse(body)
  const written = manifest?.mediaType
  const mediaType = contentType(headers) ?? mediaTypes.find(type => type === written)
  if (!manifest || !mediaType) return failure("InvalidAnswer", `${hostname} sent no manifest of an image`)
  const platforms = Array.isArray(manifest.manifests) ? platformsOf(manifest.manifests) : undefined
  const digest = asked ?? told ?? digestOf(body, "sha256")
  return { ok: true, digest, mediaType, size: body.length, ...(platforms && { platforms }) }
}

function platformsOf(entries: readonly unknown[]): Platform[] {
  const platforms: Platform[] = []
  for (const entry of entries.slice(0, maxPlatforms)) {
    const { os, architecture, variant } = fields(fields(entry).platform)
    // Attestations stand in an index with the platform unknown/unknown: nothing that could run.
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

const digestOf = (body: Buffer, algorithm: string) => `${algorithm}:${createHash(algorithm).update(body).digest("hex")}`

const hasDigest = (body: Buffer, digest: string) =>
  isDigest(digest) && digest === digestOf(body, digest.slice(0, digest.indexOf(":")))

/** Twice is as good as wrong: the two would be joined by a comma. */
const digestHeader = (headers: Answer["headers"]) => {
  const value = headers["docker-content-digest"]
  return typeof value === "string" ? value : undefined
}

const contentType = (headers: Answer["headers"]) => {
  const type = headers["content-type"]?.split(";")[0]?.trim().toLowerCase()
  return mediaTypes.find(known => known === type)
}
