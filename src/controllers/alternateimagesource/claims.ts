import type {
  AlternateImageSource,
  PullFailure,
  Replacement,
  Target,
} from "#api/v1alpha1/alternateimagesource/index.ts"
import { repositoryNameOf, repositoryNamesIn, sameSource } from "#core/image/equivalent.ts"
import type { ImageRecord } from "#core/image/record.ts"
import { keyOf } from "#runtime/resource.ts"
import { isSelected, kindOf, type Named, placeOf, placesOf } from "./coverage.ts"
import type { Container } from "./facts.ts"
import type { Repaired, Workload } from "./group.ts"

/** A workload that no other workload of ours owns: sources look after these. */
export type Root = Named & {
  readonly workload: Workload
  readonly containers: readonly Container[]
  /** What we last changed in its template. */
  readonly decision?: ImageRecord | undefined
}

export type Entry = {
  readonly workload: Workload
  readonly container: Container
  /** aim wrote the image that the workload has now. */
  readonly retargeted?: Repaired | undefined
}

/** The decision with which we gave a workload its present image. */
export function retargetOf({ decision }: Root, { name, image }: Container): Repaired | undefined {
  const isOurs = decision?.to === image && decision.was?.[name] !== undefined
  return isOurs ? { ...decision, reason: decision.reason as PullFailure, pods: 0 } : undefined
}

/** The source that looks after a container, by its key, and which of its sets applies. */
export type Claim = { readonly source: string; readonly replacement: Replacement }

/** What one source looks after. */
export type Share = {
  readonly roster: readonly Entry[]
  /** Containers that it covers and an older one looks after. */
  readonly claimed: number
  readonly missing: readonly string[]
}

/** Only the oldest sources of a namespace are acted on, and only while their targets together are no more than this. */
export const most = { sources: 50, targets: 4096 }

type MutableShare = { roster: Map<string, Entry>; sorted: readonly Entry[] | undefined; claimed: number }
type Old = { key: string; uid: string; generation: number; age: string; object: AlternateImageSource }
/** One set of repositories of one source, ready to be compared with many workloads. */
type Candidate = {
  source: string
  replacement: Replacement
  /** Containers by the names of workloads that targets give; "" for every container. Undefined: every workload is meant. */
  names: Map<string, Set<string>> | undefined
  selectors: readonly Target[]
}
type Found = { root: Root; claims: readonly (Claim | undefined)[]; contested: readonly string[] }

/**
 * Which source of a namespace looks after which container: the oldest that covers it. Updated with each change, so that
 * a look costs no more than what it looks after. A changed workload is compared again; all workloads are, when the
 * active sources have changed. Both happen in steps, because a namespace may have many of either.
 */
export class Claims {
  /** The oldest sources, up to the limit; of these, those whose targets are not too many. */
  #oldest: readonly Old[] = []
  #active: readonly Old[] = []
  #candidates = new Map<string, Candidate[]>()
  /** The sources that name a workload, which may be created or deleted. */
  #namedBy = new Map<string, Set<string>>()
  readonly #found = new Map<string, Found>()
  readonly #shares = new Map<string, MutableShare>()
  /** How many workloads exist under a name that a target may use. */
  readonly #present = new Map<string, number>()
  readonly #stale = new Set<string>()
  #areSourcesStale = true
  readonly #most: typeof most

  constructor(limits = most) {
    this.#most = limits
  }

  /** A workload has changed, or may have. */
  touch(ref: string): void {
    this.#stale.add(ref)
  }

  /** A source has changed. There may be many beyond the limit, and their changes have no effect. */
  sourceChanged(key: string, after: AlternateImageSource | undefined): void {
    const isOld = this.#oldest.some(each => each.key === key)
    const isBeyond = this.#oldest.length === this.#most.sources && after && ageOf(after) > this.#oldest.at(-1)!.age
    if (isOld || (after && !isBeyond)) this.#areSourcesStale = true
  }

  get isSettled(): boolean {
    return this.#stale.size === 0 && !this.#areSourcesStale
  }

  isActive(key: string): boolean {
    return this.#active.some(each => each.key === key)
  }

