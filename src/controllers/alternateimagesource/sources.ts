import type { AlternateImageSource, PullFailure, Replacement } from "#api/v1alpha1/alternateimagesource/index.ts"
import { isEquivalent } from "#core/image/equivalent.ts"
import { podFieldSelector } from "#core/pods/pod-facts.ts"
import { byBadness } from "#core/pods/steady.ts"
import { ownerWalk, topOwner } from "#core/workloads/owners.ts"
import type { Instant } from "#lib/instant.ts"
import { MultiMap } from "#lib/multi-map.ts"
import { compareVersions } from "#lib/resource-version.ts"
import { isSame } from "#lib/same.ts"
import type { Cache } from "#runtime/cache/cache.ts"
import { type CacheGroup, cacheGroup } from "#runtime/cache/group.ts"
import type { Wiring } from "#runtime/controller.ts"
import type { Held } from "#runtime/kind-controller.ts"
import { createPieces, type InPieces } from "#runtime/pieces.ts"
import { type KubeObject, keyOf, nameOf } from "#runtime/resource.ts"
import { Claims, type Entry, type Root, retargetOf } from "./claims.ts"
import { type Container, type Owner, type PodFacts, readPod, readWorkload, type WorkloadFacts } from "./facts.ts"
import type { FailingPod, Group, Repaired, WaitingPod, Workload } from "./group.ts"
import { pods, type WorkloadKind, workloadKinds } from "./resources.ts"
import { gistOf, isRead, isTellable, podAsRoot, refOf, rootFrom, rootGistOf, strangerAsRoot } from "./roots.ts"

/** What one AlternateImageSource looks after, as far as it has to be looked at. */
export type Scene = {
  /** Containers that fail, and those of which the status tells an incident. */
  groups: Group[]
  /** Everything it looks after. */
  roster: readonly Entry[]
  /** Containers that an older one looks after. */
  claimed: number
  missing: readonly string[]
  /** Whether a pod that we sent elsewhere runs that image on a node: the others of that node need not pull it. */
  hasArrived(node: string, image: string): boolean
}

/** Where a pod's containers come from: its workload's words, and the sources that look after them. */
export type Standing = {
  readonly workload: Workload
  readonly containers: readonly {
    readonly container: Container
    readonly claim: Claim | undefined
    readonly retargeted: Repaired | undefined
  }[]
}

export type Claim = { readonly source: AlternateImageSource; readonly replacement: Replacement }

export type Surroundings = Pick<Wiring, "watch" | "clock" | "enqueue" | "enqueueAfter">

export type { Entry }

export const sourceIndexes = {
  namespace: ({ object }: Held<AlternateImageSource>) => [object.metadata.namespace ?? ""],
}

type MutableGroup = Group & {
  failing: FailingPod[]
  held: WaitingPod[]
  repaired?: Group["repaired"]
  crashes?: Group["crashes"]
}
type Found = { readonly kind: WorkloadKind; readonly facts: WorkloadFacts }
/** A namespace that has a source. */
type Space = {
  readonly claims: Claims
  settling?: Promise<void> | undefined
  /** Pods that fail or were repaired, by the source that looks after them; undefined: to be found out. */
  troubled?: ReadonlyMap<string, Troubled> | undefined
}
type Troubled = { failing: string[]; repaired: string[] }

/**
 * Every AlternateImageSource, the workloads it looks after and the pods that cannot pull. Cost follows what fails: a
 * healthy pod is forgotten as soon as it is read, but for the digest of what it runs. Workloads and pods are watched
 * as long as there is a source: an installation without one should not pay for it.
 *
 *   an event → what it concerns is out of date → the namespace's key → settled in pieces → the sources concerned
 *
 * A key that ends with a slash is a namespace's.
 */
export class Sources {
  readonly #wiring: Surroundings
  readonly #sources: Cache<Held<AlternateImageSource>>
  /** Of workloads and pods. */
  readonly #caches: CacheGroup
  readonly #workloads = new Map<WorkloadKind, Cache<WorkloadFacts>>()
  #pods: Cache<PodFacts> | undefined
  /** Pods and workloads as the server answered our own writes, until the watch tells as much. */
  readonly #answers = new Map<string, PodFacts | WorkloadFacts>()
  readonly #failing = new Map<string, Set<string>>()
  readonly #repaired = new Map<string, Set<string>>()
  /** Since when a container is seen failing, by pod and image. */
  readonly #since = new Map<string, Map<string, Instant>>()
  /** What an image turned out to be where it runs, by namespace and image. */
  readonly #digests = new Map<string, string>()
  readonly #spaces = new Map<string, Space>()
  /** Workloads by the uid of their owner, and how many pods an owner has, by namespace and uid. */
  #owned = new MultiMap()
  readonly #podsOwned = new Map<string, number>()
  readonly #inPieces: InPieces

