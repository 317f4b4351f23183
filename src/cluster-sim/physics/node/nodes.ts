import type { Json, Obj } from "../../object.ts"
import { StatusError } from "../../status-error.ts"
import { NodeRuntime } from "../container-runtime/index.ts"
import { createRecorder, type EventType } from "../recorder.ts"
import { microTime } from "../scheduler/events.ts"
import { createTimers, type Timers } from "../timers.ts"
import type { Part, PhysicsWorld, SimulatedNode } from "../world.ts"
import { type CollectionPolicy, ImageCollector, ordinaryCollection } from "./image-collector.ts"
import { Kubelet } from "./kubelet.ts"
import { hostAddress, type NodeSpec, nodeObject, nodeStatus, withOwnData } from "./node-object.ts"
import { calmPace, type Pace } from "./options.ts"
import { createRegistries, type Registries } from "./registries.ts"
import { isEqual } from "./status-writer.ts"

export type NodesOptions = {
  /** Default: registries that have every image. */
  registries?: Registries
  pace?: Partial<Pace>
  /** Images pulled at the same time on one node; the kubelet's default is one after the other. */
  parallelPulls?: number
  /** The disk of each node: 100 GiB with nothing else on it, unless given. */
  disk?: { capacityBytes?: number; otherBytes?: number }
  /** When kubelets remove images. Default: the kubelet's own settings. */
  imageCollection?: Partial<CollectionPolicy>
  /**
   * `lazy` writes a node's Lease only when its kubelet starts, so that a thousand idle nodes cost nothing. The node
   * controller still detects a dead kubelet. `written` renews the Lease every ten seconds, so that users can see it.
   */
  heartbeat?: "lazy" | "written"
}

export type Nodes = Part & {
  readonly registries: Registries
  node(name: string): SimulatedNode | undefined
  /** The kubelet of a node dies, or its machine is cut off: its containers keep running, and no status is written. */
  stopKubelet(node: string): void
  startKubelet(node: string): void
  isAlive(node: string): boolean
  /** Calls the listener when a kubelet dies or returns. The node controller uses this instead of Leases. */
  onLife(listener: (node: string, isAlive: boolean) => void): () => void
  /** Ends a container from outside: a crash, or the kernel when memory is short. Returns whether there was one. */
  endContainer(pod: Obj, container: string, how: { exitCode: number; reason?: "OOMKilled" | "Error" }): boolean
  /** Puts an image on a node without a pull. */
  loadImage(node: string, image: string): boolean
}

type SayOfNode = (type: EventType, reason: string, message: string) => void

type Played = {
  kubelet: Kubelet
  runtime: NodeRuntime
  collector: ImageCollector
  /** Records an event about the node. */
  say: SayOfNode
  /** The runtime has not answered for so long that the node is not ready. */
  isRuntimeDown: boolean
  cancelDown: (() => void) | undefined
  uid: string
  index: number
  cancelImages: (() => void) | undefined
  cancelLease: (() => void) | undefined
}

const imagesEveryMs = 10_000
const leaseEveryMs = 10_000
const runtimeDownAfterMs = 30_000
const runtimeCheckEveryMs = 5000

/**
 * A kubelet for every Node object: a created Node gets a machine that runs pods. Reads Pods and Nodes; writes the
 * status of pods and nodes, Leases and events, and removes deleted pods.
 */