  /**
   * Brings up to date what is stale. `rootOf` returns a workload as it is now, if it counts. Every step is short, and
   * changes that happen meanwhile are included. Adds the sources whose share has changed to `moved`.
   */
  *settle(
    sources: () => Iterable<AlternateImageSource>,
    rootOf: (ref: string) => Root | undefined,
    moved: Set<string>,
  ): Generator<void> {
    while (!this.isSettled) {
      if (this.#areSourcesStale) {
        this.#areSourcesStale = false
        this.#choose(sources(), moved)
        yield
      }
      for (const ref of this.#stale) {
        if (this.#areSourcesStale) break
        this.#stale.delete(ref)
        const root = rootOf(ref)
        if (root) yield* this.#compare(ref, root, moved)
        else this.#drop(ref, moved)
        yield
      }
    }
  }

  claimOf(ref: string, root: Root, container: Container): Claim | undefined {
    const found = this.#found.get(ref)
    const at = found?.root.containers.findIndex(({ name }) => name === container.name) ?? -1
    const isKept = found?.root.workload.uid === root.workload.uid
    // A pod of another version than the template's may be of another repository.
    if (isKept && (at < 0 || sameSource(found.root.containers[at]!.image, container.image))) return found.claims[at]
    // The workload is of a kind that is not read: only its pods are known, and there is nothing to keep.
    const candidates = this.#candidatesFor(container)
    const candidate = candidates.find(each => covers(containersFor(each, root), container))
    return candidate && { source: candidate.source, replacement: candidate.replacement }
  }

  shareOf(key: string): Share {
    const share = this.#shares.get(key)
    const source = this.#active.find(each => each.key === key)?.object
    return {
      roster: share ? sorted(share) : [],
      claimed: share?.claimed ?? 0,
      missing: source ? this.#missingOf(source) : [],
    }
  }

  #choose(sources: Iterable<AlternateImageSource>, moved: Set<string>): void {
    const before = new Map(this.#active.map(each => [each.key, each]))
    this.#oldest = oldestOf(sources, this.#most.sources)
    const active = fittingOf(this.#oldest, this.#most.targets)
    const isSame = active.length === before.size && active.every((each, at) => isSameSource(each, this.#active[at]))
    this.#active = active
    if (isSame) return
    this.#candidates = new Map()
    this.#namedBy = new Map()
    for (const each of active) {
      moved.add(each.key)
      before.delete(each.key)
      this.#index(each)
    }
    for (const key of before.keys()) moved.add(key)
    for (const ref of this.#found.keys()) this.#stale.add(ref)
    for (const known of [this.#found, this.#shares, this.#present]) known.clear()
  }

  #index({ key, object }: Old): void {
    for (const replacement of object.spec.imageSourceReplacements) {
      const candidate = candidateOf(key, replacement)
      for (const name of repositoryNamesIn(replacement)) add(this.#candidates, name, candidate)
      for (const name of candidate.names?.keys() ?? []) {
        const naming = this.#namedBy.get(name) ?? new Set()
        this.#namedBy.set(name, naming.add(key))
      }
    }
  }

  #candidatesFor({ image }: Container): readonly Candidate[] {
    const name = repositoryNameOf(image)
    return (name !== undefined && this.#candidates.get(name)) || none
  }

  *#compare(ref: string, root: Root, moved: Set<string>): Generator<void> {
    const meant = new Map<Candidate, Meant>()
    const places = placesOf(root)
    const claims: (Claim | undefined)[] = []
    const contested: string[] = []
    for (const container of root.containers) {
      let claim: Claim | undefined
      const others = new Set<string>()
      for (const candidate of this.#candidatesFor(container)) {
        if (candidate.source === claim?.source || others.has(candidate.source)) continue
        let containers = meant.get(candidate)
        if (containers === undefined) {
          containers = containersFor(candidate, root, places)
          meant.set(candidate, containers)
          yield
        }
        if (!covers(containers, container)) continue
        if (claim) others.add(candidate.source)
        else claim = { source: candidate.source, replacement: candidate.replacement }
      }
      claims.push(claim)
      contested.push(...others)
      yield
    }
    // The sources have changed meanwhile: everything is compared again.
    if (this.#areSourcesStale) return void this.#stale.add(ref)
    this.#keep(ref, { root, claims, contested }, moved)
  }

  #keep(ref: string, found: Found, moved: Set<string>): void {
    const { root, claims, contested } = found
    this.#drop(ref, moved)
    this.#found.set(ref, found)
    for (const [at, claim] of claims.entries()) {
      if (!claim) continue
      const container = root.containers[at]!
      const share = this.#shareFor(claim.source)
      const entry = { workload: root.workload, container, retargeted: retargetOf(root, container) }
      share.roster.set(`${root.workload.uid}/${container.name}`, entry)
      share.sorted = undefined
      moved.add(claim.source)
    }
    for (const key of contested) {
      this.#shareFor(key).claimed++
      moved.add(key)
    }
    this.#count(root, 1, moved)
  }

  #drop(ref: string, moved: Set<string>): void {
    const found = this.#found.get(ref)
    if (!found) return
    this.#found.delete(ref)
    const { root, claims, contested } = found
    for (const [at, claim] of claims.entries()) {
      if (!claim) continue
      const share = this.#shareFor(claim.source)
      share.roster.delete(`${root.workload.uid}/${root.containers[at]!.name}`)
      share.sorted = undefined
      moved.add(claim.source)
    }
    for (const key of contested) {
      this.#shareFor(key).claimed--
      moved.add(key)
    }
    this.#count(root, -1, moved)
  }

  #shareFor(key: string): MutableShare {
    const known = this.#shares.get(key)
    if (known) return known
    const share: MutableShare = { roster: new Map(), sorted: undefined, claimed: 0 }
    this.#shares.set(key, share)
    return share
  }

  #count(root: Root, by: number, moved: Set<string>): void {
    for (const place of placesOf(root)) {
      const count = (this.#present.get(place) ?? 0) + by
      if (count > 0) this.#present.set(place, count)
      else this.#present.delete(place)
      for (const key of this.#namedBy.get(place) ?? []) moved.add(key)
    }
  }

  #missingOf({ spec }: AlternateImageSource): string[] {
    const named = spec.imageSourceReplacements.flatMap(({ targets = [] }) => targets.filter(each => each.name))
    const missing = named.filter(target => !this.#present.has(placeOf(target)))
    return [...new Set(missing.map(({ type, name }) => `${kindOf(type.kind)}/${name}`))]
  }
}

/** The containers of one workload that a candidate covers; "" for all of them. */
type Meant = ReadonlySet<string>
const everyContainer: Meant = new Set([""])

function containersFor({ names, selectors }: Candidate, root: Root, places = placesOf(root)): Meant {
  if (!names) return everyContainer
  const found = new Set<string>()
  for (const place of places) for (const name of names.get(place) ?? []) found.add(name)
  for (const target of selectors) if (isSelected(target, root)) found.add(target.container ?? "")
  return found
}

const covers = (meant: Meant, { name }: Container) => meant.has("") || meant.has(name)

function candidateOf(source: string, replacement: Replacement): Candidate {
  const { targets } = replacement
  if (!targets) return { source, replacement, names: undefined, selectors: [] }
  const names = new Map<string, Set<string>>()
  for (const target of targets) {
    if (target.labelSelector || target.name === undefined) continue
    const place = placeOf(target)
    names.set(place, (names.get(place) ?? new Set()).add(target.container ?? ""))
  }
  return { source, replacement, names, selectors: targets.filter(({ labelSelector }) => labelSelector) }
}

/** The first few by age, without sorting the others: a tenant may create any number of them. */
function oldestOf(sources: Iterable<AlternateImageSource>, count: number): Old[] {
  const oldest: Old[] = []
  for (const object of sources) {
    const { uid = "", generation = 0, deletionTimestamp } = object.metadata
    const each: Old = { key: keyOf(object.metadata), uid, generation, age: ageOf(object), object }
    const isFull = oldest.length === count
    if (deletionTimestamp || (isFull && oldest.at(-1)!.age < each.age)) continue
    if (isFull) oldest.pop()
    const at = oldest.findIndex(other => each.age < other.age)
    oldest.splice(at < 0 ? oldest.length : at, 0, each)
  }
  return oldest
}

function fittingOf(oldest: readonly Old[], count: number): readonly Old[] {
  let targets = 0
  const end = oldest.findIndex(({ object }) => {
    for (const set of object.spec.imageSourceReplacements) targets += set.targets?.length ?? 0
    return targets > count
  })
  return end < 0 ? oldest : oldest.slice(0, end)
}

const ageOf = ({ metadata }: AlternateImageSource) => (metadata.creationTimestamp ?? "") + metadata.name
const isSameSource = (a: Old, b: Old | undefined) =>
  a.key === b?.key && a.uid === b.uid && a.generation === b.generation

function sorted(share: MutableShare): readonly Entry[] {
  share.sorted ??= [...share.roster.values()]
    .map(entry => ({ name: `${entry.workload.name}/${entry.container.name}`, entry }))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .map(({ entry }) => entry)
  return share.sorted
}

function add<T>(lists: Map<string, T[]>, name: string, item: T): void {
  const list = lists.get(name)
  if (list) list.push(item)
  else lists.set(name, [item])
}

const none: readonly never[] = []
