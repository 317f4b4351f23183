import type { AlternateImageSource, PullFailure, Replacement } from "#api/v1alpha1/alternateimagesource/index.ts"
import { isEquivalent } from "#core/image/equivalent.ts"
import { isOfUpdate, standsFor } from "#core/pods/one-at-a-time.ts"
import { byBadness } from "#core/pods/steady.ts"
import type { Instant } from "#lib/instant.ts"
import { isSame } from "#lib/same.ts"
import type { Cache } from "#runtime/cache/cache.ts"
import type { Wiring } from "#runtime/controller.ts"
import type { Held } from "#runtime/kind-controller.ts"
import { createPieces, type InPieces } from "#runtime/pieces.ts"
import { type KubeObject, keyOf, nameOf } from "#runtime/resource.ts"
import { Claims, type Entry, type Root, retargetOf } from "./claims.ts"
import type { Container, PodFacts, WorkloadFacts } from "./facts.ts"
import type { FailingPod, Group, Repaired, WaitingPod, Workload } from "./group.ts"
import type { WorkloadKind } from "./resources.ts"
import { gistOf, refOf, rootGistOf } from "./roots.ts"
import { Workloads } from "./workloads.ts"

/** What one AlternateImageSource looks after, as far as a decision needs it. */
export type Scene = {
  /** Containers that fail, and those with an incident in the status. */
  groups: Group[]
  /** Everything it looks after. */
  roster: readonly Entry[]
  /** Containers that an older source looks after. */
  claimed: number
  missing: readonly string[]
  /**
   * Whether a pod that we sent elsewhere runs this image on a node: then the other pods of that node need not pull it.
   */
  hasArrived(node: string, image: string): boolean
}

