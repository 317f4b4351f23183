import { virtualClock } from "#runtime/clock.ts"
import type { ServedKind } from "../../../apiserver/kind.ts"
import { type Cluster, createCluster } from "../../../cluster.ts"
import type { Json } from "../../../object.ts"
import { scheduler } from "../../scheduler/scheduler.ts"
import { type Nodes, nodes } from "../nodes.ts"
import { createRegistries, type Fault, type RegistryOptions } from "../registries.ts"
import { rootCertificate } from "../test-world.ts"
import { gateOf, images, podOf, type RecordedCase, type Step } from "./cases.ts"

/** What was seen of one pod, on either floor: versions of it and events about it, each so long after it was created. */
export type Sighting = { atMs: number; pod?: Json; gone?: boolean; event?: Json }

/** The registries of the recording, in the words of the simulation. */
function recordedRegistries(): RegistryOptions[] {
  const good: Record<string, Record<string, Json>> = {}
  for (const [name, image] of Object.entries(images)) {
    const [repository = "", tag = ""] = name.split(":")
    const { readyAfterSeconds, neverReady, exitsAfterSeconds, exitCode = 0, ignoresTerm, paddingBytes = 0 } = image
    good[repository] = {
      ...good[repository],
      [tag]: {
        sizeBytes: 1_089_400 + paddingBytes,
        ...(readyAfterSeconds && { readyAfterMs: 1000 * readyAfterSeconds }),
        ...(neverReady && { neverReady }),
        ...(exitsAfterSeconds && { exits: { afterMs: 1000 * exitsAfterSeconds, exitCode } }),
        ...(ignoresTerm && { ignoresTerm }),
      },
    }
  }
  const status = (code: number): { fault: Fault } => ({ fault: { kind: "status", status: code } })
  const challenge = (kind: "none" | "basic" | "token" | "scope"): { fault: Fault } => ({
    fault: { kind: "status", status: 401, challenge: kind },
  })
  const speed = { bytesPerSecond: 100_000_000, latencyMs: 15 }
  return [
    { host: "good.test", ...speed, images: good },
    {
      host: "faulty.test",
      ...speed,
      images: {
        "bare-401": { 1: challenge("none") },
        "basic-401": { 1: challenge("basic") },
        "token-401": { 1: challenge("token") },
        "scope-401": { 1: challenge("scope") },
        "status-403": { 1: status(403) },
        "status-404": { 1: status(404) },
        "status-429": { 1: { fault: { kind: "status", status: 429, retryAfterSeconds: 30 } } },
        "status-500": { 1: status(500) },
        "status-503": { 1: status(503) },
        reset: { 1: { fault: { kind: "reset" } } },
        "no-platform": { 1: { platforms: ["linux/s390x"] } },
      },
    },
    { host: "127.0.0.1:9", ...speed, fault: { kind: "refused" } },
    { host: "192.0.2.1:5000", ...speed, fault: { kind: "unreachable" } },
    { host: "plain.test", ...speed, fault: { kind: "plain-http" } },
    { host: "tls.test", ...speed, fault: { kind: "tls" } },
  ]
}

/** Lives a recorded case again on a simulated node, and gives what was seen of it. */
export async function replay(each: RecordedCase, seed = 1): Promise<Sighting[]> {
  const clock = virtualClock(Date.parse("2026-01-01T00:00:00.370Z"))
  const registries = createRegistries(recordedRegistries())
  let machines: Nodes | undefined
  const cluster = createCluster({
    clock,
    seed,
    parts: [
      world => {
        machines = nodes(world, { registries, parallelPulls: Number.POSITIVE_INFINITY })
        return machines
      },
      world => scheduler(world),
    ],
  })
  const { storage } = cluster
  const kind = (name: string) => storage.kind("v1", name) as ServedKind
  storage.create(kind("ConfigMap"), rootCertificate)
  storage.create(kind("Node"), {
    apiVersion: "v1",
    kind: "Node",
    metadata: { name: "real-0", labels: { type: "real" } },
    status: { capacity: { cpu: "2", memory: "24682416Ki", pods: "110" } },
  })
  cluster.start()
  await clock.advance(2000)
  for (const [name, { isFresh }] of Object.entries(images))
    if (!isFresh) machines?.loadImage("real-0", `good.test/${name}`)

  const sightings: Sighting[] = []
  const { name } = each
  const startedAt = clock.now()
  const see = (sighting: Omit<Sighting, "atMs">) => sightings.push({ atMs: clock.now() - startedAt, ...sighting })
  storage.subscribe(kind("Pod"), ({ type, object }) => {
    const { generation, deletionTimestamp, deletionGracePeriodSeconds } = object.metadata
    const { nodeName } = object.spec
    if (type === "DELETED") see({ gone: true, pod: object.status })
    else see({ pod: { generation, deletionTimestamp, deletionGracePeriodSeconds, nodeName, ...object.status } })
  })
  storage.subscribe(kind("Event"), ({ type, object }) => {
    const { metadata, involvedObject, ...rest } = object
    if (type !== "DELETED" && involvedObject.kind === "Pod")
      see({ event: { name: metadata.name, fieldPath: involvedObject.fieldPath, ...rest } })
  })

  storage.create(kind("Pod"), { ...podOf(each), metadata: { name, namespace: "default" } })
  for (const step of each.steps ?? []) {
    await clock.advance(startedAt + 1000 * step.atSeconds - clock.now())
    await act(cluster, kind("Pod"), each, step)
  }
  await clock.advance(startedAt + 1000 * each.seconds - clock.now())
  cluster.stop()
  return sightings
}

