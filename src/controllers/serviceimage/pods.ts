import type { Place } from "#core/pods/places.ts"
import {
  type Crashed,
  condition,
  controllerOf,
  imagesOf,
  type PodFacts,
  type PodTrouble,
  podFieldSelector,
  readPod,
  refusalOf,
} from "#core/pods/pod-facts.ts"
import { type Owner, PodIndex, type Refusal, type Root } from "#core/pods/pod-index.ts"
import type { Crash } from "#core/pods/steady.ts"
import type { Trace } from "#core/pods/trace.ts"
import { workloadKind, workloadKinds } from "#core/workloads/kinds.ts"
import { parseInstant } from "#lib/instant.ts"
import { Interner } from "#lib/interner.ts"
import type { Projected } from "#runtime/cache/cache.ts"
import { cacheGroup } from "#runtime/cache/group.ts"
import type { Permission, Wiring } from "#runtime/controller.ts"
import { core, type KubeObject, type Resource, resourceOf } from "#runtime/resource.ts"
import { openStopped } from "./stopped.ts"

export const pods = core("pods", "Pod")
export const nodes = core("nodes", "Node", false)
export const events = core("events", "Event")
export const replicaSets = resourceOf(workloadKind("ReplicaSet")!)
/** Of these kinds only the owner references matter here; their spec and status are read where they are needed. */
export const betweens: readonly Resource[] = workloadKinds
  .filter(({ kind }) => !["ReplicaSet", "CronJob"].includes(kind))
  .map(resourceOf)

/** Which objects are watched, for kinds of which not all are. */
export const podFields = { pods: podFieldSelector, events: "reason=FailedCreate" } as const

export const podPermissions: readonly Permission[] = [pods, nodes, events, replicaSets, ...betweens].map(resource => ({
  resource,
  verbs: ["list", "watch"],
}))

/**
 * The pods behind any object, found through controllers' owner references, and what is wrong with them. Nothing is
 * watched before `open`: an installation without a ServiceImage should not pay for it.
 */
export class Pods {
  readonly #wiring: Surroundings
  readonly #listeners = new Set<(uid: string) => void>()
  #watching: Watching | undefined

  constructor(wiring: Surroundings) {
    this.#wiring = wiring
  }

  open(): void {
    this.#watching ??= watch(this.#wiring, uid => {
      for (const listener of this.#listeners) listener(uid)
    })
  }

  close(): void {
    this.#watching?.close()
    this.#watching = undefined
  }

  /** Undefined while no trace is reliable: a list is not complete yet, or is forbidden. */
  traceOf(root: Root): Trace | undefined {
    return this.#watching?.isReliable ? this.#watching.index.traceOf(root) : undefined
  }

  /** Where the pods of an object run; undefined while that is not reliable. */
  placesOf(root: Root): readonly Place[] | undefined {
    return this.#watching?.isReliable ? this.#watching.index.placesOf(root) : undefined
  }

  /** The images of any pod; undefined where it is not known. */
  imagesAt(pod: string): readonly string[] | undefined {
    return this.#watching?.isReliable ? this.#watching.imagesAt(pod) : undefined
  }

  get isReliable(): boolean {
    return this.#watching?.isReliable ?? false
  }

  /**
   * Calls back with the uid of every object whose trace may have changed, and once with each when traces become
   * reliable. A change is reported for everything above the object too, so some uids mean nothing to the listener.
   * Returns a function that unsubscribes.
   */
  subscribe(listener: (uid: string) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }
}

type Surroundings = Pick<Wiring, "watch" | "clock">

const toldAtOnce = 500

type Watching = {
  readonly isReliable: boolean
  readonly index: PodIndex
  imagesAt(pod: string): readonly string[] | undefined
  close(): void
}

/** Opens the caches that the index is kept from, and returns it with them. */
export function openIndex(wiring: Pick<Wiring, "watch">, onChange: (uid: string) => void) {
  const read = readers()
  const group = cacheGroup(wiring)
  const open = group.watch

  // Completed pods are left out: there may be a thousand times more of them than of those that run.
  const podCache = open<PodFacts>(pods, { project: read.pod, fieldSelector: podFields.pods })
  const nodeCache = open<Node>(nodes, { project: readNode })
  const refusals = open<Refusal>(events, { project: read.refusal, fieldSelector: podFields.events })
  const owners = [
    open<Owner>(replicaSets, { project: read.replicaSet }),
    ...betweens.map(resource => open<Owner>(resource, { project: read.owner, metadataOnly: true })),
  ]

  const index = new PodIndex({
    pod: podCache.get,
    refusal: refusals.get,
    isLost: node => nodeCache.get(node)?.isLost,
    takesImages: node => nodeCache.get(node)?.isWindows === false,
    stopped: (...pod) => stopped.of(...pod),
    onChange,
  })
  const stopped = openStopped(wiring, key => index.stoppedChanged(key))
  podCache.subscribe(change => index.podChanged(change))
  refusals.subscribe(change => index.refusalChanged(change))
  for (const cache of owners) cache.subscribe(change => index.ownerChanged(change))
  nodeCache.subscribe(({ key, before, after }) => {
    if ((before?.isLost ?? true) !== (after?.isLost ?? true)) index.nodeChanged(key)
  })
  return {
    index,
    imagesAt: (pod: string) => podCache.get(pod)?.images,
    ready: group.ready,
    close() {
      group.close()
      stopped.close()
    },
  }
}

