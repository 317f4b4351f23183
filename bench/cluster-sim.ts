/**
 * What the in-process cluster costs: pods created, listed and watched by ten watchers, at one thousand and at a hundred
 * thousand of them. The cost per object is a ratio between the two, because absolute numbers depend on the machine.
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

/**
 * Microseconds of processor time so far, because other work may share this machine. The collector's threads, which run
 * in parallel and take more with a larger heap, are counted separately.
 */
function spent(): Spent {
  const [own, all] = [process.threadCpuUsage(), process.cpuUsage()]
  return { thread: own.user + own.system, process: all.user + all.system }
}

type Spent = { thread: number; process: number }

const since = (began: Spent, objects: number): Spent => {
  const now = spent()
  return { thread: (now.thread - began.thread) / objects, process: (now.process - began.process) / objects }
}

type Costs = { startMs: number; create: Spent; watch: Spent; list: Spent; bytes: number; heldBytes: number }

async function measure(count: number): Promise<Costs> {
  collect()
  const startedAt = performance.now()
  const cluster = createCluster({ clock: systemClock, seed: 1 })
  const startMs = performance.now() - startedAt
  const client = createClient({ transport: cluster.transport, clock: systemClock, random: seededRandom(1) })
  for (let team = 0; team < 40; team++) await client.create(namespaces, { metadata: { name: `team-${team}` } })
  collect()
  const heapBefore = process.memoryUsage().heapUsed

  const created = spent()
  for (let index = 0; index < count; index++) await client.create(pods, pod(index))
  const create = since(created, count)
  collect()
  const bytes = (process.memoryUsage().heapUsed - heapBefore) / count

  // Before the watchers, so that their garbage does not count here.
  const lists: Spent[] = []
  for (let turn = 0; turn < 3; turn++) lists.push(await listAll(client, count))
  const list = lists.sort((a, b) => a.thread - b.thread)[1]! // the first one also collects the garbage of creating
  collect()

  // Watchers see the state, then every change: each pod once more, labelled.
  const ending = new AbortController()
  let events = 0
  const watching = Array.from({ length: watchers }, async () => {
    for await (const event of client.watch(pods, { sendInitialEvents: true }, ending.signal))
      if (event.type !== "BOOKMARK" && ++events === 2 * count * watchers) ending.abort()
  })
  const watched = spent()
  const kind = cluster.storage.kind("v1", "Pod")
  if (!kind) throw new Error("no pods")
  for (let index = 0; index < count; index++) {
    const { name, namespace } = pod(index).metadata
    const body = { metadata: { labels: { seen: "true" } } }
    cluster.storage.patch(kind, { name, namespace }, { type: "merge", body }, { fieldManager: "bench" })
    if (index % 100 === 0) await new Promise(resolve => setImmediate(resolve))
  }
  await Promise.all(watching)
  const watch = since(watched, count * (1 + 2 * watchers))

  collect()
  const heldBytes = (process.memoryUsage().heapUsed - heapBefore) / count
  return { startMs, create, watch, list, bytes, heldBytes }
}

/** All pods, page by page. */
async function listAll(client: Client, count: number): Promise<Spent> {
  const began = spent()
  let listed = 0
  for (let token: string | undefined = ""; token !== undefined; ) {
    const page: List<KubeObject> = await client.list(pods, { limit: 500, ...(token && { continue: token }) })
    listed += page.items.length
    token = page.metadata.continue
  }
  if (listed !== count) throw new Error(`listed ${listed} of ${count}`)
  return since(began, listed)
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
for (const [name, pick] of Object.entries<(costs: Costs) => Spent>({
  "create through the client": costs => costs.create,
  "per event, change and reading it": costs => costs.watch,
  "list, per pod": costs => costs.list,
})) {
  row(name, costs => pick(costs).thread, "µs")
  row("  with the collector's threads", costs => pick(costs).process, "µs")
}
row("heap per pod after creation", costs => costs.bytes / 1024, "kB")
row("heap per pod with a log of changes", costs => costs.heldBytes / 1024, "kB")
console.log(`an empty cluster starts in ${many.startMs.toFixed(1)} ms (first: ${few.startMs.toFixed(1)} ms)`)