async function act({ storage, transport, node }: Cluster, pods: ServedKind, each: RecordedCase, step: Step) {
  const place = { name: each.name, namespace: "default" }
  if (step.do === "delete")
    return storage.delete(pods, place, step.grace === undefined ? {} : { gracePeriodSeconds: step.grace })
  if (step.do === "stop") {
    const { containerStatuses } = storage.get(pods, place).status
    const { containerID } = containerStatuses.find(({ name }: Json) => name === step.container)
    const id = containerID.replace("containerd://", "")
    return void node("real-0")?.runtime.connect().stopContainer(id, { graceSeconds: step.grace })
  }
  if (step.do === "patch") return storage.patch(pods, place, { type: "strategic", body: step.body })
  if (step.do === "gate")
    return storage.patch(pods, place, { type: "strategic", body: gateOf(step) }, { subresource: "status" })
  if (step.do === "evict") {
    const { signal } = new AbortController()
    const body = JSON.stringify({ apiVersion: "policy/v1", kind: "Eviction", metadata: place })
    const path = `/api/v1/namespaces/default/pods/${each.name}/eviction`
    const headers = { "content-type": "application/json" }
    return transport.send({ method: "POST", path, headers, body, signal })
  }
  const isMain = each.spec.containers.some(({ name }: Json) => name === step.container)
  const body = { spec: { [isMain ? "containers" : "initContainers"]: [{ name: step.container, image: step.image }] } }
  return storage.patch(pods, place, { type: "strategic", body })
}

/** A life that can be compared: what the pod's status said, one after the other, and what events there were. */
export type Story = { statuses: Told[]; events: Told[] }
export type Told = { atMs: number; text: string }

/** Without what differs from one run to the next: addresses, ids, times, sizes. */
export function story(sightings: readonly Sighting[], untilMs: number): Story {
  const statuses: Told[] = []
  const events: Told[] = []
  for (const { atMs, pod, gone, event } of sightings) {
    if (atMs > untilMs) break
    if (event) {
      const { type, reason, message, fieldPath } = event
      const text = plain(`${type} ${reason} ${fieldPath ? `[${fieldPath}] ` : ""}${message}`)
      if (!events.some(told => told.text === text)) events.push({ atMs, text })
      continue
    }
    const text = gone ? "gone" : plain(statusLine(pod))
    if (text !== statuses.at(-1)?.text) statuses.push({ atMs, text })
  }
  return { statuses, events }
}

function statusLine(pod: Json): string {
  const { generation, observedGeneration = "-", deletionTimestamp, phase, reason, message, podIP } = pod
  const { initContainerStatuses = [], containerStatuses = [], conditions = [], qosClass, startTime } = pod
  const about = [reason, message].filter(Boolean).join(": ")
  const head = `${phase}${about ? ` (${about})` : ""} ${observedGeneration}/${generation} ${qosClass}`
  const marks = [deletionTimestamp && "deleted", podIP && "ip", startTime && "started", pod.nodeName && "bound"]
  const lines = conditions.map(
    (each: Json) =>
      `  ${each.type} ${each.status}@${each.observedGeneration ?? "-"} ${[each.reason, each.message].filter(Boolean).join(": ")}`,
  )
  const containers = [...initContainerStatuses, ...containerStatuses].map(containerLine)
  return [`${head} ${marks.filter(Boolean).join(" ")}`, ...lines, ...containers].map(line => line.trimEnd()).join("\n")
}

function containerLine(each: Json): string {
  const state = (is: Json = {}) => {
    const { running, waiting, terminated } = is
    if (running) return "running"
    if (waiting) return `waiting ${waiting.reason}${waiting.message ? `: ${waiting.message}` : ""}`
    return terminated
      ? `terminated ${terminated.reason} ${terminated.exitCode}${terminated.message ? `: ${terminated.message}` : ""}`
      : "none"
  }
  const words = [
    `  ${each.name}: ${state(each.state)}; before: ${state(each.lastState)}; restarts ${each.restartCount}`,
    each.ready && "ready",
    each.started && "started",
    each.image,
    each.imageID?.replace(/[0-9a-f]{64}/, "…"),
    each.containerID?.replace(/[0-9a-f]{64}/, "…"),
    JSON.stringify(each.resources),
  ]
  return words.filter(Boolean).join(" ")
}

function plain(text: string): string {
  return text
    .replace(/Head "https?:/g, 'Head "http(s):') // a storage of the recording that spoke plain HTTP by its settings
    .replace(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, "UID")
    .replace(/10\.\d+\.\d+\.\d+/g, "IP")
    .replace(/in [\d.ms]+ \([\d.ms]+ including waiting\)\. Image size: \d+ bytes/g, "in TIME. Image size: SIZE")
}
