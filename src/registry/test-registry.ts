import { createHash } from "node:crypto"
import { once } from "node:events"
import type { OutgoingHttpHeaders } from "node:http"
import * as net from "node:net"
import { afterEach } from "vitest"
import { parseImageReference } from "#core/image/reference.ts"
import { type Reply, type Seen, testServer } from "#runtime/client/test-server.ts"
import { type Clock, systemClock } from "#runtime/clock.ts"
import { seededRandom } from "#runtime/random.ts"
import { createRegistryClient, type RegistryClientOptions, type ResolveOptions } from "./client.ts"
import { type Destination, systemDial } from "./connect.ts"

const manifest = Buffer.from(JSON.stringify({ schemaVersion: 2, config: {}, layers: [] }))
const mediaType = "application/vnd.oci.image.manifest.v1+json"
export const digestOf = (bytes: Buffer) => `sha256:${createHash("sha256").update(bytes).digest("hex")}`
export const digest = digestOf(manifest)
export const other = `sha256:${"0".repeat(64)}`
export const resolved = { ok: true, digest, mediaType, size: manifest.length }

export const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

export async function serve(reply: Reply, options: Parameters<typeof testServer>[1] = {}) {
  const server = await testServer(reply, options)
  cleanups.push(() => server.close())
  return server
}

/** A server that is no HTTP server. */
export async function serveRaw(onConnection: (socket: net.Socket) => void): Promise<number> {
  const sockets = new Set<net.Socket>()
  const server = net.createServer(socket => {
    sockets.add(socket.on("error", () => {}))
    onConnection(socket)
  })
  await once(server.listen(0, "127.0.0.1"), "listening")
  cleanups.push(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return (server.address() as net.AddressInfo).port
}

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

/** A clock that a test can push forward. */
export function movableClock() {
  let offset = 0
  const clock: Clock = {
    ...systemClock,
    now: () => systemClock.now() + offset,
    monotonic: () => systemClock.monotonic() + offset,
  }
  return {
    clock,
    advance: (ms: number) => {
      offset += ms
    },
  }
}

/**
 * The internet: names with public addresses, all of them played by one server on loopback, without TLS. What matters is
 * where we would have gone.
 */
export function internet(port: number, names: Record<string, string[]>) {
  const dialled: Destination[] = []
  const looked: string[] = []
  const real = systemDial()
  return {
    dialled,
    looked,
    options: {
      lookup: async (name: string) => {
        looked.push(name)
        return names[name] ?? []
      },
      dial: (to: Destination, signal: AbortSignal) => {
        dialled.push(to)
        return real({ address: "127.0.0.1", port }, signal)
      },
    },
  }
}
