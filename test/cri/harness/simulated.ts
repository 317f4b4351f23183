import { createCluster, everyPart, type Json, openRegistries } from "#cluster-sim/index.ts"
import { createClient } from "#runtime/client/index.ts"
import { sleep, type VirtualClock, virtualClock } from "#runtime/clock.ts"
import { seededRandom } from "#runtime/random.ts"
import { core } from "#runtime/resource.ts"
import type { ContainerWish, PodWish, RegistryName, RuntimeFloor } from "./floor.ts"

const namespaces = core("namespaces", "Namespace", false)
const pods = core("pods", "Pod")
const namespace = "cri"
const hosts: Record<RegistryName, string> = { public: "registry.example.com", private: "private.example.com" }
const credentials = { username: "puller", password: "sesame" }
const imageBytes = 1_500_000
const spareBytes = 2_000_000
const contents: Record<ContainerWish["behaviour"], Json> = { polite: { exec: run }, stubborn: { ignoresTerm: true } }

/** A node of cluster-sim with its kubelet, in virtual time. */
export async function simulatedFloor(): Promise<RuntimeFloor> {
  const clock = virtualClock(Date.parse("2026-01-01T00:00:00Z"))
  const registries = openRegistries(clock.now(), () => [
    { host: hosts.public, images: {} },
    { host: hosts.private, images: {}, accounts: { [credentials.username]: credentials.password }, challenge: "token" },
    // Nothing listens there.
    { host: "127.0.0.1:1", fault: { kind: "refused" } },
  ])
  for (const [name, content] of Object.entries(contents))
    registries.push(`${hosts.public}/${name}:v1`, { sizeBytes: imageBytes, ...content })
  const cluster = createCluster({ clock, parts: everyPart({ nodes: 1, registries }) })
  cluster.start()
  const stopTime = letTimePass(clock)
  const client = createClient({ transport: cluster.transport, clock, random: seededRandom(1) })
  await client.create(namespaces, { metadata: { name: namespace } })
  await sleep(clock, 1000) // for its service account
  const simulated = cluster.node("node-0")?.runtime
  if (!simulated) throw new Error("there is no node")
  const runtime = simulated.connect()

  return {
    runtime,
    clock,
    connect: () => simulated.connect(),
    connectMounted: () => simulated.connectMounted(),
    async freezeDuringStop(id, stop) {
      const own = simulated.connect()
      own.stopContainer(id, stop).catch(() => {})
      return () => own.close()
    },
    async startPod(wish) {
      const { metadata } = await client.create(pods, manifest(wish))
      for (const end = clock.now() + 60_000; clock.now() < end; await sleep(clock, 50)) {
        const { status }: Json = await client.get(pods, { name: wish.name, namespace })
        const statuses: Json[] = status.containerStatuses ?? []
        if (statuses.length > 0 && statuses.every(({ state }) => state.running)) return metadata.uid ?? ""
      }
      throw new Error(`pod ${wish.name} does not run`)
    },
    async push(where, name, { version = "", paddingBytes = 0, onlyFor } = {}) {
      const reference = `${hosts[where]}/${name}`
      const content = {
        // Another version is other content.
        sizeBytes: imageBytes + paddingBytes + version.length,
        ...(onlyFor && { platforms: [`linux/${onlyFor}`] }),
      }
      return { reference, digest: registries.push(reference, content) }
    },
    host: where => hosts[where],
    credentials,
    holdLayers() {
      // So slow that a large layer is on its way for minutes.
      registries.setSpeed(hosts.private, { bytesPerSecond: 50_000 })
      return () => registries.setSpeed(hosts.private, { bytesPerSecond: 100_000_000 })
    },
    async fillDisk() {
      const { disk } = simulated.images
      disk.set({ otherBytes: disk.freeBytes - spareBytes })
      return async () => disk.set({ otherBytes: 0 })
    },
    killRuntime: async () => simulated.die(),
    startRuntime: async () => simulated.revive(),
    words: [
      [hosts.public, "REGISTRY"],
      [hosts.private, "PRIVATE"],
      [namespace, "NAMESPACE"],
    ],
    async close() {
      runtime.close()
      cluster.stop()
      client.close()
      await stopTime()
    },
  }
}

/** Moves the clock from timer to timer, each when everything that can go on without time passing has done so. */
function letTimePass(clock: VirtualClock): () => Promise<void> {
  let isStopped = false
  const passing = (async () => {
    while (!isStopped) await clock.advance(Math.max(0, (clock.nextAt() ?? clock.now()) - clock.now()))
  })()
  return () => {
    isStopped = true
    return passing
  }
}

/** What the commands of the scripts do in a real container. */
function run([command, ...args]: readonly string[]) {
  if (command === "echo") return { output: `${args.join(" ")}\n` }
  if (command === "sleep") return { takesMs: 1000 * Number(args[0]) }
  if (command === "sh") return { output: "out\nerr\n", exitCode: 3 }
  return undefined
}

function manifest(wish: PodWish): Json & { metadata: { name: string; namespace: string; uid?: string } } {
  const { name, restartPolicy, graceSeconds: terminationGracePeriodSeconds } = wish
  const containers = wish.containers.map(({ name, behaviour, preStop, ports = [] }) => ({
    ...{ name, ports, image: `${hosts.public}/${behaviour}:v1` },
    ...(preStop && { lifecycle: { preStop } }),
  }))
  return { metadata: { name, namespace }, spec: { containers, restartPolicy, terminationGracePeriodSeconds } }
}
