import { crdOf } from "#api/crd.ts"
import { kinds } from "#api/kinds.ts"
import {
  type Cluster,
  createCluster,
  createGateway,
  digestOf,
  everyPart,
  type Json,
  openRegistries,
  type RegistriesDescription,
  type User,
} from "#cluster-sim/index.ts"
import { controllersWith } from "#controllers/all.ts"
import { classify } from "#core/image/pull-failure.ts"
import { formatImageReference } from "#core/image/reference.ts"
import type { FailureClass, RegistryClient } from "#registry/index.ts"
import { type Client, createClient, type Transport } from "#runtime/client/index.ts"
import type { Clock } from "#runtime/clock.ts"
import type { Controller } from "#runtime/controller.ts"
import type { Logger } from "#runtime/log.ts"
import { runManager } from "#runtime/manager.ts"
import { type Random, seededRandom } from "#runtime/random.ts"
import { silentLogger } from "#runtime/silent-logger.ts"
import { runLocalAgents } from "./local-agents.ts"
import { gatewayManifests, type LocalTraffic, startTraffic, type TrafficWords } from "./local-traffic.ts"
import { partOf, targetRole, targetRoleRef } from "./manifests/names.ts"
import { policies } from "./manifests/policies.ts"

export type LocalClusterOptions = {
  clock: Clock
  seed?: number
  nodes: number
  registries?: RegistriesDescription | undefined
  /** Serves the Gateway API, with a gateway. */
  hasGateway?: boolean
  /** Clients outside, through the gateway, and a Prometheus that every Canary may ask. */
  traffic?: readonly TrafficWords[]
  saved?: ReturnType<Cluster["store"]["dump"]> | undefined
  /** For a cluster that others reach over HTTP: its users by token, and what signs tokens of service accounts. */
  identity?: { users: Readonly<Record<string, User>>; tokenKey: string }
  /** Beside our own, as an operator of the user's would run. */
  alsoRun?: readonly Controller[]
  log?: Logger
}

/** A cluster in this process with our kinds, our controllers and an agent per node, for `aim up` and `aim demo`. */
export type LocalCluster = {
  readonly cluster: Cluster
  /** With the rights of an administrator. */
  readonly client: Client
  /** What its nodes pull from. */
  readonly registries: ReturnType<typeof openRegistries>
  readonly traffic?: LocalTraffic | undefined
  /** Server-side apply, as kubectl would. */
  apply(...manifests: readonly Json[]): Promise<void>
  /** Ends the controllers, the agents and the simulation. */
  stop(): Promise<void>
}

export async function startLocalCluster(options: LocalClusterOptions): Promise<LocalCluster> {
  const { clock, seed = 1, nodes, registries, saved, identity, alsoRun = [], log = silentLogger } = options
  const images = openRegistries(clock.now(), registries)
  const { traffic: wanted = [] } = options
  const gateway = options.hasGateway || wanted.length > 0 ? createGateway() : undefined
  const cluster = createCluster({
    ...{ clock, seed, saved },
    parts: everyPart({ nodes, registries: images, gateway }),
    ...(identity && { ...identity, hasDefaultRoles: true }),
  })
  // Each user of the in-process server closes its own way to it, and none the server.
  const shared: Transport = { send: cluster.transport.send, close: () => {} }
  const client = createClient({ transport: shared, clock, random: seededRandom(seed) })
  cluster.start()

  const apply = async (...manifests: readonly Json[]) => {
    for (const manifest of manifests) {
      const resource = await client.discover(manifest.apiVersion, manifest.kind)
      if (!resource) throw new Error(`the cluster does not serve ${manifest.kind} in ${manifest.apiVersion}`)
      const { name, namespace } = manifest.metadata
      const where = resource.namespaced ? { name, namespace: namespace ?? "default" } : { name }
      await client.patch(resource, where, { type: "apply", body: manifest, force: true }, { fieldManager: "aim-up" })
    }
  }
  await apply(...kinds.map(crdOf), ...policies(), everywhere)

  if (wanted.length > 0) await apply(...gatewayManifests)
  const traffic =
    wanted.length > 0 && gateway
      ? await startTraffic(wanted, { cluster, clock, gateway, seed, registries: images })
      : undefined
  const stopping = new AbortController()
  const run = (list: readonly Controller[], random: Random, signal = stopping.signal) =>
    runManager({
      transport: shared,
      controllers: list,
      leaderElect: false,
      clock,
      random,
      log,
      signal,
    })
  const stopAgents = runLocalAgents(cluster, { seed: seed + 1000, run })
  const running = [
    run(
      controllersWith({ registry: asked(images, clock), metricsServer: traffic?.metricsServer }),
      seededRandom(seed + 1),
    ),
    ...alsoRun.map((each, i) => run([each], seededRandom(seed + 2 + i))),
  ]
  return {
    cluster,
    client,
    registries: images,
    traffic,
    apply,
    async stop() {
      stopping.abort()
      await Promise.all([...running, stopAgents()])
      await traffic?.stop()
      cluster.stop()
      client.close()
    },
  }
}

/** Its controllers are administrators. The policies that ask for a grant find this one. */
const everywhere: Json = {
  apiVersion: "rbac.authorization.k8s.io/v1",
  kind: "ClusterRoleBinding",
  metadata: { name: targetRole, labels: partOf },
  roleRef: targetRoleRef,
  subjects: [],
}

/** The simulated registries, behind the interface with which a controller asks real ones. */
const asked = (images: ReturnType<typeof openRegistries>, clock: Clock): Pick<RegistryClient, "resolve"> => ({
  async resolve(reference) {
    const answer = digestOf(images, formatImageReference(reference), clock.now())
    return "digest" in answer
      ? { ok: true, digest: answer.digest, mediaType: "application/vnd.oci.image.manifest.v1+json" }
      : { ok: false, class: classOf(answer.message), message: answer.message }
  },
})

/** Simulated registries answer as to a node. */
function classOf(message: string): FailureClass {
  const failure = classify("ErrImagePull", message)
  if (failure === "NotFound" || failure === "NoPlatform") return "NotFound"
  return failure === "Denied" || failure === "RateLimited" || failure === "TLS" || failure === "Timeout"
    ? failure
    : "Unreachable"
}
