import { MultiMap } from "#lib/multi-map.ts"
import { ownerWalk } from "../workloads/owners.ts"
import { type Place, sourceId } from "./places.ts"
import { type PodFacts, withStopped } from "./pod-facts.ts"
import type { Stopped } from "./steady.ts"
import { type NoPod, type Trace, traceOf } from "./trace.ts"

/** Something between an object of the fleet and its pods: a Deployment, a ReplicaSet, a Job. */
export type Owner = {
  readonly resourceVersion: string
  readonly uid: string
  readonly namespace: string
  /** The uid of its own controller; "" if it has none. */
  readonly owner: string
  /** Why it has fewer pods than it should, where it says so itself. */
  readonly noPod: NoPod | undefined
}

/** An owner was not allowed to create a pod, as an event reports it. */
export type Refusal = {
  readonly resourceVersion: string
  /** The uid of that owner; "" if the event reports nothing new. */
  readonly owner: string
  readonly atSeconds: number
  readonly noPod: NoPod
}

export type Root = { readonly uid: string; readonly namespace: string } // "" if cluster-scoped

type Found = { pods: [key: string, pod: PodFacts][]; noPods: NoPod[] }

type Change<T> = { key: string; before?: T; after?: T }

export type PodIndexOptions = {
  pod: (key: string) => PodFacts | undefined
  refusal: (key: string) => Refusal | undefined
  /** Undefined: there is no such node. */
  isLost: (node: string) => boolean | undefined
  /** Whether images can be brought to the node: it exists and runs Linux. */
  takesImages: (node: string) => boolean
  /** The containers of a pod that requests have stopped. Asked only for a pod with a container that crashed. */
  stopped: (key: string, uid: string) => Stopped
  /** Called with the uid of each object whose trace may have changed. */
  onChange: (uid: string) => void
}

/**
 * Which pods stand behind which object, by the uids of controllers alone: names are reused, uids never are. A change
 * is passed on after the cache of facts shows it. It costs the depth of the chain above it, a trace costs the pods
 * below; neither looks at the fleet.
 *
 *     Pod → ReplicaSet → Deployment → custom object
 */
export class PodIndex {
  readonly #options: PodIndexOptions
  readonly #owners = new Map<string, Owner>()
  readonly #owned = new MultiMap()
  readonly #pods = new MultiMap()
  readonly #podsOnNode = new MultiMap()
  readonly #refusals = new MultiMap()
  /** When the newest pod was created, for owners that were refused one at some time. A later pod ends the refusal. */
  readonly #madeAtSeconds = new Map<string, number>()

  constructor(options: PodIndexOptions) {
    this.#options = options
  }

  ownerChanged({ before, after }: Change<Owner>): void {
    if (after) this.#owners.set(after.uid, after)
    else if (before) this.#owners.delete(before.uid)
    if (before && after && before.owner === after.owner && sameNoPod(before.noPod, after.noPod)) return
    if (before?.owner !== after?.owner) {
      if (before?.owner) this.#owned.delete(before.owner, before.uid)
      if (after?.owner) this.#owned.add(after.owner, after.uid)
      if (before) this.#tell(before.owner)
    }
    if (after) this.#tell(after.uid)
    else if (before) this.#options.onChange(before.uid)
  }