function watch(wiring: Surroundings, onChange: (uid: string) => void): Watching {
  let [isReliable, isClosed] = [false, false]
  const { index, imagesAt, ready, close } = openIndex(wiring, uid => isReliable && onChange(uid))

  /** In portions: reporting ten thousand objects at once would take a tenth of a second. */
  function tellOf(uids: Iterator<string>): void {
    for (let told = 0; told < toldAtOnce; told++) {
      const { value, done } = uids.next()
      if (done || isClosed) return
      onChange(value)
    }
    wiring.clock.after(0, () => tellOf(uids))
  }

  ready().then(() => {
    if (isClosed) return
    isReliable = true
    tellOf(index.roots().values())
  })
  return {
    get isReliable() {
      return isReliable
    },
    index,
    imagesAt,
    close() {
      isClosed = true
      isReliable = false
      close()
    },
  }
}

type Json = Record<string, unknown>
type Node = Projected & { readonly isLost: boolean; readonly isWindows: boolean }

/** A kubelet that reports "not ready" still looks after its pods. What a silent kubelet still runs is unknown. */
function readNode(object: KubeObject): Node {
  const { metadata, status } = object as KubeObject & { status?: Json }
  return {
    resourceVersion: metadata.resourceVersion ?? "",
    isLost: condition(status, "Ready")?.status === "Unknown",
    isWindows: metadata.labels?.["kubernetes.io/os"] === "windows",
  }
}

/** Readers of the watched objects. Values that many objects have in common are kept once for all of them. */
function readers() {
  const texts = new Interner<string>(sharedMax)
  const names = new Interner<readonly string[]>(sharedMax)
  const troubles = new Interner<PodTrouble>(sharedMax)
  const shareText = (value: string) => texts.share(value, value)
  const shareNames = (value: readonly string[]) => names.share(value.join(" "), value)
  const crashes = new Interner<Crash>(sharedMax)
  const shareCrash = (value: Crash) => crashes.share(JSON.stringify(value), value)
  const crashed = new Interner<Crashed>(sharedMax)
  const shareCrashed = (value: Crashed) => crashed.share(JSON.stringify(value), value)
  const shareTrouble = (value: PodTrouble) =>
    troubles.share(`${value.isTentative} ${value.reason} ${value.message}`, value)

  const owner = ({ metadata }: KubeObject, noPod?: Owner["noPod"]): Owner => ({
    resourceVersion: metadata.resourceVersion ?? "",
    uid: shareText(metadata.uid ?? ""),
    namespace: shareText(metadata.namespace ?? ""),
    owner: shareText(controllerOf(metadata)),
    noPod,
  })

  return {
    pod(object: KubeObject): PodFacts {
      const facts = readPod(object)
      return {
        ...facts,
        owner: shareText(facts.owner),
        node: shareText(facts.node),
        images: shareNames(facts.images),
        pullSecrets: shareNames(facts.pullSecrets),
        trouble: facts.trouble && shareTrouble(facts.trouble),
        crash: facts.crash && shareCrash(facts.crash),
        crashed: facts.crashed && shareCrashed(facts.crashed),
      }
    },
    owner: (object: KubeObject) => owner(object),
    replicaSet(object: KubeObject): Owner {
      const { spec, status } = object as KubeObject & { spec?: { template?: { spec?: Json } }; status?: Json }
      const failure = condition(status, "ReplicaFailure")
      if (failure?.status !== "True" || failure.reason === "FailedDelete") return owner(object)
      const wanted = shareNames(imagesOf(spec?.template?.spec))
      return owner(object, { ...shareTrouble(refusalOf(failure.message)), images: wanted })
    },
    refusal(object: KubeObject): Refusal {
      const { metadata, involvedObject, message, ...times } = object as KubeObject & Json
      const about = (involvedObject ?? {}) as Json
      // A ReplicaSet has a condition for it, which is read with its images and ends when it no longer holds.
      const isNews = typeof about.uid === "string" && about.kind !== "ReplicaSet"
      return {
        resourceVersion: metadata.resourceVersion ?? "",
        owner: isNews ? shareText(about.uid as string) : "",
        atSeconds: lastSeen(times),
        noPod: { ...shareTrouble(refusalOf(isNews ? message : "")), images: undefined },
      }
    },
  }
}

/** Enough for objects that follow each other in a list: these have the most in common. */
const sharedMax = 4096

/** Events are written in two formats, and each leaves the times of the other empty. */
function lastSeen({ lastTimestamp, eventTime, series }: Json): number {
  const times = [lastTimestamp, eventTime, (series as Json | null | undefined)?.lastObservedTime]
  return Math.floor(Math.max(0, ...times.map(time => parseInstant(time) ?? 0)) / 1000)
}
