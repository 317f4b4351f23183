import { createHash } from "node:crypto"
import type { OutgoingHttpHeaders } from "node:http"
import { parseImageReference } from "#core/image/reference.ts"
import { serve } from "#egress/test-servers.ts"
import type { Reply, Seen } from "#runtime/client/test-server.ts"
import { systemClock } from "#runtime/clock.ts"
import { seededRandom } from "#runtime/random.ts"
import { createRegistryClient, type RegistryClientOptions, type ResolveOptions } from "./client.ts"

const manifest = Buffer.from(JSON.stringify({ schemaVersion: 2, config: {}, layers: [] }))
const mediaType = "application/vnd.oci.image.manifest.v1+json"
export const digestOf = (bytes: Buffer) => `sha256:${createHash("sha256").update(bytes).digest("hex")}`
export const digest = digestOf(manifest)
export const other = `sha256:${"0".repeat(64)}`
export const resolved = { ok: true, digest, mediaType, size: manifest.length }

/** An honest registry, but for the headers given. */
export const registry =
  (headers: OutgoingHttpHeaders = {}): Reply =>
  (_, response) =>
    response
      .writeHead(200, {
        "content-type": mediaType,
        "docker-content-digest": digest,
        "content-length": manifest.length,
        ...headers,
      })
      .end(manifest)
export const status =
  (code: number, headers: OutgoingHttpHeaders = {}): Reply =>
  (_, response) =>
    response.writeHead(code, headers).end()

export const client = (options: Partial<RegistryClientOptions> = {}) =>
  createRegistryClient({ clock: systemClock, random: seededRandom(1), ...options })
export const referenceTo = (image: string) => {
  const parsed = parseImageReference(image)
  if (!parsed.ok) throw new Error(parsed.error)
  return parsed.reference
}
export const resolveImage = (image: string, options: Partial<RegistryClientOptions> = {}, how: ResolveOptions = {}) =>
  client(options).resolve(referenceTo(image), how)

/** Resolves app:v1 at a registry on loopback that was allowed. */
export async function resolveAt(reply: Reply, options: Partial<RegistryClientOptions> = {}, how: ResolveOptions = {}) {
  const server = await serve(reply)
  const place = `127.0.0.1:${server.port}`
  const resolution = await resolveImage(`${place}/app:v1`, { allow: [place], ...options }, how)
  return { resolution, requests: server.seen.map(shown), seen: server.seen }
}
export const shown = ({ method, url }: Seen) => `${method} ${url}`