export function nodes(world: PhysicsWorld, options: NodesOptions = {}): Nodes {
  const { storage, clock } = world
  const registries = options.registries ?? createRegistries()
  const pace = { ...calmPace, ...options.pace }
  const { heartbeat = "lazy" } = options
  const listeners = new Set<(node: string, isAlive: boolean) => void>()
  let played = new Map<string, Played>()
  let timers: Timers | undefined

  const indices = new Set<number>()
  const indexOf = (node: Obj) => networkIndex(node, indices)

  const kind = (apiVersion: string, name: string) => {
    const found = storage.kind(apiVersion, name)
    if (!found) throw new Error(`${apiVersion} ${name} is not served`)
    return found
  }
  const tell = (node: string, isAlive: boolean) => {
    for (const listener of listeners) listener(node, isAlive)
  }

  function play(node: Obj, clockwork: Timers) {
    const { name } = node.metadata
    const index = indexOf(node)
    indices.add(index)
    const each = createMachine(world, node, { ...options, registries, pace, timers: clockwork, index })
    played.set(name, each)
    begin(node, each, clockwork)
  }

  /** Starts a kubelet. */
  function begin(node: Obj, each: Played, clockwork: Timers) {
    const { name } = node.metadata
    const wasReady = node.status?.conditions?.some((is: Json) => is.type === "Ready" && is.status === "True")
    writeNodeStatus(world, name, each)
    renew(node, each, clockwork)
    if (wasReady) return
    each.say("Normal", "NodeReady", `Node ${name} status is now: NodeReady`)
  }

  function renew(node: Obj, each: Played, clockwork: Timers) {
    writeLease(world, node)
    if (heartbeat === "lazy") return
    each.cancelLease = clockwork.after(leaseEveryMs, () => {
      if (each.kubelet.isAlive) renew(node, each, clockwork)
    })
  }

  const pods = (node: string) =>
    storage.list(kind("v1", "Pod"), { fieldSelector: `spec.nodeName=${node}` }).items as readonly Obj[]

  return {
    name: "nodes",
    registries,
    node: name => played.get(name),
    start() {
      const clockwork = createTimers(clock)
      timers = clockwork
      played = new Map()
      indices.clear()
      const nodeKind = kind("v1", "Node")
      const podKind = kind("v1", "Pod")

      const hearPod = (type: string, pod: Obj) => {
        const kubelet = pod.spec?.nodeName && played.get(pod.spec.nodeName)?.kubelet
        if (!kubelet) return
        if (type === "DELETED") kubelet.forget(pod.metadata.uid)
        else kubelet.observe(pod)
      }
      const hearNode = (type: string, node: Obj) => {
        const { name, uid } = node.metadata
        const known = played.get(name)
        if (known && (type === "DELETED" || known.uid !== uid)) {
          known.kubelet.destroy()
          known.cancelImages?.()
          known.cancelLease?.()
          known.cancelDown?.()
          known.collector.stop()
          indices.delete(known.index)
          played.delete(name)
        }
        if (type === "DELETED" || played.has(name)) return
        play(node, clockwork)
        for (const pod of pods(name)) hearPod("ADDED", pod)
      }

      const { items } = storage.list(nodeKind)
      for (const node of items) if (node.spec?.podCIDR) indices.add(indexOf(node))
      for (const node of items) hearNode("ADDED", node)
      const stops = [
        storage.subscribe(nodeKind, ({ type, object }) => hearNode(type, object)),
        storage.subscribe(podKind, ({ type, object }) => hearPod(type, object)),
      ]
      return () => {
        for (const stop of stops) stop()
        clockwork.clear()
        timers = undefined
      }
    },
    stopKubelet(node) {
      const each = played.get(node)
      if (!each?.kubelet.isAlive) return
      each.kubelet.die()
      tell(node, false)
    },
    startKubelet(node) {
      const each = played.get(node)
      const found = storage.find(kind("v1", "Node"), { name: node })
      if (!each || !found || !timers || each.kubelet.isAlive) return
      each.say = eventsAbout(world, found) // a new process knows no earlier events
      begin(found, each, timers)
      each.kubelet.revive()
      each.collector.check()
      tell(node, true)
    },
    isAlive: node => played.get(node)?.kubelet.isAlive ?? false,
    onLife(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    endContainer: (pod, container, how) =>
      played.get(pod.spec.nodeName)?.kubelet.endContainer(pod.metadata.uid, container, how) ?? false,
    loadImage: (node, image) => played.get(node)?.kubelet.images.load(image) ?? false,
  }
}

type MachineOptions = NodesOptions & { registries: Registries; pace: Pace; timers: Timers; index: number }

/** The machine of a node: runtime, kubelet, and what they report about the node. */
function createMachine(world: PhysicsWorld, node: Obj, options: MachineOptions): Played {
  const { registries, pace, timers, index, parallelPulls = 1, disk = {} } = options
  const { name, uid } = node.metadata
  const recorder = createRecorder(world, "kubelet", name)
  const platform = `linux/${node.metadata.labels?.["kubernetes.io/arch"] ?? "amd64"}`
  const runtime = new NodeRuntime({ world, timers, registries, platform, disk, stopMs: pace.stop })
  const write = () => {
    if (each.kubelet.isAlive) writeNodeStatus(world, name, each)
  }
  const sayStatus = (status: string) => each.say("Normal", status, `Node ${name} status is now: ${status}`)
  const each: Played = {
    runtime,
    say: eventsAbout(world, node),
    isRuntimeDown: false,
    cancelDown: undefined,
    collector: new ImageCollector({
      clock: world.clock,
      timers,
      runtime,
      policy: { ...ordinaryCollection, ...options.imageCollection },
      isAlive: () => each.kubelet.isAlive,
      say: (...event) => each.say(...event),
      onPressure: () => {
        sayStatus(each.collector.hasPressure ? "NodeHasDiskPressure" : "NodeHasNoDiskPressure")
        write()
      },
    }),
    uid,
    index,
    cancelImages: undefined,
    cancelLease: undefined,
    kubelet: new Kubelet({
      world,
      timers,
      registries,
      runtime,
      recorder,
      nodeName: name,
      hostIP: addressOf(node) ?? hostAddress(index),
      pace,
      parallelPulls,
      addresses: createAddresses(index),
    }),
  }
  runtime.images.onChange(() => {
    each.cancelImages ??= timers.after(imagesEveryMs, () => {
      each.cancelImages = undefined
      write()
    })
  })
  runtime.onLife(isAnswering => {
    each.cancelDown?.()
    each.cancelDown = timers.after(isAnswering ? runtimeCheckEveryMs : runtimeDownAfterMs, () => {
      if (each.isRuntimeDown === !isAnswering) return
      each.isRuntimeDown = !isAnswering
      if (each.kubelet.isAlive) sayStatus(isAnswering ? "NodeReady" : "NodeNotReady")
      write()
    })
  })
  return each
}

/** The kubelet's events about its node have the node's name as uid. */
function eventsAbout(world: PhysicsWorld, node: Obj): SayOfNode {
  const { name } = node.metadata
  const recorder = createRecorder(world, "kubelet", name)
  const about = { ...node, metadata: { ...node.metadata, uid: name } }
  return (type, reason, message) => recorder(about, type, reason, message)
}

/** The index of a node's address ranges: the one it already has, or the first free one. */
function networkIndex(node: Obj, taken: ReadonlySet<number>): number {
  const [, second = 0, third = 0] = (node.spec?.podCIDR ?? "").split(/[./]/).map(Number)
  if (second >= 128) return (second - 128) * 64 + third / 4
  let index = 0
  while (taken.has(index)) index++
  return index
}

/** Writes the status of a kubelet's node. Values that are already set stay, such as a given capacity. */
function writeNodeStatus({ storage, clock, random }: PhysicsWorld, name: string, each: Played): void {
  const { kubelet, index, collector, isRuntimeDown } = each
  const kind = storage.kind("v1", "Node")
  const node = kind && storage.find(kind, { name })
  if (!node) return
  try {
    const labelled = withOwnData(node, index)
    const stored = labelled === node ? node : storage.update(kind, labelled, { fieldManager: "kubelet" })
    const state = { hasDiskPressure: collector.hasPressure, isRuntimeDown }
    const status = nodeStatus(stored, { index, images: kubelet.images.list(), now: clock.now(), random, state })
    if (isEqual(stored.status, status)) return
    storage.update(kind, { ...stored, status }, { subresource: "status", fieldManager: "kubelet" })
  } catch (error) {
    if (!(error instanceof StatusError)) throw error
  }
}

function writeLease({ storage, clock }: PhysicsWorld, node: Obj): void {
  const leases = storage.kind("coordination.k8s.io/v1", "Lease")
  if (!leases) return
  const { name, uid } = node.metadata
  const place = { name, namespace: "kube-node-lease" }
  const spec = { holderIdentity: name, leaseDurationSeconds: 40, renewTime: microTime(clock.now()) }
  try {
    const found = storage.find(leases, place)
    if (found) storage.update(leases, { ...found, spec }, { fieldManager: "kubelet" })
    else {
      const ownerReferences = [{ apiVersion: "v1", kind: "Node", name, uid }]
      const lease = {
        apiVersion: "coordination.k8s.io/v1",
        kind: "Lease",
        metadata: { ...place, ownerReferences },
        spec,
      }
      storage.create(leases, lease, { fieldManager: "kubelet" })
    }
  } catch (error) {
    if (!(error instanceof StatusError)) throw error
  }
}

/** Creates nodes: a number of them, named `node-0`, `node-1`, …, or the given ones. Existing nodes are unchanged. */
export function addNodes({ storage }: PhysicsWorld, wanted: number | readonly NodeSpec[]): void {
  const kind = storage.kind("v1", "Node")
  if (!kind) throw new Error("v1 Node is not served")
  const specs = typeof wanted === "number" ? Array.from({ length: wanted }, (_, i) => ({ name: `node-${i}` })) : wanted
  for (const spec of specs)
    if (!storage.find(kind, { name: spec.name })) storage.create(kind, nodeObject(spec), { fieldManager: "kubelet" })
}

const addressOf = (node: Obj): string | undefined =>
  node.status?.addresses?.find(({ type }: Json) => type === "InternalIP")?.address

/** Addresses of a node's pods: a /22 of 10.128.0.0/9 for each node. As in CNI, the next one follows the last one. */
function createAddresses(index: number) {
  const base = `10.${128 + (index >> 6)}.`
  const third = (index & 63) * 4
  const taken = new Set<number>()
  let last = 1
  const text = (offset: number) => `${base}${third + (offset >> 8)}.${offset & 255}`
  const offsetOf = (ip: string) => {
    const parts = ip.split(".").map(Number)
    return ((parts[2] ?? 0) - third) * 256 + (parts[3] ?? 0)
  }
  return {
    take() {
      for (let tries = 0; tries < 1022; tries++) {
        last = last >= 1022 ? 2 : last + 1
        if ((last & 255) === 0 || (last & 255) === 255 || taken.has(last)) continue
        taken.add(last)
        return text(last)
      }
      throw new Error("no address is left on this node: it has more pods than a node can have")
    },
    free: (ip: string) => void taken.delete(offsetOf(ip)),
    hold: (ip: string) => void taken.add(offsetOf(ip)),
  }
}
