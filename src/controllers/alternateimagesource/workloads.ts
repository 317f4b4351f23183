import { podFieldSelector } from "#core/pods/pod-facts.ts"
import { ownerWalk, topOwner } from "#core/workloads/owners.ts"
import { MultiMap } from "#lib/multi-map.ts"
import { compareVersions } from "#lib/resource-version.ts"
import type { Cache } from "#runtime/cache/cache.ts"
import { type CacheGroup, cacheGroup } from "#runtime/cache/group.ts"
import type { Wiring } from "#runtime/controller.ts"
import { type KubeObject, keyOf } from "#runtime/resource.ts"
import type { Root } from "./claims.ts"
import { isHeld, isRunOver, type Owner, type PodFacts, readPod, readWorkload, type WorkloadFacts } from "./facts.ts"
import type { Workload } from "./group.ts"
import { pods, type WorkloadKind, workloadKinds } from "./resources.ts"
import { inVersionOf, isRead, isTellable, podAsRoot, refOf, rootFrom, strangerAsRoot } from "./roots.ts"

type Found = { readonly kind: WorkloadKind; readonly facts: WorkloadFacts }

type Listeners = {
  workloadChanged(kind: WorkloadKind, before: WorkloadFacts | undefined, after: WorkloadFacts | undefined): void
  podChanged(key: string, before: PodFacts | undefined, after: PodFacts | undefined): void
}

/** The workloads and pods of a cluster, their owners, and the results of our own writes. */
export class Workloads {
  readonly #listeners: Listeners
  readonly #group: CacheGroup
  readonly #caches = new Map<WorkloadKind, Cache<WorkloadFacts>>()
  #pods: Cache<PodFacts> | undefined
  /** Pods and workloads as the server returned them for our own writes, until the watch has caught up. */
  readonly #answers = new Map<string, PodFacts | WorkloadFacts>()
  /** Workloads by the uid of their owner, and how many pods an owner has, by namespace and uid. */
  #owned = new MultiMap()
  readonly #podsOwned = new Map<string, number>()

  constructor(wiring: Pick<Wiring, "watch">, listeners: Listeners) {
    this.#group = cacheGroup(wiring)
    this.#listeners = listeners
  }

