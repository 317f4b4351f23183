import type { AlternateImageSource, PullFailure, Replacement } from "#api/v1alpha1/alternateimagesource/index.ts"
import type { Decision } from "#core/decision.ts"
import { isEquivalent } from "#core/equivalent.ts"
import { podFieldSelector } from "#core/pod-facts.ts"
import type { Instant } from "#lib/instant.ts"
import type { Cache, Projected } from "#runtime/cache/cache.ts"
import type { Wiring } from "#runtime/controller.ts"
import { type KubeObject, keyOf } from "#runtime/resource.ts"
import { coverOf, missingTargets, type Named } from "./coverage.ts"
import type { FailingPod, Group, Workload } from "./decide.ts"
import { type Container, type Owner, type PodFacts, readPod, readWorkload, type WorkloadFacts } from "./facts.ts"
import { alternateImageSources, pods, type WorkloadKind, workloadKinds } from "./resources.ts"

/** What one AlternateImageSource looks after, as far as it has to be looked at. */
export type Scene = {
  /** Containers that fail, and those of which the status tells an incident. */
  groups: Group[]
  /** Everything it looks after. */
  roster: readonly Entry[]
  /** Containers that an older one looks after. */
  claimed: number
  missing: readonly string[]
}

/** Where a pod's containers come from: its workload's words, and the sources that look after them. */
export type Standing = {
  readonly workload: Workload
  readonly containers: readonly {
    readonly container: Container
    readonly claim: Claim | undefined
  }[]
}

export type Claim = { readonly source: AlternateImageSource; readonly replacement: Replacement }

export type Surroundings = Pick<Wiring, "watch" | "clock" | "enqueue" | "enqueueAfter">

export type Entry = { readonly workload: Workload; readonly container: Container }

type Listing = Pick<Cache<Projected>, "hasSynced" | "synced" | "failure">
type MutableGroup = Group & { failing: FailingPod[]; repaired?: Group["repaired"] }
type Read = { readonly resourceVersion: string; readonly object: AlternateImageSource }
type Root = Named & {
  readonly workload: Workload
  readonly containers: readonly Container[]
  /** What we last changed in its template. */
  readonly decision?: Decision | undefined
}

/**
 * Every AlternateImageSource, the workloads it looks after and the pods that cannot pull. Cost follows what fails: a
 * healthy pod is forgotten as soon as it is read, but for the digest of what it runs. Workloads and pods are watched
 * as long as there is a source: an installation without one should not pay for it.
 */
export class Sources {
  readonly #wiring: Surroundings
  readonly #sources: Cache<Read>
  readonly #workloads = new Map<WorkloadKind, Cache<WorkloadFacts>>()
  #pods: Cache<PodFacts> | undefined
  #close: (() => void)[] = []
  readonly #failing = new Map<string, Set<string>>()
  readonly #repaired = new Map<string, Set<string>>()
  /** Since when a container is seen failing, by pod and image. */
  readonly #since = new Map<string, Map<string, Instant>>()
  /** What an image turned out to be where it runs, by namespace and image. */
  readonly #digests = new Map<string, string>()
  /** How often the workloads and sources of a namespace have changed: what was found out holds until then. */
  readonly #changes = new Map<string, number>()
  readonly #rosters = new Map<string, { at: number; roster: Entry[]; claimed: number; missing: string[] }>()