  constructor(wiring: Surroundings, sources: Cache<Held<AlternateImageSource>>) {
    this.#wiring = wiring
    this.#inPieces = createPieces(wiring.clock)
    this.#caches = cacheGroup(wiring)
    this.#sources = sources
    this.#sources.subscribe(({ key, before, after }) => {
      this.#sourceChanged(key, before?.object, after?.object)
      if (this.#sources.size > 0) this.open()
      else this.#shut()
    })
  }

  /** Begins to watch workloads and pods. It does so by itself when there is a source. */
  open(): void {
    if (this.#pods) return
    for (const kind of workloadKinds) {
      const indexes = { namespace: (facts: WorkloadFacts) => [facts.namespace] }
      const cache = this.#caches.watch<WorkloadFacts>(kind.resource, { project: readWorkload, indexes })
      this.#workloads.set(kind, cache)
      cache.subscribe(({ key, before, after }) => {
        const known = this.#newest(kind, key, before)
        if (!this.#isOutrun(idOf(kind, key), after)) this.#workloadChanged(kind, known, after)
      })
    }
    const indexes = { namespace: (pod: PodFacts) => [pod.namespace] }
    const cache = this.#caches.watch<PodFacts>(pods, { project: readPod, indexes, fieldSelector: podFieldSelector })
    this.#pods = cache
    cache.subscribe(({ key, before, after }) => {
      const known = this.#newest(undefined, key, before)
      if (!this.#isOutrun(idOf(undefined, key), after)) this.#podChanged(key, known, after)
    })
    this.#caches.ready().then(() => {
      for (const [key] of this.#sources.entries()) this.#wiring.enqueue(key)
    })
  }

  #shut(): void {
    this.#caches.close()
    this.#pods = undefined
    this.#owned = new MultiMap()
    const known = [
      ...[this.#workloads, this.#failing, this.#repaired, this.#answers],
      ...[this.#since, this.#digests, this.#podsOwned],
    ]
    for (const map of known) map.clear()
  }

  /** Every list is in. Before, an absent workload or pod means nothing. */
  get isReady(): boolean {
    return this.#caches.isReady
  }

  /** The plurals of what may not be listed. */
  get forbidden(): string[] {
    return this.#caches.forbidden
  }

  get(key: string): AlternateImageSource | undefined {
    return this.#sources.get(key)?.object
  }

  pod(key: string): PodFacts | undefined {
    return this.#newest(undefined, key, this.#pods?.get(key))
  }

  /**
   * What the server answered to a write of ours. A look that comes before the watch tells of it would decide the same
   * write again, and meet a conflict.
   */
  answered(kind: WorkloadKind | undefined, object: KubeObject): void {
    const key = keyOf(object.metadata)
    const facts = kind ? readWorkload(object) : readPod(object)
    const cached = kind ? this.#workloads.get(kind)?.get(key) : this.#pods?.get(key)
    if (cached?.uid !== facts.uid || compareVersions(cached.resourceVersion, facts.resourceVersion) >= 0) return
    const before = this.#newest(kind, key, cached)
    this.#answers.set(idOf(kind, key), facts)
    if (kind) this.#workloadChanged(kind, before as WorkloadFacts, facts as WorkloadFacts)
    else this.#podChanged(key, before as PodFacts, facts as PodFacts)
  }

  #newest<T extends PodFacts | WorkloadFacts>(kind: WorkloadKind | undefined, key: string, cached: T | undefined) {
    return cached && ((this.#answers.get(idOf(kind, key)) as T | undefined) ?? cached)
  }

  /** The watch still tells of a time before our write. */
  #isOutrun(id: string, after: PodFacts | WorkloadFacts | undefined): boolean {
    const answer = this.#answers.get(id)
    if (!answer) return false
    if (after?.uid === answer.uid && compareVersions(after.resourceVersion, answer.resourceVersion) < 0) return true
    this.#answers.delete(id)
    return false
  }

  /** Undefined where nothing is known of the pod, or of the workload it belongs to. */
  standing(key: string): Standing | undefined {
    const pod = this.pod(key)
    const root = pod && this.#rootOf(pod)
    if (!root) return undefined
    this.#settleAtOnce(pod.namespace)
    const claimOf = (container: Container) => {
      const claim = this.#claimOf(root, container)
      const source = claim && this.get(claim.source)
      return source && { source, replacement: claim.replacement }
    }
    return {
      workload: root.workload,
      containers: root.containers.map(container => ({
        container,
        claim: claimOf(container),
        retargeted: retargetOf(root, container),
      })),
    }
  }

  /** Whether it is one of those of its namespace that are acted on. */
  isActive(key: string): boolean {
    return this.#spaces.get(nameOf(key).namespace ?? "")?.claims.isActive(key) ?? false
  }

  /** Resolves when it is known which source of a namespace looks after what. Until the next event, that is. */
  async settle(space: string): Promise<void> {
    for (;;) {
      const known = this.#spaces.get(space)
      if (!known || known.claims.isSettled) return
      known.settling ??= this.#inPieces(this.#settling(space, known)).finally(() => {
        known.settling = undefined
      })
      await known.settling
    }
  }

  /** For a command, which has nothing else to do. */
  #settleAtOnce(space: string): void {
    const known = this.#spaces.get(space)
    if (known && !known.claims.isSettled) for (const _ of this.#settling(space, known));
  }

  *#settling(space: string, known: Space): Generator<void> {
    const moved = new Set<string>()
    const sources = () => [...this.#sources.keysBy("namespace", space)].map(key => this.get(key)!)
    yield* known.claims.settle(sources, ref => this.#rootAt(ref), moved)
    known.troubled = undefined
    for (const key of moved) if (this.get(key)) this.#wiring.enqueue(key)
  }

  /** What an image turned out to be where it runs in a namespace. */
  digest(space: string, image: string): string | undefined {
    return this.#digests.get(`${space} ${image}`)
  }

  /** How many pods of a namespace cannot pull something. */
  failingIn(namespace: string): number {
    return this.#failing.get(namespace)?.size ?? 0
  }

  scene(source: AlternateImageSource): Scene {
    const space = source.metadata.namespace ?? ""
    const key = keyOf(source.metadata)
    this.#settleAtOnce(space)
    const groups = new Map<string, MutableGroup>()
    const { failing, repaired } = this.#troubledIn(space).get(key) ?? noTrouble
    for (const pod of failing) this.#addFailing(groups, key, pod)
    const arrived = new Set<string>()
    for (const each of repaired) {
      const pod = this.pod(each)!
      for (const { image } of pod.running) arrived.add(`${pod.node} ${image}`)
      this.#addRepaired(groups, key, pod)
    }
    for (const { type, name, uid, container: named, incident } of source.status?.targetsAvailable ?? []) {
      if (!incident || groups.has(`${uid}/${named}`)) continue
      const root = this.#find(space, { ...type, name, uid })
      const container = root?.containers.find(each => each.name === named)
      const replacement = container && this.#coverBy(key, root!, container)
      if (replacement) this.#group(groups, root!, container, replacement)
    }
    const share = this.#spaces.get(space)?.claims.shareOf(key)
    const hasArrived = (node: string, image: string) => arrived.has(`${node} ${image}`)
    return { groups: [...groups.values()], roster: [], claimed: 0, missing: [], hasArrived, ...share }
  }

  /** Found out once for all sources of a namespace. */
  #troubledIn(space: string): ReadonlyMap<string, Troubled> {
    const known = this.#spaces.get(space)
    if (known?.troubled) return known.troubled
    const found = new Map<string, Troubled>()
    const gather = (keys: Iterable<string>, what: keyof Troubled) => {
      for (const key of keys) {
        for (const source of this.#sourcesFor(this.pod(key))) {
          const troubled = found.get(source) ?? { failing: [], repaired: [] }
          found.set(source, troubled)
          troubled[what].push(key)
        }
      }
    }
    gather(this.#failing.get(space) ?? [], "failing")
    gather(this.#repaired.get(space) ?? [], "repaired")
    if (known) known.troubled = found
    return found
  }

  /** Those that look after one of a pod's containers. */
  #sourcesFor(pod: PodFacts | undefined): Set<string> {
    const root = pod && this.#rootOf(pod)
    const claims = root?.containers.map(container => this.#claimOf(root, container)?.source) ?? []
    return new Set(claims.filter(source => source !== undefined))
  }

  #addFailing(groups: Map<string, MutableGroup>, source: string, key: string): void {
    const pod = this.pod(key)
    const root = pod && this.#rootOf(pod)
    if (!root) return
    for (const failing of pod.failing) {
      const container = root.containers.find(({ name }) => name === failing.name)
      const replacement = container && this.#coverBy(source, root, container)
      if (!replacement || !isEquivalent(failing.image, container.image, replacement)) continue
      const group = this.#group(groups, root, container, replacement)
      const since = this.#since.get(key)?.get(sightOf(pod, failing)) ?? this.#wiring.clock.now()
      const { uid, resourceVersion, node, revision } = pod
      const { image, failure, pullsAlways } = failing
      const waiting = { key, uid, resourceVersion, image, since, node, pullsAlways, revision }
      if (failure) group.failing.push({ ...waiting, failure })
      else group.held.push(waiting)
    }
  }

  #group(
    groups: Map<string, MutableGroup>,
    root: Root,
    container: Container,
    { equivalentRepositories }: Replacement,
  ): MutableGroup {
    const { workload } = root
    const id = `${workload.uid}/${container.name}`
    const known = groups.get(id)
    if (known) return known
    const retargeted = retargetOf(root, container)
    const group = {
      workload,
      container: container.name,
      isInit: container.isInit,
      image: container.image,
      repositories: equivalentRepositories,
      digest: this.digest(workload.namespace, container.image),
      pods: () => this.#podsOf(workload),
      failing: [] as FailingPod[],
      held: [] as WaitingPod[],
      ...(retargeted && { retargeted }),
    }
    groups.set(id, group)
    return group
  }

  #addRepaired(groups: Map<string, MutableGroup>, source: string, pod: PodFacts): void {
    const { decision } = pod
    const root = this.#rootOf(pod)
    for (const container of root?.containers ?? []) {
      const was = decision?.was?.[container.name]
      if (!decision || was === undefined || decision.to === container.image) continue
      // Repaired when the workload named another image: that says nothing about the one it names now, unless we have
      // changed it.
      if (was !== container.image && retargetOf(root!, container)?.from !== was) continue
      const replacement = this.#coverBy(source, root!, container)
      if (!replacement || !isEquivalent(decision.to, container.image, replacement)) continue
      const group = this.#group(groups, root!, container, replacement)
      const { from, to, at, reason } = decision
      const pods = (group.repaired?.to === to ? group.repaired.pods : 0) + 1
      const isLast = !group.repaired || group.repaired.at <= at || group.repaired.to === to
      if (isLast) group.repaired = { from, to, at, reason: reason as PullFailure, pods }
      if (pod.crash) {
        const worst = [pod.crash, ...(group.crashes ? [group.crashes.worst] : [])].sort(byBadness)[0]!
        group.crashes = { pods: (group.crashes?.pods ?? 0) + 1, worst }
      }
    }
  }

  /** How many pods a workload has, its own and those of what it owns. */
  #podsOf({ uid, namespace: space, type }: Workload): number {
    if (type.kind === "pod") return 1
    let count = 0
    const next = (each: string) =>
      [...this.#owned.of(`${space} ${each}`)].map(ref => this.#foundAt(ref)?.facts.uid ?? "")
    for (const each of ownerWalk([uid], { next, idOf: each => each }))
      count += this.#podsOwned.get(`${space} ${each}`) ?? 0
    return count
  }

  /** The set of repositories that this source has for a container, unless an older source has one. */
  #coverBy(source: string, root: Root, container: Container): Replacement | undefined {
    const claim = this.#claimOf(root, container)
    return claim?.source === source ? claim.replacement : undefined
  }

  #claimOf(root: Root, container: Container) {
    const { namespace: space, name, type } = root.workload
    return this.#spaces.get(space)?.claims.claimOf(refOf(type.kind, space, name), root, container)
  }

  #foundAt(ref: string): Found | undefined {
    const [name = "", key = ""] = ref.split(" ")
    for (const [kind, cache] of this.#workloads) {
      if (kind.name !== name) continue
      const facts = this.#newest(kind, key, cache.get(key))
      return facts && { kind, facts }
    }
    return undefined
  }

  /** What stands at a place, if it is a workload that belongs to no other of ours. */
  #rootAt(ref: string): Root | undefined {
    if (ref.startsWith("pod ")) {
      const pod = this.pod(ref.slice("pod ".length))
      return pod && !pod.owner ? podAsRoot(pod) : undefined
    }
    const found = this.#foundAt(ref)
    const isRoot = found && !found.facts.isDeleting && this.#topOf(found).facts === found.facts
    return isRoot ? rootFrom(found.kind, found.facts) : undefined
  }

  #find(space: string, { kind, name, uid }: { kind: string; name: string; uid: string }): Root | undefined {
    if (kind === "pod") {
      const pod = this.pod(`${space}/${name}`)
      return pod?.uid === uid ? podAsRoot(pod) : undefined
    }
    const found = this.#above({ kind, name, uid, group: "" }, space)
    return found && rootFrom(found.kind, found.facts)
  }

  /** The workload that an owner reference means: by name and uid, in the same namespace and nowhere else. */
  #above(owner: Owner | undefined, space: string): Found | undefined {
    if (!owner) return undefined
    for (const [kind, cache] of this.#workloads) {
      if (kind.name !== owner.kind) continue
      const key = `${space}/${owner.name}`
      const facts = this.#newest(kind, key, cache.get(key))
      if (facts?.uid === owner.uid) return { kind, facts }
    }
    return undefined
  }

  #rootOf(pod: PodFacts): Root | undefined {
    if (!pod.owner) return podAsRoot(pod)
    const found = this.#above(pod.owner, pod.namespace)
    if (!found) {
      // An owner of a kind that is read is gone, or not seen yet: nothing is known of what the pod belongs to.
      const isStranger = pod.containers && !isRead(pod.owner) && isTellable(pod.owner)
      return isStranger ? strangerAsRoot(pod, pod.owner) : undefined
    }
    const top = this.#topOf(found)
    return top.facts.isDeleting ? undefined : rootFrom(top.kind, top.facts)
  }

  #topOf(found: Found): Found {
    const ownerOf = ({ facts }: Found) => this.#above(facts.owner, facts.namespace)
    return topOwner(found, ownerOf, ({ facts }) => facts.uid)
  }

  #sourceChanged(key: string, before: AlternateImageSource | undefined, after: AlternateImageSource | undefined): void {
    if (before && after && isSameSpec(before, after)) return
    const space = (after ?? before)!.metadata.namespace ?? ""
    if (this.#sources.keysBy("namespace", space).size === 0) return void this.#spaces.delete(space)
    const known = this.#spaces.get(space) ?? this.#begin(space)
    known.claims.sourceChanged(key, after)
    if (!known.claims.isSettled) this.#stir(space)
  }

  /** All that a namespace holds is to be looked at for the first time. */
  #begin(space: string): Space {
    const known: Space = { claims: new Claims() }
    this.#spaces.set(space, known)
    for (const [{ name }, cache] of this.#workloads)
      for (const key of cache.keysBy("namespace", space)) known.claims.touch(`${name} ${key}`)
    for (const key of this.#pods?.keysBy("namespace", space) ?? [])
      if (!this.pod(key)?.owner) known.claims.touch(`pod ${key}`)
    return known
  }

  #workloadChanged(kind: WorkloadKind, before: WorkloadFacts | undefined, after: WorkloadFacts | undefined): void {
    if (gistOf(before) === gistOf(after)) return
    const { namespace: space, name } = (after ?? before)!
    const ref = refOf(kind.name, space, name)
    const hasMoved = before?.uid !== after?.uid || before?.owner?.uid !== after?.owner?.uid
    if (hasMoved) {
      if (before?.owner) this.#owned.delete(`${space} ${before.owner.uid}`, ref)
      if (after?.owner) this.#owned.add(`${space} ${after.owner.uid}`, ref)
    }
    const claims = this.#spaces.get(space)?.claims
    if (!claims) return
    claims.touch(ref)
    if (hasMoved) {
      // What it owns may be a root from now on, or no longer; what owns it has pods whose owner was unknown before.
      const owned = [before, after].flatMap(each => (each ? [...this.#owned.of(`${space} ${each.uid}`)] : []))
      const next = (each: string) => this.#owned.of(`${space} ${this.#foundAt(each)?.facts.uid}`)
      for (const each of ownerWalk(owned, { next, idOf: each => each })) claims.touch(each)
      const top = after && this.#topOf({ kind, facts: after })
      if (top) claims.touch(refOf(top.kind.name, space, top.facts.name))
    }
    this.#stir(space)
  }

  /** Something in a namespace changed that decides which source looks after what. */
  #stir(space: string): void {
    this.#wiring.enqueueAfter(`${space}/`, this.waitMs(space))
  }

  /** Many pods fail at once when a registry does: looking once for all of them keeps the cost in step with them. */
  waitMs(space: string): number {
    return Math.min(20 + this.failingIn(space) / 4, 1000)
  }

  /** Where the sources are not settled, they are woken when they are. */
  #wake(pod: PodFacts): void {
    for (const key of this.#sourcesFor(pod)) this.#wiring.enqueueAfter(key, this.waitMs(pod.namespace))
  }

  /** Of images that nobody has run for long, the oldest are forgotten. */
  #learn(key: string, digest: string): void {
    this.#digests.delete(key)
    this.#digests.set(key, digest)
    if (this.#digests.size <= digestsMost) return
    for (const oldest of this.#digests.keys()) return void this.#digests.delete(oldest)
  }

  #podChanged(key: string, before: PodFacts | undefined, after: PodFacts | undefined): void {
    const pod = (after ?? before)!
    const space = pod.namespace
    this.#countPod(before, -1)
    this.#countPod(after, 1)
    for (const { image, digest } of after?.running ?? []) this.#learn(`${space} ${image}`, digest)
    const known = this.#spaces.get(space)
    if (rootGistOf(before) !== rootGistOf(after)) {
      known?.claims.touch(`pod ${key}`)
      this.#stir(space)
    }
    const isRepaired = mark(this.#repaired, space, key, after?.decision !== undefined)
    const isFailing = mark(this.#failing, space, key, after !== undefined && after.failing.length > 0)
    if (isFailing.now && after) {
      const seen = this.#since.get(key)
      const now = this.#wiring.clock.now()
      const sights = after.failing.map(each => sightOf(after, each))
      this.#since.set(key, new Map(sights.map(sight => [sight, seen?.get(sight) ?? now])))
    } else this.#since.delete(key)
    const isConcerned = isFailing.now || isFailing.before || isRepaired.now || isRepaired.before
    if (!known || !isConcerned) return
    known.troubled = undefined
    // Where the first of those that were sent elsewhere runs, the others need not wait any longer.
    const hasArrived = isRepaired.now && (after?.running.length ?? 0) > (before?.running.length ?? 0)
    const crashes = isRepaired.now && !isSame(before?.crash, after?.crash)
    if (isFailing.now || isFailing.before || isRepaired.now !== isRepaired.before || hasArrived || crashes) {
      if (before) this.#wake(before)
      if (after) this.#wake(after)
    }
  }

  #countPod(pod: PodFacts | undefined, by: number): void {
    if (!pod?.owner) return
    const id = `${pod.namespace} ${pod.owner.uid}`
    const count = (this.#podsOwned.get(id) ?? 0) + by
    if (count > 0) this.#podsOwned.set(id, count)
    else this.#podsOwned.delete(id)
  }
}

/** Enters a key of a namespace, or strikes it out; tells how it stood before and stands now. */
function mark(sets: Map<string, Set<string>>, space: string, key: string, now: boolean) {
  const set = sets.get(space) ?? new Set()
  const before = set.has(key)
  if (now) set.add(key)
  else set.delete(key)
  if (set.size > 0) sets.set(space, set)
  else sets.delete(space)
  return { before, now }
}

const noTrouble: Troubled = { failing: [], repaired: [] }

const digestsMost = 10_000

const idOf = (kind: WorkloadKind | undefined, key: string) => `${kind?.name ?? "pod"} ${key}`

const sightOf = ({ uid }: PodFacts, { name, image }: Container) => `${uid} ${name} ${image}`

const isSameSpec = ({ metadata: a }: AlternateImageSource, { metadata: b }: AlternateImageSource) =>
  a.uid === b.uid && a.generation === b.generation && a.deletionTimestamp === b.deletionTimestamp
