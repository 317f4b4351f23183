/**
 * What the cache costs, as ratios to the least that could be done in the same run: absolute numbers belong to a machine.
 *
 *   node --expose-gc bench/cache.ts [objects]
 */
import { createCache } from "../src/runtime/cache/index.ts"
import type { Request, Response, Transport } from "../src/runtime/client/index.ts"
import { createClient } from "../src/runtime/client/index.ts"
import { systemClock } from "../src/runtime/clock.ts"
import { seededRandom } from "../src/runtime/random.ts"
import { core, type KubeObject } from "../src/runtime/resource.ts"

const objects = Number(process.argv[2] ?? 100_000)
const events = 50_000
const sample = 10_000
const pods = core("pods", "Pod")

const collect: () => void =
  globalThis.gc ??
  (() => {
    throw new Error("run with --expose-gc")
  })

/** A pod as it comes from a server, about 4.8 KB with its managedFields. */
function pod(index: number, version: number): KubeObject {
  const labels = { app: `app-${index % 500}`, "pod-template-hash": (index % 997).toString(16).padStart(8, "0") }
  const container = (name: string) => ({
    name,
    image: `registry.example.com/team-${index % 40}/${name}:1.${index % 20}.0`,
    env: Array.from({ length: 8 }, (_, at) => ({ name: `SETTING_${at}`, value: `value ${index} of setting ${at}` })),
    resources: { requests: { cpu: "100m", memory: "128Mi" }, limits: { memory: "256Mi" } },
    volumeMounts: [{ name: "token", readOnly: true, mountPath: "/var/run/secrets/kubernetes.io/serviceaccount" }],
    terminationMessagePath: "/dev/termination-log",
    imagePullPolicy: "IfNotPresent",
  })
  const conditions = ["Initialized", "Ready", "ContainersReady", "PodScheduled"].map(type => ({
    type,
    status: "True",
    lastProbeTime: null,
    lastTransitionTime: "2026-01-01T00:00:00Z",
  }))
  const managedFields = ["kube-controller-manager", "kubelet"].map(manager => ({
    manager,
    operation: "Update",
    apiVersion: "v1",
    time: "2026-01-01T00:00:00Z",
    fieldsType: "FieldsV1",
    fieldsV1: Object.fromEntries(
      Array.from({ length: 20 }, (_, at) => [
        `f:field-${at}`,
        { ".": {}, "f:inner": {}, [`k:{"name":"n-${at}"}`]: {} },
      ]),
    ),
  }))
  const metadata = {
    name: `pod-${index}`,
    namespace: `team-${index % 40}`,
    uid: `00000000-0000-4000-8000-${String(index).padStart(12, "0")}`,
    resourceVersion: String(version),
    creationTimestamp: "2026-01-01T00:00:00Z",
    labels,
    managedFields,
  }
  const spec = { containers: [container("main"), container("sidecar")], nodeName: `node-${index % 1000}` }
  return { apiVersion: "v1", kind: "Pod", metadata, spec, status: { phase: "Running", conditions } } as KubeObject
}

type Row = { resourceVersion: string; uid: string; images: string[]; node: string; ready: boolean }

function project(object: KubeObject): Row {
  const { metadata, spec, status } = object as KubeObject & {
    spec: { containers: { image: string }[]; nodeName: string }
    status: { conditions: { type: string; status: string }[] }
  }
  return {
    resourceVersion: metadata.resourceVersion ?? "",
    uid: metadata.uid ?? "",
    images: spec.containers.map(container => container.image),
    node: spec.nodeName,
    ready: status.conditions.some(({ type, status }) => type === "Ready" && status === "True"),
  }
}

/** The same, in a tenth of the time: only the reader is measured. */
function podJson(index: number, version: number): string {
  const known = templates[index % templates.length] as string
  return known.replaceAll("@index", String(index)).replace("@version", String(version))
}
const templates = Array.from({ length: 40 }, (_, at) => {
  const object = pod(at, 0)
  Object.assign(object.metadata, { name: "pod-@index", uid: "uid-of-pod-number-@index", resourceVersion: "@version" })
  return JSON.stringify(object)
})

/** Makes its answers as they are read, so that only the reader is measured. */
function source({ count, changes = 0 }: { count: number; changes?: number }): Transport {
  const bookmark = `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"${count}","annotations":{"k8s.io/initial-events-end":"true"}}}}\n`

  async function* watch(initial: boolean, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    if (initial) {
      for (let at = 0; at < count; at++) yield eventLine("ADDED", at, at + 1)
      yield Buffer.from(bookmark)
    }
    for (let at = 0; at < changes; at++) yield eventLine("MODIFIED", at % count, count + at + 1)
    await new Promise((_, reject) => signal.addEventListener("abort", reject, { once: true }))
  }
  async function* page(query: URLSearchParams): AsyncGenerator<Uint8Array> {
    const start = Number(query.get("continue") ?? 0)
    const end = Math.min(start + Number(query.get("limit")), count)
    const next = end < count ? `,"continue":"${end}"` : ""
    yield Buffer.from(`{"metadata":{"resourceVersion":"${count}"${next}},"items":[`)
    for (let at = start; at < end; at++) yield Buffer.from((at > start ? "," : "") + podJson(at, at + 1))
    yield Buffer.from("]}")
  }
  return {
    async send({ path, signal }: Request): Promise<Response> {
      const query = new URLSearchParams(path.split("?")[1])
      const body = query.has("watch") ? watch(query.has("sendInitialEvents"), signal) : page(query)
      return { status: 200, headers: {}, body }
    },
    close() {},
  }
}