/** Where a pod's containers come from: by its workload, and by the sources that look after them. */
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
/** A namespace that has a source. */
type Space = {
  readonly claims: Claims
  settling?: Promise<void> | undefined
  /** Pods that fail or were repaired, by the source that looks after them; undefined until it is determined. */
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
  readonly #workloads: Workloads
  readonly #failing = new Map<string, Set<string>>()
  readonly #repaired = new Map<string, Set<string>>()
  /** Since when a container fails, by pod and image. */
  readonly #since = new Map<string, Map<string, Instant>>()
  /** The digest of an image where it runs, by namespace and image. */
  readonly #digests = new Map<string, string>()
  readonly #spaces = new Map<string, Space>()
  readonly #inPieces: InPieces

  constructor(wiring: Surroundings, sources: Cache<Held<AlternateImageSource>>) {
    this.#wiring = wiring
    this.#inPieces = createPieces(wiring.clock)
    this.#workloads = new Workloads(wiring, {
      workloadChanged: (...change) => this.#workloadChanged(...change),
      podChanged: (...change) => this.#podChanged(...change),
    })
    this.#sources = sources
    this.#sources.subscribe(({ key, before, after }) => {
      this.#sourceChanged(key, before?.object, after?.object)
      if (this.#sources.size > 0) this.open()
      else this.#shut()
    })
  }

  /** Begins to watch workloads and pods. Called automatically when there is a source. */
  open(): void {
    if (!this.#workloads.open()) return
    this.#workloads.ready().then(() => {
      for (const [key] of this.#sources.entries()) this.#wiring.enqueue(key)
    })
  }

  #shut(): void {
    this.#workloads.close()
    for (const map of [this.#failing, this.#repaired, this.#since, this.#digests]) map.clear()
  }

  /** Whether every list is complete. Before that, an absent workload or pod means nothing. */
  get isReady(): boolean {
    return this.#workloads.isReady
  }

  /** The plurals of the kinds that may not be listed. */
  get forbidden(): string[] {
    return this.#workloads.forbidden
  }

  get(key: string): AlternateImageSource | undefined {
    return this.#sources.get(key)?.object
  }

  pod(key: string): PodFacts | undefined {
    return this.#workloads.pod(key)
  }

  /** The server's answer to a write of ours. */
  answered(kind: WorkloadKind | undefined, object: KubeObject): void {
    this.#workloads.answered(kind, object)
  }

  /** Undefined if nothing is known about the pod, or about the workload it belongs to. */
  standing(key: string): Standing | undefined {
    const pod = this.pod(key)
    const root = pod && this.#workloads.rootOf(pod)
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

  /** Whether the source is among those of its namespace that are acted on. */
  isActive(key: string): boolean {
    return this.#spaces.get(nameOf(key).namespace ?? "")?.claims.isActive(key) ?? false
  }

  /** Resolves when it is known which source of a namespace looks after what. The next event may change that. */
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

  /** For commands, which need not give way to other work. */
  #settleAtOnce(space: string): void {
    const known = this.#spaces.get(space)
    if (known && !known.claims.isSettled) for (const _ of this.#settling(space, known));
  }

  *#settling(space: string, known: Space): Generator<void> {
    const moved = new Set<string>()
    const sources = () => [...this.#sources.keysBy("namespace", space)].map(key => this.get(key)!)
    yield* known.claims.settle(sources, ref => this.#workloads.rootAt(ref), moved)
    known.troubled = undefined
    for (const key of moved) if (this.get(key)) this.#wiring.enqueue(key)
  }

  /** The digest of an image where it runs in a namespace. */
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
    // A container of a workload is one group, of one version. What may be repaired comes before what an update in place
    // has changed, and what fails before what was repaired.
    for (const isLeft of [false, true]) for (const pod of failing) this.#addFailing(groups, key, pod, isLeft)
    const arrived = new Set<string>()
    for (const each of repaired) {
      const pod = this.pod(each)!
      for (const { image } of pod.running) arrived.add(`${pod.node} ${image}`)
      this.#addRepaired(groups, key, pod)
    }
    for (const { type, name, uid, container: named, incident } of source.status?.targetsAvailable ?? []) {
      if (!incident || groups.has(`${uid}/${named}`)) continue
      const root = this.#workloads.find(space, { ...type, name, uid })
      const container = root?.containers.find(each => each.name === named)
      const replacement = container && this.#coverBy(key, root!, container)
      if (replacement) this.#group(groups, root!, container, replacement)
    }
    const share = this.#spaces.get(space)?.claims.shareOf(key)
    const hasArrived = (node: string, image: string) => arrived.has(`${node} ${image}`)
    return { groups: [...groups.values()], roster: [], claimed: 0, missing: [], hasArrived, ...share }
  }

  /** Determined once for all sources of a namespace. */
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

  /** The sources that look after one of a pod's containers. */
  #sourcesFor(pod: PodFacts | undefined): Set<string> {
    const root = pod && this.#workloads.rootOf(pod)
    const claims = root?.containers.map(container => this.#claimOf(root, container)?.source) ?? []
    return new Set(claims.filter(source => source !== undefined))
  }

  #addFailing(groups: Map<string, MutableGroup>, source: string, key: string, isLeft: boolean): void {
    const pod = this.pod(key)
    const root = pod && this.#workloads.rootOf(pod)
    if (!root) return
    for (const failing of pod.failing) {
      if (isLeft !== isOfUpdate(pod.updated, failing)) continue
      const container = root.containers.find(({ name }) => name === failing.name)
      const replacement = container && this.#coverBy(source, root, container)
      if (!replacement || !isEquivalent(failing.image, container.image, replacement)) continue
      const group = this.#group(groups, root, container, replacement)
      if (group.image !== container.image) continue
      const since = this.#since.get(key)?.get(sightOf(pod, failing)) ?? this.#wiring.clock.now()
      const { uid, resourceVersion, node, revision, updated } = pod
      const { image, failure, pullsAlways } = failing
      const waiting = {
        key,
        uid,
        resourceVersion,
        image,
        since,
        node,
        pullsAlways,
        revision,
        ...(updated && { updated }),
      }
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
      pods: () => this.#workloads.podsOf(workload),
      failing: [] as FailingPod[],
      held: [] as WaitingPod[],
      ...(retargeted && { retargeted }),
    }
    groups.set(id, group)
    return group
  }

  #addRepaired(groups: Map<string, MutableGroup>, source: string, pod: PodFacts): void {
    const { decision } = pod
    const root = this.#workloads.rootOf(pod)
    for (const container of root?.containers ?? []) {
      const was = decision?.was?.[container.name]
      if (!decision || was === undefined || decision.to === container.image) continue
      // It has another image since.
      const own = pod.containers?.find(({ name }) => name === container.name)
      if (own && standsFor(decision, own) !== was) continue
      // The pod was repaired when the workload named another image. That says nothing about the present image, unless
      // we changed it.
      if (was !== container.image && retargetOf(root!, container)?.from !== was) continue
      const replacement = this.#coverBy(source, root!, container)
      if (!replacement || !isEquivalent(decision.to, container.image, replacement)) continue
      const group = this.#group(groups, root!, container, replacement)
      if (group.image !== container.image) continue
      const { from, to, at, reason } = decision
      const same = group.repaired?.to === to ? group.repaired : undefined
      const isLast = same || !group.repaired || group.repaired.at <= at
      const left = new Map(same?.left)
      left.set(from, (left.get(from) ?? 0) + 1)
      const most = same && left.get(same.from)! >= left.get(from)! ? same.from : from
      const pods = (same?.pods ?? 0) + 1
      if (isLast) group.repaired = { from: most, to, at, reason: reason as PullFailure, pods, left }
      if (pod.crash) {
        const worst = [pod.crash, ...(group.crashes ? [group.crashes.worst] : [])].sort(byBadness)[0]!
        group.crashes = { pods: (group.crashes?.pods ?? 0) + 1, worst }
      }
    }
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

  #sourceChanged(key: string, before: AlternateImageSource | undefined, after: AlternateImageSource | undefined): void {
    if (before && after && isSameSpec(before, after)) return
    const space = (after ?? before)!.metadata.namespace ?? ""
    if (this.#sources.keysBy("namespace", space).size === 0) return void this.#spaces.delete(space)
    const known = this.#spaces.get(space) ?? this.#begin(space)
    known.claims.sourceChanged(key, after)
    if (!known.claims.isSettled) this.#stir(space)
  }

  /** Marks everything in a namespace to be looked at for the first time. */
  #begin(space: string): Space {
    const known: Space = { claims: new Claims() }
    this.#spaces.set(space, known)
    for (const ref of this.#workloads.in(space)) known.claims.touch(ref)
    return known
  }

  #workloadChanged(kind: WorkloadKind, before: WorkloadFacts | undefined, after: WorkloadFacts | undefined): void {
    if (gistOf(before) === gistOf(after)) return
    const { namespace: space, name } = (after ?? before)!
    const ref = refOf(kind.name, space, name)
    const hasMoved = before?.uid !== after?.uid || before?.owner?.uid !== after?.owner?.uid
    const claims = this.#spaces.get(space)?.claims
    if (!claims) return
    claims.touch(ref)
    if (hasMoved) {
      // What the workload owns may become a root, or no longer be one. What owns it has pods whose owner was unknown
      // before.
      for (const each of [before, after]) for (const owned of this.#workloads.below(kind, each)) claims.touch(owned)
      const top = after && this.#workloads.topOf({ kind, facts: after })
      if (top) claims.touch(refOf(top.kind.name, space, top.facts.name))
    }
    this.#stir(space)
  }

  /** A change in a namespace may decide which source looks after what. */
  #stir(space: string): void {
    this.#wiring.enqueueAfter(`${space}/`, this.waitMs(space))
  }

  /** Many pods fail at once when a registry does: one look for all of them limits the cost. */
  waitMs(space: string): number {
    return Math.min(20 + this.failingIn(space) / 4, 1000)
  }

  /** If the sources are not settled, they are woken once they are. */
  #wake(pod: PodFacts): void {
    for (const key of this.#sourcesFor(pod)) this.#wiring.enqueueAfter(key, this.waitMs(pod.namespace))
  }

  /** Forgets the images that have not run for the longest time. */
  #learn(key: string, digest: string): void {
    this.#digests.delete(key)
    this.#digests.set(key, digest)
    if (this.#digests.size <= digestsMost) return
    for (const oldest of this.#digests.keys()) return void this.#digests.delete(oldest)
  }

  #podChanged(key: string, before: PodFacts | undefined, after: PodFacts | undefined): void {
    const pod = (after ?? before)!
    const space = pod.namespace
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
    // Once the first pod that was sent elsewhere runs, the others need not wait any longer.
    const hasArrived = isRepaired.now && (after?.running.length ?? 0) > (before?.running.length ?? 0)
    const crashes = isRepaired.now && !isSame(before?.crash, after?.crash)
    if (isFailing.now || isFailing.before || isRepaired.now !== isRepaired.before || hasArrived || crashes) {
      if (before) this.#wake(before)
      if (after) this.#wake(after)
    }
  }
}

/** Adds a key of a namespace, or removes it. Returns whether it was there before, and is now. */
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

const sightOf = ({ uid }: PodFacts, { name, image }: Container) => `${uid} ${name} ${image}`

const isSameSpec = ({ metadata: a }: AlternateImageSource, { metadata: b }: AlternateImageSource) =>
  a.uid === b.uid && a.generation === b.generation && a.deletionTimestamp === b.deletionTimestamp