  /** Begins to watch. Returns false if it had begun before. */
  open(): boolean {
    if (this.#pods) return false
    for (const kind of workloadKinds) {
      const indexes = { namespace: (facts: WorkloadFacts) => [facts.namespace] }
      const project = (object: KubeObject) => readWorkload(object, kind.kind)
      const cache = this.#group.watch<WorkloadFacts>(kind.resource, { project, indexes })
      this.#caches.set(kind, cache)
      cache.subscribe(({ key, before, after }) => {
        const known = this.#newest(kind, key, before)
        if (!this.#isOutrun(idOf(kind, key), after)) this.#workloadChanged(kind, known, after)
      })
    }
    const indexes = { namespace: (pod: PodFacts) => [pod.namespace] }
    const cache = this.#group.watch<PodFacts>(pods, { project: readPod, indexes, fieldSelector: podFieldSelector })
    this.#pods = cache
    cache.subscribe(({ key, before, after }) => {
      const known = this.#newest(undefined, key, before)
      if (!this.#isOutrun(idOf(undefined, key), after)) this.#podChanged(key, known, after)
    })
    return true
  }

  close(): void {
    this.#group.close()
    this.#pods = undefined
    this.#owned = new MultiMap()
    for (const map of [this.#caches, this.#answers, this.#podsOwned]) map.clear()
  }

  get isReady(): boolean {
    return this.#group.isReady
  }

  get forbidden(): string[] {
    return this.#group.forbidden
  }

  ready(): Promise<void> {
    return this.#group.ready()
  }

  pod(key: string): PodFacts | undefined {
    return this.#newest(undefined, key, this.#pods?.get(key))
  }

  /** The places of a namespace's workloads, and of its pods without an owner. */
  *in(space: string): Generator<string> {
    for (const [{ name }, cache] of this.#caches)
      for (const key of cache.keysBy("namespace", space)) yield `${name} ${key}`
    for (const key of this.#pods?.keysBy("namespace", space) ?? []) if (!this.pod(key)?.owner) yield `pod ${key}`
  }

  /** Everything that is owned by something, directly or not. */
  below(kind: WorkloadKind, facts: WorkloadFacts | undefined): Iterable<string> {
    if (!facts) return []
    const next = (ref: string) => this.#ownedBy(this.foundAt(ref))
    return ownerWalk(this.#ownedBy({ kind, facts }), { next, idOf: ref => ref })
  }

  /** What names the workload as its owner, and the runs that prove a change of it. */
  #ownedBy(found: Found | undefined): readonly string[] {
    if (!found) return []
    const { namespace: space, uid, name } = found.facts
    const runs = found.kind.name === "deployment" ? this.#owned.of(placeOf(space, { uid: "", name })) : []
    return [...this.#owned.of(placeOf(space, { uid, name })), ...runs]
  }

  /**
   * The server's answer to a write of ours. A look before the watch has caught up would decide the same write again,
   * and meet a conflict.
   */
  answered(kind: WorkloadKind | undefined, object: KubeObject): void {
    const key = keyOf(object.metadata)
    const facts = kind ? readWorkload(object, kind.kind) : readPod(object)
    const cached = kind ? this.#caches.get(kind)?.get(key) : this.#pods?.get(key)
    if (cached?.uid !== facts.uid || compareVersions(cached.resourceVersion, facts.resourceVersion) >= 0) return
    const before = this.#newest(kind, key, cached)
    this.#answers.set(idOf(kind, key), facts)
    if (kind) this.#workloadChanged(kind, before as WorkloadFacts, facts as WorkloadFacts)
    else this.#podChanged(key, before as PodFacts, facts as PodFacts)
  }

  #newest<T extends PodFacts | WorkloadFacts>(kind: WorkloadKind | undefined, key: string, cached: T | undefined) {
    return cached && ((this.#answers.get(idOf(kind, key)) as T | undefined) ?? cached)
  }

  /** The watch still shows the object as it was before our write. */
  #isOutrun(id: string, after: PodFacts | WorkloadFacts | undefined): boolean {
    const answer = this.#answers.get(id)
    if (!answer) return false
    if (after?.uid === answer.uid && compareVersions(after.resourceVersion, answer.resourceVersion) < 0) return true
    this.#answers.delete(id)
    return false
  }

  /** How many pods a workload has, its own and those of what it owns. */
  podsOf({ type, namespace: space, name, uid }: Workload): number {
    if (type.kind === "pod") return 1
    const own = this.#podsOwned.get(placeOf(space, { uid, name })) ?? 0
    const found = this.foundAt(refOf(type.kind, space, name))
    if (found?.facts.uid !== uid) return own
    let count = own
    for (const ref of this.below(found.kind, found.facts))
      count += this.#podsOwned.get(placeOf(space, this.foundAt(ref)?.facts ?? none)) ?? 0
    return count
  }

  foundAt(ref: string): Found | undefined {
    const [name = "", key = ""] = ref.split(" ")
    for (const [kind, cache] of this.#caches) {
      if (kind.name !== name) continue
      const facts = this.#newest(kind, key, cache.get(key))
      return facts && { kind, facts }
    }
    return undefined
  }

  /** The workload at a place, if no other workload of ours owns it. */
  rootAt(ref: string): Root | undefined {
    if (ref.startsWith("pod ")) {
      const pod = this.pod(ref.slice("pod ".length))
      return pod && !pod.owner ? podAsRoot(pod) : undefined
    }
    const found = this.foundAt(ref)
    const isRoot = found && !found.facts.isDeleting && this.topOf(found).facts === found.facts
    return isRoot ? rootFrom(found.kind, found.facts) : undefined
  }

  find(space: string, { kind, name, uid }: { kind: string; name: string; uid: string }): Root | undefined {
    if (kind === "pod") {
      const pod = this.pod(`${space}/${name}`)
      return pod?.uid === uid ? podAsRoot(pod) : undefined
    }
    const found = this.#above({ kind, name, uid, group: "" }, space)
    return found && rootFrom(found.kind, found.facts)
  }

  /** The workload that an owner reference names: by name and uid, in the same namespace and nowhere else. */
  #above(owner: Owner | undefined, space: string): Found | undefined {
    if (!owner) return undefined
    for (const [kind, cache] of this.#caches) {
      if (kind.name !== owner.kind) continue
      const key = `${space}/${owner.name}`
      const facts = this.#newest(kind, key, cache.get(key))
      if (facts && (owner.uid === "" || facts.uid === owner.uid)) return { kind, facts }
    }
    return undefined
  }

  rootOf(pod: PodFacts): Root | undefined {
    if (!pod.owner) return podAsRoot(pod)
    const found = this.#above(pod.owner, pod.namespace)
    if (!found) {
      // An owner of a kind that we read is deleted, or not seen yet: the pod's workload is unknown.
      const isStranger = pod.containers && !isRead(pod.owner) && isTellable(pod.owner)
      return isStranger ? strangerAsRoot(pod, pod.owner) : undefined
    }
    const top = this.topOf(found)
    // What a Canary takes back is left to it.
    const above = this.#above(found.facts.owner, pod.namespace)
    if (top.facts.isDeleting || (above && isRunOver(above.facts))) return undefined
    const root = rootFrom(top.kind, top.facts)
    return isHeld(top.facts) ? inVersionOf(pod, found === top ? undefined : found.facts, root) : root
  }

  topOf(found: Found): Found {
    const ownerOf = ({ facts }: Found) => this.#above(facts.owner, facts.namespace)
    return topOwner(found, ownerOf, ({ facts }) => facts.uid)
  }

  #workloadChanged(kind: WorkloadKind, before: WorkloadFacts | undefined, after: WorkloadFacts | undefined): void {
    if (before?.uid !== after?.uid || before?.owner?.uid !== after?.owner?.uid) {
      const { namespace: space, name } = (after ?? before)!
      const ref = refOf(kind.name, space, name)
      if (before?.owner) this.#owned.delete(placeOf(space, before.owner), ref)
      if (after?.owner) this.#owned.add(placeOf(space, after.owner), ref)
    }
    this.#listeners.workloadChanged(kind, before, after)
  }

  #podChanged(key: string, before: PodFacts | undefined, after: PodFacts | undefined): void {
    this.#countPod(before, -1)
    this.#countPod(after, 1)
    this.#listeners.podChanged(key, before, after)
  }

  #countPod(pod: PodFacts | undefined, by: number): void {
    if (!pod?.owner) return
    const id = placeOf(pod.namespace, pod.owner)
    const count = (this.#podsOwned.get(id) ?? 0) + by
    if (count > 0) this.#podsOwned.set(id, count)
    else this.#podsOwned.delete(id)
  }
}

const none = { uid: "", name: "" }

/** Where what an owner has is found; without a uid by its name. */
const placeOf = (space: string, { uid, name }: Pick<Owner, "uid" | "name">) => `${space} ${uid || `named ${name}`}`

const idOf = (kind: WorkloadKind | undefined, key: string) => `${kind?.name ?? "pod"} ${key}`
