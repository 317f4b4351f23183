/**
 * What the in-process cluster costs: pods created, listed and watched by ten watchers, at one thousand and at a hundred
 * thousand of them. The cost per object is told as a ratio between the two, since absolute numbers belong to a machine.
 *
 *   node --expose-gc bench/cluster-sim.ts [pods]
 */
import { createCluster } from "../src/cluster-sim/index.ts"
import type { Client, List } from "../src/runtime/client/client.ts"
import { createClient } from "../src/runtime/client/create-client.ts"
import { systemClock } from "../src/runtime/clock.ts"
import { seededRandom } from "../src/runtime/random.ts"
import { core, type KubeObject } from "../src/runtime/resource.ts"

const large = Number(process.argv[2] ?? 100_000)
const small = 1000
const watchers = 10
const pods = core("pods", "Pod")
const namespaces = core("namespaces", "Namespace", false)

const collect: () => void =
  globalThis.gc ??
  (() => {
    throw new Error("run with --expose-gc")
  })

const pod = (index: number): KubeObject & { spec: object } => ({
  metadata: {
    name: `web-${index.toString(36).padStart(5, "0")}`,
    namespace: `team-${index % 40}`,
    labels: { app: `app-${index % 500}`, "pod-template-hash": (index % 997).toString(16).padStart(8, "0") },
  },
  spec: {
    containers: ["main", "sidecar"].map(name => ({
      name,
      image: `registry.example.com/team-${index % 40}/${name}:1.${index % 20}.0`,
      env: Array.from({ length: 4 }, (_, at) => ({ name: `SETTING_${at}`, value: `value ${index} of setting ${at}` })),
      resources: { requests: { cpu: "100m", memory: "128Mi" }, limits: { memory: "256Mi" } },
    })),
  },
})

/** Microseconds of processor time so far, collecting garbage included: others may share this machine. */
function spentUs(): number {
  const { user, system } = process.cpuUsage()
  return user + system
}

type Costs = { startMs: number; createUs: number; watchUs: number; listUs: number; bytes: number; heldBytes: number }

async function measure(count: number): Promise<Costs> {
  collect()
  const startedAt = performance.now()
  const cluster = createCluster({ clock: systemClock, seed: 1 })
  const startMs = performance.now() - startedAt
  const client = createClient({ transport: cluster.transport, clock: systemClock, random: seededRandom(1) })
  for (let team = 0; team < 40; team++) await client.create(namespaces, { metadata: { name: `team-${team}` } })
  collect()
  const heapBefore = process.memoryUsage().heapUsed

  const create = spentUs()
  for (let index = 0; index < count; index++) await client.create(pods, pod(index))
  const createUs = (spentUs() - create) / count
  collect()
  const bytes = (process.memoryUsage().heapUsed - heapBefore) / count

  // Watchers see the state, then every change: each pod once more, labelled.
  const ending = new AbortController()
  let events = 0
  const watching = Array.from({ length: watchers }, async () => {
    for await (const event of client.watch(pods, { sendInitialEvents: true }, ending.signal))
      if (event.type !== "BOOKMARK" && ++events === 2 * count * watchers) ending.abort()
  })
  const watch = spentUs()
  const kind = cluster.registry.kind("v1", "Pod")
  if (!kind) throw new Error("no pods")
  for (let index = 0; index < count; index++) {
    const { name, namespace } = pod(index).metadata
    const body = { metadata: { labels: { seen: "true" } } }
    cluster.registry.patch(kind, { name, namespace }, { type: "merge", body }, { fieldManager: "bench" })
    if (index % 100 === 0) await new Promise(resolve => setImmediate(resolve))
  }
  await Promise.all(watching)
  const watchUs = (spentUs() - watch) / (count * (1 + 2 * watchers))

  const rounds: number[] = []
  for (let round = 0; round < 3; round++) rounds.push(await listAll(client, count))
  const listUs = Math.min(...rounds)
  collect()
  const heldBytes = (process.memoryUsage().heapUsed - heapBefore) / count
  return { startMs, createUs, watchUs, listUs, bytes, heldBytes }
}

/** All pods, page by page, as clients with manners do. Microseconds per pod. */
async function listAll(client: Client, count: number): Promise<number> {
  const began = spentUs()
  let listed = 0
  for (let token: string | undefined = ""; token !== undefined; ) {
    const page: List<KubeObject> = await client.list(pods, { limit: 500, ...(token && { continue: token }) })
    listed += page.items.length
    token = page.metadata.continue
  }
  if (listed !== count) throw new Error(`listed ${listed} of ${count}`)
  return (spentUs() - began) / listed
}

await measure(small) // warms up
const [few, many] = [await measure(small), await measure(large)]
const row = (name: string, pick: (costs: Costs) => number, unit: string) => {
  const ratio = pick(many) / pick(few)
  console.log(
    `${name.padEnd(34)} ${pick(few).toFixed(1).padStart(8)} ${pick(many).toFixed(1).padStart(8)} ${unit}  × ${ratio.toFixed(2)}`,
  )
}
console.log(`${"pods".padEnd(34)} ${String(small).padStart(8)} ${String(large).padStart(8)}`)
row("create through the client", costs => costs.createUs, "µs")
row("per event, change and reading it", costs => costs.watchUs, "µs")
row("list, per pod", costs => costs.listUs, "µs")
row("heap per pod after creation", costs => costs.bytes / 1024, "kB")
row("heap per pod with a log of changes", costs => costs.heldBytes / 1024, "kB")
console.log(`an empty cluster starts in ${many.startMs.toFixed(1)} ms (first: ${few.startMs.toFixed(1)} ms)`)
