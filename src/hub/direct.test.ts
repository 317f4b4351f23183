import { afterEach, describe, expect, test } from "vitest"
import { serveHttp } from "#cluster-sim/index.ts"
import { systemClock } from "#runtime/clock.ts"
import { seededRandom } from "#runtime/random.ts"
import { kubeconfigOf, serveSpoke } from "#test/support/transport/spoke.ts"
import { deliveryOf, type TransportWorld, transportSuite } from "#test/support/transport/suite.ts"
import { type ClusterAccess, createConnections, createDirectTransport, readSpokeKubeconfig } from "./index.ts"

const secretOf = (kubeconfig: string) => ({ kubeconfig: Buffer.from(kubeconfig).toString("base64") })

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

/** A transport whose hub has these clusters; on loopback, so each server must be allowed. */
function transportTo(access: (cluster: string) => ClusterAccess | undefined, allowed: readonly string[] = []) {
  const connections = createConnections({
    ...{ clock: systemClock, random: seededRandom(9), allowed, access: async cluster => access(cluster) },
  })
  const transport = createDirectTransport({ clock: systemClock, connections, hubId: "one" })
  closing.push(() => transport.close())
  return transport
}

async function open(): Promise<TransportWorld> {
  const served = await serveSpoke()
  const access = (cluster: string) => (cluster === "north" ? { secret: secretOf(served.kubeconfig) } : undefined)
  const make = () => transportTo(access, [`127.0.0.1:${served.port}`])
  return {
    transport: make(),
    cluster: "north",
    pass: () => new Promise(resolve => systemClock.after(10, resolve)),
    spoke: served.spoke,
    setAway: served.setAway,
    restarted: async () => make(),
    async close() {
      for (const close of closing.splice(0)) await close()
      await served.close()
    },
  }
}

transportSuite({ open })

const plain = deliveryOf([])

describe("a connection", () => {
  test("to loopback is refused unless it is allowed", async () => {
    const served = await serveSpoke()
    closing.push(served.close)
    for (const server of [
      `https://127.0.0.1:${served.port}`,
      `https://localhost:${served.port}`,
      "https://169.254.169.254",
    ]) {
      const secret = secretOf(kubeconfigOf({ server, ca: served.authority.cert, user: { token: "hub-token" } }))
      const answer = await transportTo(() => ({ secret })).probe("north")
      const said = JSON.stringify(answer)
      expect(said).toContain("--allow-cluster-address")
      expect(said).not.toContain('"isReachable":true')
    }
  })

  test("with another server or authority than was registered is refused, and the credential is not sent", async () => {
    const [mine, thief] = [await serveSpoke(), await serveSpoke()]
    closing.push(mine.close, thief.close)
    const read = readSpokeKubeconfig(mine.kubeconfig)
    if (!read.ok) throw new Error(read.error)
    const { registered } = read.value
    let kubeconfig = mine.kubeconfig
    const allowed = [`127.0.0.1:${mine.port}`, `127.0.0.1:${thief.port}`]
    const access = () => ({ secret: secretOf(kubeconfig), registered })
    expect(await transportTo(access, allowed).probe("north")).toMatchObject({ value: { isReachable: true } })
    // The thief rewrites the Secret: first the server, then the authority with it.
    for (const ca of [mine.authority.cert, thief.authority.cert]) {
      kubeconfig = kubeconfigOf({ server: `https://127.0.0.1:${thief.port}`, ca, user: { token: "hub-token" } })
      expect(await transportTo(access, allowed).probe("north")).toMatchObject({ trouble: { is: "BadCredential" } })
    }
  })

  test("to a server with a certificate of another authority fails", async () => {
    const [mine, other] = [await serveSpoke(), await serveSpoke()]
    closing.push(mine.close, other.close)
    const kubeconfig = kubeconfigOf({
      ...{ server: `https://127.0.0.1:${mine.port}`, ca: other.authority.cert, user: { token: "hub-token" } },
    })
    const answer = await transportTo(() => ({ secret: secretOf(kubeconfig) }), [`127.0.0.1:${mine.port}`]).probe(
      "north",
    )
    expect(answer).toMatchObject({ value: { isReachable: false } })
  })

  test("does not follow a server that leads elsewhere", async () => {
    const served = await serveSpoke()
    closing.push(served.close)
    const tls = served.authority.forServer({ name: "spoke" }, ["127.0.0.1"])
    const paths: string[] = []
    const redirecting = await serveHttp(
      {
        async send({ path }) {
          paths.push(path)
          return { status: 307, headers: { location: `https://127.0.0.1:${served.port}${path}` }, body: empty() }
        },
        close: () => {},
      },
      { tls },
    )
    closing.push(redirecting.close)
    const kubeconfig = kubeconfigOf({
      server: redirecting.url,
      ca: served.authority.cert,
      user: { token: "hub-token" },
    })
    const transport = transportTo(() => ({ secret: secretOf(kubeconfig) }), [`127.0.0.1:${redirecting.port}`])
    expect(await transport.probe("north")).toMatchObject({ ok: false })
    expect(paths.length).toBeGreaterThan(0)
  })

  test("with a refused token reads the Secret again before the next request", async () => {
    const served = await serveSpoke({ hubToken: "new-token" })
    closing.push(served.close)
    const server = `https://127.0.0.1:${served.port}`
    let token = "old-token"
    const access = () => ({ secret: secretOf(kubeconfigOf({ server, ca: served.authority.cert, user: { token } })) })
    const transport = transportTo(access, [`127.0.0.1:${served.port}`])
    const object = deliveryOf([
      {
        ...{ lifetime: "Removed", judge: { by: "Presence" } },
        manifest: { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a", namespace: "default" } },
      },
    ])
    expect(await transport.observe("north", object)).toMatchObject({ trouble: { is: "BadCredential" } })
    token = "new-token"
    expect(await transport.observe("north", object)).toMatchObject({ ok: true })
  })

  test("without a Secret, or without a kubeconfig in it, is trouble", async () => {
    const missing = transportTo(() => ({ secret: undefined }))
    expect(await missing.observe("north", plain)).toMatchObject({ trouble: { is: "UnknownCluster" } })
    const empty = transportTo(() => ({ secret: { other: "" } }))
    expect(await empty.observe("north", plain)).toMatchObject({ trouble: { is: "BadCredential" } })
  })
})

async function* empty(): AsyncGenerator<Uint8Array> {}