const eventLine = (type: string, index: number, version: number) =>
  Buffer.from(`{"type":"${type}","object":${podJson(index, version)}}\n`)

function cacheOf(transport: Transport, stream: boolean) {
  const random = seededRandom(1)
  const client = createClient({ transport, clock: systemClock, random })
  const indexes = { image: ({ images }: Row) => images }
  return createCache<Row>({ client, clock: systemClock, random, tuning: { stream } }, pods, { project, indexes })
}

const heapMB = () => {
  collect()
  return process.memoryUsage().heapUsed / 2 ** 20
}
const seconds = () => process.cpuUsage().user / 1e6 + process.cpuUsage().system / 1e6

/** Events: what the cache adds to making the bytes and parsing them. */
async function throughput() {
  const bytes = Array.from({ length: 1_000 }, (_, at) => eventLine("MODIFIED", at, at + 1))
  let started = seconds()
  for (let at = 0; at < events; at++) JSON.parse((bytes[at % bytes.length] as Buffer).toString("utf8"))
  const parsing = seconds() - started

  started = seconds()
  for (let at = 0; at < events; at++) eventLine("MODIFIED", at % 1_000, at + 1_000)
  const making = seconds() - started

  const cache = cacheOf(source({ count: 1_000, changes: events }), true)
  const stop = new AbortController()
  started = seconds()
  const ended = cache.run(stop.signal)
  await cache.reached({ name: "pod-0", namespace: "team-0" }, String(1_000 + events))
  const whole = seconds() - started - making
  stop.abort()
  await ended
  print(`${events} events of ${(bytes[0] as Buffer).length} bytes`)
  print(`  JSON.parse alone  ${rate(parsing)} per CPU second`)
  print(`  through the cache ${rate(whole)} per CPU second: ${(whole / parsing).toFixed(2)} times the CPU`)
}

/** Memory: what 10,000 objects occupy. */
async function kept() {
  const before = heapMB()
  const raw: unknown[] = []
  for (let at = 0; at < sample; at++) raw.push(JSON.parse(podJson(at, at + 1)))
  const parsed = (heapMB() - before) / raw.length
  raw.length = 0

  const empty = heapMB()
  const cache = cacheOf(source({ count: sample }), true)
  const stop = new AbortController()
  const ended = cache.run(stop.signal)
  await cache.synced()
  const projected = (heapMB() - empty) / cache.size
  stop.abort()
  await ended
  print(`heap kept of one object of ${sample}`)
  print(
    `  as parsed ${bytesOf(parsed)}, in the cache with an index ${bytesOf(projected)}: ${percent(projected, parsed)}`,
  )
  return { parsed, projected }
}

/** The peak: what a list holds in addition while it is read, measured live (after a collection). */
async function peak(stream: boolean, each: { parsed: number; projected: number }) {
  const empty = heapMB()
  const cache = cacheOf(source({ count: objects }), stream)
  const stop = new AbortController()
  let worst = 0
  let seen = 0
  cache.subscribe(() => {
    // In the middle of a page, with all of it parsed.
    if (++seen % 10_000 === 250) worst = Math.max(worst, heapMB() - empty - cache.size * each.projected)
  })
  const started = seconds()
  const ended = cache.run(stop.signal)
  await cache.synced()
  const spent = seconds() - started
  const kept = heapMB() - empty
  stop.abort()
  await ended
  print(`list of ${cache.size} objects ${stream ? "as a stream" : "in pages of 500"}: ${spent.toFixed(1)} CPU seconds`)
  print(
    `  kept ${megabytes(kept)}, beyond that live at most ${megabytes(worst)}; whole, it would have been ${megabytes(each.parsed * objects)}`,
  )
}

const percent = (part: number, whole: number) => `${((100 * part) / whole).toFixed(0)} %`
const bytesOf = (mb: number) => `${(mb * 2 ** 20).toFixed(0)} bytes`
const megabytes = (mb: number) => `${mb.toFixed(1)} MB`
const rate = (spent: number) => `${(events / spent / 1_000).toFixed(1)}k`
const print = (line: string) => process.stdout.write(`${line}\n`)

await throughput()
const each = await kept()
await peak(true, each)
await peak(false, each)