  podChanged({ key, before, after }: Change<PodFacts>): void {
    if (before?.owner !== after?.owner) {
      if (before?.owner) this.#pods.delete(before.owner, key)
      if (after?.owner) this.#pods.add(after.owner, key)
    }
    if (before?.node !== after?.node) {
      if (before?.node) this.#podsOnNode.delete(before.node, key)
      if (after?.node) this.#podsOnNode.add(after.node, key)
    }
    if (after && this.#refusals.has(after.owner)) this.#made(after.owner, after.createdAtSeconds)
    if (before && after && saysTheSame(before, after)) return
    if (before && before.owner !== after?.owner) this.#tell(before.owner)
    if (after) this.#tell(after.owner)
  }

  refusalChanged({ key, before, after }: Change<Refusal>): void {
    if (before?.owner) {
      this.#refusals.delete(before.owner, key)
      if (!this.#refusals.has(before.owner) && before.owner !== after?.owner) this.#madeAtSeconds.delete(before.owner)
    }
    if (after?.owner) {
      this.#refusals.add(after.owner, key)
      if (!this.#madeAtSeconds.has(after.owner))
        for (const pod of this.#pods.of(after.owner))
          this.#made(after.owner, this.#options.pod(pod)?.createdAtSeconds ?? 0)
    }
    for (const owner of new Set([before?.owner, after?.owner])) if (owner) this.#tell(owner)
  }

  nodeChanged(node: string): void {
    for (const key of this.#podsOnNode.of(node)) this.#tell(this.#options.pod(key)?.owner ?? "")
  }

  /** A request has stopped containers of the pod, or is gone. */
  stoppedChanged(key: string): void {
    const pod = this.#options.pod(key)
    if (pod?.crashed) this.#tell(pod.owner)
  }

  traceOf(root: Root): Trace {
    const found: Found = { pods: [], noPods: [] }
    for (const each of ownerWalk([root], { next: one => this.#ownedBy(one), idOf: ({ uid }) => uid }))
      this.#collect(each, found)
    return traceOf(found.pods, found.noPods, node => this.#options.isLost(node) ?? true)
  }

  /** Where its pods run, each once: those that have a node which takes images, and are not about to end. */
  placesOf(root: Root): Place[] {
    const places = new Map<string, Place>()
    for (const each of ownerWalk([root], { next: one => this.#ownedBy(one), idOf: ({ uid }) => uid }))
      for (const key of this.#pods.of(each.uid)) {
        const pod = this.#options.pod(key)
        if (!pod || pod.isFinished || pod.isTerminating || !isInside(each.namespace, namespaceOf(key))) continue
        const { node, pullSecrets: secrets } = pod
        const place = { node, namespace: namespaceOf(key), secrets }
        if (node !== "" && this.#options.takesImages(node)) places.set(`${node} ${sourceId(place)}`, place)
      }
    return [...places.values()]
  }

  /** Every uid that may have a trace. */
  roots(): Set<string> {
    return new Set([...this.#owned.names(), ...this.#pods.names(), ...this.#refusals.names()])
  }

  /**
   * Owner references may name anything: a tenant could name an object of another namespace as the owner of broken pods,
   * and stop a rollout of another tenant. So an owner must be of the same namespace, or of none.
   */
  #collect({ uid, namespace }: Root, found: Found): void {
    const noPod = this.#owners.get(uid)?.noPod
    if (noPod) found.noPods.push(noPod)
    for (const key of this.#pods.of(uid)) {
      const pod = this.#options.pod(key)
      if (!pod || !isInside(namespace, namespaceOf(key))) continue
      const { crashed } = pod
      found.pods.push([key, crashed ? withStopped(pod, this.#options.stopped(key, crashed.uid)) : pod])
    }
    for (const key of this.#refusals.of(uid)) {
      const refusal = this.#options.refusal(key)
      const isOpen = refusal && refusal.atSeconds > (this.#madeAtSeconds.get(uid) ?? 0)
      if (isOpen && isInside(namespace, namespaceOf(key))) found.noPods.push(refusal.noPod)
    }
  }

  *#ownedBy({ uid, namespace }: Root): Iterable<Root> {
    for (const child of this.#owned.of(uid)) {
      const owner = this.#owners.get(child)
      if (owner && isInside(namespace, owner.namespace)) yield owner
    }
  }

  #made(owner: string, atSeconds: number): void {
    if (atSeconds > (this.#madeAtSeconds.get(owner) ?? 0)) this.#madeAtSeconds.set(owner, atSeconds)
  }

  #tell(uid: string): void {
    if (uid === "") return
    const next = (each: string) => {
      const owner = this.#owners.get(each)?.owner
      return owner ? [owner] : []
    }
    for (const each of ownerWalk([uid], { next, idOf: each => each })) this.#options.onChange(each)
  }
}

const isInside = (namespace: string, other: string) => namespace === "" || other === namespace

const namespaceOf = (key: string) => key.slice(0, key.indexOf("/"))

const saysTheSame = (a: PodFacts, b: PodFacts) =>
  a.owner === b.owner &&
  a.node === b.node &&
  a.images === b.images &&
  a.pullSecrets === b.pullSecrets &&
  a.trouble === b.trouble &&
  a.crash === b.crash &&
  a.steadySeconds === b.steadySeconds &&
  a.crashed === b.crashed &&
  a.isFinished === b.isFinished &&
  a.isTerminating === b.isTerminating

const sameNoPod = (a: NoPod | undefined, b: NoPod | undefined) =>
  a === b ||
  (a !== undefined && b !== undefined && a.reason === b.reason && a.message === b.message && a.images === b.images)
