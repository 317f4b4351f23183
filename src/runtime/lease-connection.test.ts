import { expect, test } from "vitest"
import { httpsTransport } from "./client/https-transport.ts"
import { json, type Reply, statusBody, testServer } from "./client/test-server.ts"
import { systemClock } from "./clock.ts"
import type { Controller } from "./controller.ts"
import type { Lease } from "./leader.ts"
import { runManager } from "./manager.ts"
import { seededRandom } from "./random.ts"
import { silentLogger } from "./silent-logger.ts"

const secrets = { group: "", version: "v1", plural: "secrets", kind: "Secret", namespaced: true }

/** Keeps one Lease, and answers nothing else. */
function leaseServer(onRenewal: () => void): Reply {
  let lease: Lease | undefined
  let version = 0
  return ({ method, url, body }, response) => {
    if (!url.includes("/leases")) return
    if (method === "GET") return lease ? json(response, lease) : json(response, statusBody(404, "NotFound"), 404)
    const sent: Lease = JSON.parse(body)
    lease = { ...sent, metadata: { ...sent.metadata, uid: "1", resourceVersion: String(++version) } }
    if (method === "PUT") onRenewal()
    return json(response, lease)
  }
}

test("the Lease is renewed while more reads hang than there are connections", async () => {
  let renewals = 0
  const renewedTwice = Promise.withResolvers<void>()
  const allHang = Promise.withResolvers<void>()
  const server = await testServer(
    leaseServer(() => {
      // The first PUT takes the Lease; two more are sent while everything else hangs.
      if (++renewals === 3) renewedTwice.resolve()
    }),
  )
  const ending = new AbortController()
  const reading: Controller = {
    name: "reading",
    permissions: [],
    concurrency: 1,
    setup({ client }) {
      for (let at = 0; at < 100; at++) client.get(secrets, { namespace: "shop", name: `pull-${at}` }).catch(() => {})
      allHang.resolve()
      return { reconcile: async () => {} }
    },
  }
  const done = runManager({
    transport: httpsTransport(server.config),
    controllers: [reading],
    leaderElect: { namespace: "aim-system", name: "aim", trustAbsence: true },
    clock: systemClock,
    random: seededRandom(1),
    log: silentLogger,
    signal: ending.signal,
  })
  try {
    await allHang.promise
    const patience = new Promise((_, reject) => setTimeout(() => reject(new Error("the Lease is not renewed")), 8000))
    await Promise.race([renewedTwice.promise, patience])
    expect(server.connections).toBeGreaterThan(32)
  } finally {
    ending.abort()
    await done
    await server.close()
  }
}, 30_000)
