import { createClient } from "#runtime/client/create-client.ts"
import type { Request } from "#runtime/client/transport.ts"
import { virtualClock } from "#runtime/clock.ts"
import { seededRandom } from "#runtime/random.ts"
import { type ClusterOptions, createCluster } from "./cluster.ts"
import type { Json } from "./object.ts"

/** For tests: a cluster on a virtual clock, a client of it, and a way to send exact requests. */
export function testCluster(options: Partial<ClusterOptions> = {}) {
  const clock = virtualClock(Date.parse("2026-01-01T00:00:00Z"))
  const cluster = createCluster({ clock, seed: 7, ...options })
  const client = createClient({ transport: cluster.transport, clock, random: seededRandom(1) })

  async function send(method: Request["method"], path: string, body?: Json, headers: Record<string, string> = {}) {
    const response = await cluster.transport.send({
      method,
      path,
      headers: { "content-type": method === "PATCH" ? "application/merge-patch+json" : "application/json", ...headers },
      body: body === undefined || typeof body === "string" ? body : JSON.stringify(body),
      signal: new AbortController().signal,
    })
    const chunks: Uint8Array[] = []
    for await (const chunk of response.body) chunks.push(chunk)
    const text = Buffer.concat(chunks).toString("utf8")
    const parsed: Json = response.headers["content-type"]?.includes("json") ? JSON.parse(text) : text
    return { status: response.status, headers: response.headers, body: parsed }
  }
  return { clock, cluster, client, send }
}