  constructor(wiring: Surroundings) {
    this.#wiring = wiring
    this.#sources = wiring.watch(alternateImageSources, { project: readSource, indexes: { namespace } })
    this.#sources.subscribe(({ key, before, after, initial }) => {
      const isNews = JSON.stringify(before?.object.spec) !== JSON.stringify(after?.object.spec)
      if (isNews) this.#stir((after ?? before)!.object.metadata.namespace ?? "")
      if (this.#sources.size > 0) this.open()
      else this.#shut()
      wiring.enqueue(key, { background: initial })
    })
  }

  /** Begins to watch workloads and pods. It does so by itself when there is a source. */
  open(): void {
    if (this.#pods) return
    for (const kind of workloadKinds) {
      const indexes = { namespace: (facts: WorkloadFacts) => [facts.namespace] }
      const cache = this.#wiring.watch<WorkloadFacts>(kind.resource, { project: readWorkload, indexes })
      this.#workloads.set(kind, cache)
      this.#close.push(cache.close)
      cache.subscribe(({ before, after }) => this.#stirIfMoved(before, after))
    }
    const indexes = { namespace: (pod: PodFacts) => [pod.namespace] }
    const cache = this.#wiring.watch<PodFacts>(pods, { project: readPod, indexes, fieldSelector: podFieldSelector })
    this.#pods = cache
    this.#close.push(cache.close)
    cache.subscribe(({ key, before, after }) => this.#podChanged(key, before, after))
    Promise.all(this.#watched().map(({ synced }) => synced())).then(() => {
      for (const [key] of this.#sources.entries()) this.#wiring.enqueue(key)
    })
  }

  #shut(): void {
    for (const close of this.#close.splice(0)) close()
    this.#pods = undefined
    const known = [this.#workloads, this.#failing, this.#repaired, this.#since, this.#digests, this.#rosters]
    for (const map of known) map.clear()
  }

  #watched(): Listing[] {
    return [...this.#workloads.values(), ...(this.#pods ? [this.#pods] : [])]
  }

  /** Every list is in. Before, an absent workload or pod means nothing. */
  get isReady(): boolean {
    return this.#pods !== undefined && this.#watched().every(cache => cache.hasSynced)
  }

  /** What we may not list. Other trouble passes by itself. */
  get forbidden(): string[] {
    const isForbidden = (cache: Listing | undefined) => cache?.failure?.kind === "Forbidden" && !cache.hasSynced
    const kinds = workloadKinds.filter(kind => isForbidden(this.#workloads.get(kind)))
    return [...kinds.map(({ resource }) => resource.plural), ...(isForbidden(this.#pods) ? [pods.plural] : [])]
  }

  get(key: string): AlternateImageSource | undefined {
    return this.#sources.get(key)?.object
  }

  pod(key: string): PodFacts | undefined {
    return this.#pods?.get(key)
  }

  /** Undefined where nothing is known of the pod, or of the workload it belongs to. */
  standing(key: string): Standing | undefined {
    const pod = this.pod(key)
    const root = pod && this.#rootOf(pod)
    if (!root) return undefined
    const { workload, containers } = root
    return { workload, containers: containers.map(container => ({ container, claim: this.#claimOf(root, container) })) }
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
    const groups = new Map<string, MutableGroup>()
    for (const key of this.#failing.get(space) ?? []) {
      const pod = this.pod(key)
      const root = pod && this.#rootOf(pod)
      if (!root) continue
      for (const failing of pod.failing) {
        const container = root.containers.find(({ name }) => name === failing.name)
        const replacement = container && this.#coverBy(source, root, container)
        if (!replacement || !isEquivalent(failing.image, container.image, replacement)) continue
        const group = this.#group(groups, root, container, replacement)
        const since = this.#since.get(key)?.get(sightOf(pod, failing)) ?? this.#wiring.clock.now()
        const { uid, resourceVersion } = pod
        group.failing.push({ key, uid, resourceVersion, image: failing.image, failure: failing.failure, since })
      }
    }
    for (const key of this.#repaired.get(space) ?? []) this.#addRepaired(groups, source, this.pod(key)!)
    const { roster, claimed, missing } = this.#roster(source)
    for (const { type, name, uid, container: named, incident } of source.status?.targetsAvailable ?? []) {
      if (!incident || groups.has(`${uid}/${named}`)) continue
      const root = this.#find(space, { ...type, name, uid })
      const container = root?.containers.find(each => each.name === named)
      const replacement = container && this.#coverBy(source, root!, container)
      if (replacement) this.#group(groups, root!, container, replacement)
    }
    return { groups: [...groups.values()], roster, claimed, missing }
  }

  #group(
    groups: Map<string, MutableGroup>,
    { workload, decision }: Root,
    container: Container,
    { equivalentRepositories }: Replacement,
  ): MutableGroup {
    const id = `${workload.uid}/${container.name}`
    const known = groups.get(id)
    if (known) return known
    const isOurs = decision?.to === container.image && decision.was?.[container.name] !== undefined
    const group = {
      workload,
      container: container.name,
      isInit: container.isInit,
      image: container.image,
      repositories: equivalentRepositories,
      digest: this.digest(workload.namespace, container.image),
      pods: () => this.#podsOf(workload),
      failing: [] as FailingPod[],
      ...(isOurs && { retargeted: { ...decision, reason: decision.reason as PullFailure, pods: 0 } }),
    }
    groups.set(id, group)
    return group
  }

  #addRepaired(groups: Map<string, MutableGroup>, source: AlternateImageSource, pod: PodFacts): void {
    const { decision } = pod
    const root = this.#rootOf(pod)
    const was = decision?.was ?? {}
    for (const container of root?.containers ?? []) {
      if (!decision || !Object.hasOwn(was, container.name) || decision.to === container.image) continue
      const replacement = this.#coverBy(source, root!, container)
      if (!replacement || !isEquivalent(decision.to, container.image, replacement)) continue
      const group = this.#group(groups, root!, container, replacement)
      const { from, to, at, reason } = decision
      const pods = (group.repaired?.to === to ? group.repaired.pods : 0) + 1
      const isLast = !group.repaired || group.repaired.at <= at || group.repaired.to === to
      if (isLast) group.repaired = { from, to, at, reason: reason as PullFailure, pods }
    }
  }

  /** How many pods a workload has: asked only where a template is about to be changed. */
  #podsOf({ uid, namespace: space }: Workload): number {
    let count = 0
    for (const pod of this.#podsIn(space)) if (this.#rootOf(pod)?.workload.uid === uid) count++
    return count
  }

  /** Those of a namespace, the oldest first: it is the one that counts where several cover a container. */
  #sourcesOf(space: string): AlternateImageSource[] {
    const found = [...this.#sources.keysBy("namespace", space)].map(key => this.#sources.get(key)!.object)
    const age = ({ metadata }: AlternateImageSource) => (metadata.creationTimestamp ?? "") + metadata.name
    return found.filter(({ metadata }) => !metadata.deletionTimestamp).sort((a, b) => (age(a) < age(b) ? -1 : 1))
  }

  /** The set of repositories that this source has for a container, unless an older source has one. */
  #coverBy(source: AlternateImageSource, root: Root, container: Container): Replacement | undefined {
    const claim = this.#claimOf(root, container)
    return claim && claim.source.metadata.uid === source.metadata.uid ? claim.replacement : undefined
  }

  #claimOf(root: Root, container: Container): Claim | undefined {
    for (const source of this.#sourcesOf(root.workload.namespace)) {
      const replacement = coverOf(source.spec, root, container)
      if (replacement) return { source, replacement }
    }
    return undefined
  }

  #roster(source: AlternateImageSource) {
    const space = source.metadata.namespace ?? ""
    const key = keyOf(source.metadata)
    const at = this.#changes.get(space) ?? 0
    const known = this.#rosters.get(key)
    if (known?.at === at) return known
    const roots = [...this.#rootsIn(space)]
    const roster: Entry[] = []
    let claimed = 0
    for (const root of roots)
      for (const container of root.containers)
        if (this.#coverBy(source, root, container)) roster.push({ workload: root.workload, container })
        else if (coverOf(source.spec, root, container)) claimed++
    roster.sort((a, b) =>
      `${a.workload.name}/${a.container.name}` < `${b.workload.name}/${b.container.name}` ? -1 : 1,
    )
    const found = { at, roster, claimed, missing: missingTargets(source.spec, roots) }
    this.#rosters.set(key, found)
    return found
  }

  /** Every workload of a namespace that belongs to no other of ours. */
  *#rootsIn(space: string): Iterable<Root> {
    for (const [kind, cache] of this.#workloads) {
      for (const key of cache.keysBy("namespace", space)) {
        const facts = cache.get(key)!
        if (facts.isDeleting || this.#above(facts.owner, space)) continue
        yield rootFrom(kind, facts)
      }
    }
    for (const pod of this.#podsIn(space)) if (!pod.owner) yield podAsRoot(pod)
  }

  *#podsIn(space: string): Iterable<PodFacts> {
    for (const key of this.#pods?.keysBy("namespace", space) ?? []) yield this.pod(key)!
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
  #above(owner: Owner | undefined, space: string): { kind: WorkloadKind; facts: WorkloadFacts } | undefined {
    if (!owner) return undefined
    for (const [kind, cache] of this.#workloads) {
      if (kind.name !== owner.kind) continue
      const facts = cache.get(`${space}/${owner.name}`)
      if (facts?.uid === owner.uid) return { kind, facts }
    }
    return undefined
  }

  #rootOf(pod: PodFacts): Root | undefined {
    if (!pod.owner) return podAsRoot(pod)
    let found = this.#above(pod.owner, pod.namespace)
    if (!found) return pod.containers && isTellable(pod.owner) ? strangerAsRoot(pod, pod.owner) : undefined
    for (
      let above = this.#above(found.facts.owner, pod.namespace);
      above;
      above = this.#above(found.facts.owner, pod.namespace)
    )
      found = above
    return found.facts.isDeleting ? undefined : rootFrom(found.kind, found.facts)
  }

  #stirIfMoved(before: WorkloadFacts | undefined, after: WorkloadFacts | undefined): void {
    const gist = (facts: WorkloadFacts | undefined) =>
      facts &&
      JSON.stringify([facts.uid, facts.labels, facts.containers, facts.owner, facts.isDeleting, facts.isGitOps])
    if (gist(before) !== gist(after)) this.#stir((after ?? before)!.namespace)
  }

  /** Something in a namespace changed by which it is decided who looks after what. */
  #stir(space: string): void {
    this.#changes.set(space, (this.#changes.get(space) ?? 0) + 1)
    this.#wake(space)
  }

  /** Many pods fail at once when a registry does: looking once for all of them keeps the cost in step with them. */
  waitMs(space: string): number {
    return Math.min(20 + this.failingIn(space) / 4, 1000)
  }

  #wake(space: string): void {
    for (const key of this.#sources.keysBy("namespace", space)) this.#wiring.enqueueAfter(key, this.waitMs(space))
  }

  /** Of images that nobody has run for long, the oldest are forgotten. */
  #learn(key: string, digest: string): void {
    this.#digests.delete(key)
    this.#digests.set(key, digest)
    if (this.#digests.size <= digestsMost) return
    for (const oldest of this.#digests.keys()) return void this.#digests.delete(oldest)
  }

  #podChanged(key: string, before: PodFacts | undefined, after: PodFacts | undefined): void {
    const space = (after ?? before)!.namespace
    const failing = this.#failing.get(space) ?? new Set()
    this.#failing.set(space, failing)
    const repaired = this.#repaired.get(space) ?? new Set()
    this.#repaired.set(space, repaired)
    if (after?.decision) repaired.add(key)
    else repaired.delete(key)
    if (repaired.size === 0) this.#repaired.delete(space)
    for (const { image, digest } of after?.running ?? []) this.#learn(`${space} ${image}`, digest)
    if (after && !after.owner && !before) this.#stir(space)
    if (!after && before && !before.owner) this.#stir(space)
    if (after && after.failing.length > 0) {
      failing.add(key)
      const seen = this.#since.get(key)
      const now = this.#wiring.clock.now()
      const sights = after.failing.map(each => sightOf(after, each))
      this.#since.set(key, new Map(sights.map(sight => [sight, seen?.get(sight) ?? now])))
      this.#wake(space)
      return
    }
    this.#since.delete(key)
    if (failing.delete(key)) this.#wake(space)
    if (failing.size === 0) this.#failing.delete(space)
  }
}

const digestsMost = 10_000

/** Whoever makes a pod may name any owner; what the status could not say is not looked after. */
const isTellable = ({ group, kind, name, uid }: Owner) =>
  /^[a-z0-9.-]{0,253}$/.test(group) &&
  /^[a-z0-9]{1,63}$/.test(kind) &&
  /^[a-z0-9.-]{1,253}$/.test(name) &&
  /^[A-Za-z0-9-]{1,64}$/.test(uid)

const sightOf = ({ uid }: PodFacts, { name, image }: Container) => `${uid} ${name} ${image}`
const namespace = ({ object }: Read) => [object.metadata.namespace ?? ""]

function rootFrom(kind: WorkloadKind, facts: WorkloadFacts): Root {
  const type = { group: kind.resource.group, kind: kind.name }
  const { name, uid, resourceVersion, namespace: space, isGitOps, owner, matchLabels, labels } = facts
  const { containers, decision } = facts
  const workload: Workload = {
    type,
    name,
    namespace: space,
    uid,
    resourceVersion,
    hasTemplate: kind.hasTemplate,
    replacesPods: kind.replacesPods,
    isGitOps,
    isOwned: owner !== undefined,
    matchLabels: matchLabels && Object.keys(matchLabels).length <= 8 ? matchLabels : undefined,
  }
  return { type, name, labels, owner, workload, containers, decision }
}

/** A pod that nobody owns is its own workload, and says what it was before we repaired it. */
const podAsRoot = (pod: PodFacts): Root => asRoot(pod, { group: "", kind: "pod" }, pod.name, pod.uid, undefined)

/** Its owner is of a kind we do not read: what we know of it is its name. */
const strangerAsRoot = (pod: PodFacts, owner: Owner): Root =>
  asRoot(pod, { group: owner.group, kind: owner.kind }, owner.name, owner.uid, owner)

function asRoot(pod: PodFacts, type: Named["type"], name: string, uid: string, owner: Owner | undefined): Root {
  const { resourceVersion, namespace: space, decision, containers = [], labels = {} } = pod
  const fixed = { hasTemplate: false, replacesPods: false, isGitOps: false, isOwned: owner !== undefined }
  return {
    type,
    name,
    labels,
    owner,
    workload: { type, name, namespace: space, uid, resourceVersion, ...fixed },
    containers: containers.map(each => ({ ...each, image: decision?.was?.[each.name] ?? each.image })),
  }
}

function readSource(object: KubeObject): Read {
  return { resourceVersion: object.metadata.resourceVersion ?? "", object: object as AlternateImageSource }
}
