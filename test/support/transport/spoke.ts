import { createCluster, type Json, serveHttp } from "#cluster-sim/index.ts"
import { createAuthority } from "#lib/certificate.ts"
import { type Client, createClient } from "#runtime/client/index.ts"
import { type Clock, systemClock } from "#runtime/clock.ts"
import { seededRandom } from "#runtime/random.ts"
import { core, type Resource } from "#runtime/resource.ts"
import type { TransportWorld } from "./suite.ts"

/** A kind of ours as a cluster may have it that checks nothing: what comes from there may be anything. */
export const laxDefinition = (plural: string, kind: string, namespaced: boolean): Json => ({
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: `${plural}.autoimagemanager.io` },
  spec: {
    group: "autoimagemanager.io",
    names: { plural, singular: kind.toLowerCase(), kind, listKind: `${kind}List` },
    scope: namespaced ? "Namespaced" : "Cluster",
    versions: [
      {
        ...{ name: "v1alpha1", served: true, storage: true, subresources: { status: {} } },
        schema: {
          openAPIV3Schema: {
            type: "object",
            properties: {
              spec: {
                type: "object",
                properties: { equivalentRepositories: { type: "array", items: { type: "string" } } },
                "x-kubernetes-preserve-unknown-fields": true,
              },
              status: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
            },
          },
        },
      },
    ],
  },
})

const sources: Resource = {
  ...{ group: "autoimagemanager.io", version: "v1alpha1", plural: "alternateimagesources" },
  ...{ kind: "AlternateImageSource", namespaced: true },
}
const configMaps = core("configmaps", "ConfigMap")
const definitions: Resource = {
  ...{ group: "apiextensions.k8s.io", version: "v1", plural: "customresourcedefinitions" },
  ...{ kind: "CustomResourceDefinition", namespaced: false },
}

/** What persons and controllers do on a cluster. */
export function handsOn(client: Client): TransportWorld["spoke"] {
  const resourceOf = ({ kind }: { kind: string }) => (kind === "ConfigMap" ? configMaps : sources)
  return {
    read: manifest => client.get<never>(resourceOf(manifest), manifest.metadata).catch(() => undefined),
    async edit(manifest, change) {
      const body = { metadata: { name: manifest.metadata.name, namespace: "default" }, ...change }
      const patch = { type: "apply" as const, body, force: true }
      await client.patch(resourceOf(manifest), manifest.metadata, patch, { fieldManager: "editor" })
    },
    async status(manifest, status) {
      await client.patch(
        resourceOf(manifest),
        manifest.metadata,
        { type: "merge", body: { status } },
        { subresource: "status" },
      )
    },
    delete: manifest => client.delete(resourceOf(manifest), manifest.metadata),
  }
}

/** A simulated cluster with that kind, and what persons and controllers do there. */
export async function openSpoke(clock: Clock = systemClock, hubToken = "hub-token") {
  const users = { [hubToken]: { name: "hub", groups: ["system:masters"] } }
  const cluster = createCluster({ clock, seed: 5, users })
  const client = createClient({ transport: cluster.transport, clock, random: seededRandom(3) })
  await client.create(definitions, laxDefinition("alternateimagesources", "AlternateImageSource", true) as never)
  return { cluster, client, spoke: handsOn(client) }
}

/** The same over TLS on loopback, which can be away and come back at the same address. */
export async function serveSpoke(options: { hubToken?: string } = {}) {
  const { hubToken = "hub-token" } = options
  const { cluster, client, spoke } = await openSpoke(systemClock, hubToken)
  const authority = createAuthority({ name: "spoke", now: Date.now(), days: 30 })
  const tls = authority.forServer({ name: "spoke" }, ["localhost", "127.0.0.1"])
  const serve = (port = 0) => serveHttp(cluster.front(), { port, tls })
  let serving = await serve()
  const { port } = serving
  let isAway = false
  return {
    ...{ cluster, client, spoke, port, authority },
    kubeconfig: kubeconfigOf({ server: `https://127.0.0.1:${port}`, ca: authority.cert, user: { token: hubToken } }),
    async setAway(away: boolean) {
      if (away === isAway) return
      isAway = away
      if (away) await serving.close()
      else serving = await serve(port)
    },
    close: () => (isAway ? Promise.resolve() : serving.close()),
  }
}

export const kubeconfigOf = ({
  server,
  ca,
  user,
  cluster = {},
}: {
  server: string
  ca: string
  user: object
  cluster?: object
}) =>
  JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    "current-context": "spoke",
    contexts: [{ name: "spoke", context: { cluster: "spoke", user: "hub" } }],
    clusters: [
      {
        name: "spoke",
        cluster: { server, "certificate-authority-data": Buffer.from(ca).toString("base64"), ...cluster },
      },
    ],
    users: [{ name: "hub", user }],
  })
