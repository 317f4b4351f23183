import type { ServiceImage, Target } from "#api/v1alpha1/serviceimage/index.ts"
import { Fleet, type FleetRules } from "#core/fleet/fleet.ts"
import type { Member } from "#core/fleet/member.ts"
import { historyOf } from "#core/fleet/operation.ts"
import { byPrecedence, leftOutBy, ownerOf } from "#core/fleet/ownership.ts"
import { isHoldable } from "#core/in-place/own-hold.ts"
import { type TargetReader, targetReader } from "#core/workloads/target-reader.ts"
import type { Instant } from "#lib/instant.ts"
import type { WatchedCache } from "#runtime/cache/cache.ts"
import type { Wiring } from "#runtime/controller.ts"
import type { KubeObject, Resource } from "#runtime/resource.ts"
import { apiVersionOf, resourceName } from "#runtime/resource.ts"
import { watchGrants } from "../grants.ts"
import { builtIn, customResourceDefinitions, partsOf, readKind, servedBy } from "../served-kind.ts"
import { Failover } from "./failover.ts"
import { FleetPlaces } from "./places.ts"
import { Pods } from "./pods.ts"
import { PreCacheJobs } from "./pre-cache-jobs.ts"
import { Proofs, type Workload } from "./proofs.ts"
import { canaries, namespaces } from "./resources.ts"

/** What one ServiceImage manages: its fleet, and the selected objects that another ServiceImage has. */
export type Claim = {
  readonly name: string
  readonly resource: Resource
  readonly reader: TargetReader
  readonly cache: WatchedCache<Member>
  readonly fleet: Fleet
  /** Objects that it selects but another ServiceImage has, with the name of that one. */
  readonly conflicts: ReadonlyMap<string, string>
  /** Where its pods run, if it asks for pre-caching. */
  readonly places: Pick<FleetPlaces, "isKnown" | "of"> | undefined
  /** Which of its objects have a Canary is known. */
  readonly areProofsKnown: boolean
}

type Claimant = Omit<Claim, "areProofsKnown"> & {
  fleet: Fleet
  conflicts: Map<string, string>
  places: FleetPlaces | undefined
  target: Target
  createdAt: string
  rules: string
}

/** The objects of one kind, read in one way: which field holds the image differs between ServiceImages. */
type Watched = {
  id: string
  resource: Resource
  reader: TargetReader
  cache: WatchedCache<Member>
  /** By uid, to find the object whose pods have changed. */
  keys: Map<string, string>
  claimants: Claimant[]
  /** The ServiceImages that need it: those that claim its objects, and those that will once this process leads. */
  users: Set<string>
}

/**
 * The objects of every target kind. Each is in the fleet of exactly one ServiceImage: the one that stamped it last if
 * that one still selects it, otherwise the oldest that does. There is one cache per kind and way of reading it.
 * ServiceImages share it, and it is open as long as one of them needs it.
 */
export class Targets {
  readonly #wiring: Wiring
  readonly #kinds
  readonly #namespaces
  readonly #pods: Pods
  readonly #failover: Failover
  readonly #jobs: PreCacheJobs
  readonly #proofs: Proofs
  readonly #watched = new Map<string, Watched>()
  /** Every claimant of a resource, however it reads it, in the order of precedence. */
  readonly #claimants = new Map<string, Claimant[]>()
  /** Which ServiceImages asked for a kind. They are looked at again when the kind is created, deleted or changed. */
  readonly #wanted = new Map<string, Set<string>>()

  constructor(wiring: Wiring) {
    this.#wiring = wiring
    this.#kinds = wiring.watch(customResourceDefinitions, { project: readKind, indexes: { kind: kind => [kind.id] } })
    this.#kinds.subscribe(({ before, after }) => {
      for (const kind of [before, after])
        for (const name of this.#wanted.get(kind?.id ?? "") ?? []) wiring.enqueue(name)
      if ((after ?? before)!.id === canaryKind.id) this.#lookForCanaries()
    })
    this.#kinds.synced().then(
      () => this.#lookForCanaries(),
      () => {},
    )
    this.#namespaces = wiring.watch(namespaces, { project: readNamespace })
    this.#namespaces.subscribe(({ key, initial }) => {
      if (!initial) for (const watched of this.#watched.values()) this.#offerNamespace(watched, key)
    })
    watchGrants(wiring, namespace => this.#retry(namespace))
    this.#pods = new Pods(wiring)
    this.#pods.subscribe(uid => this.#traced(uid))
    this.#failover = new Failover(wiring, uid => this.#traced(uid))
    this.#jobs = new PreCacheJobs(wiring)
    this.#proofs = new Proofs(wiring, target => this.#proven(target))
  }

  /** The claim of a ServiceImage with its fleet under the present rules, or undefined if its kind is not served. */
  claim(serviceImage: ServiceImage, rules: FleetRules, now: Instant): Claim | undefined {
    const { metadata, spec } = serviceImage
    const { name, creationTimestamp: createdAt = "" } = metadata
    const resource = this.#resolve(name, spec.target)
    const present = this.#find(name)
    if (present && (!resource || watchId(resource, spec.target) !== watchId(present.resource, present.target)))
      this.#leave(name)
    if (!resource) return undefined
    const known = this.#find(name)
    const claimant = known
      ? this.#renew(known, spec.target, rules, now)
      : this.#join(
          resource,
          { name, createdAt, target: spec.target, fleet: this.#fleetOf(serviceImage, rules, now) },
          rules,
        )
    if (spec.preCache === "Never") claimant.places = undefined
    else claimant.places ??= new FleetPlaces(claimant.fleet, this.#pods)
    return { ...claimant, areProofsKnown: !builtIn(spec.target) || this.#areProofsKnown }
  }

  #fleetOf(serviceImage: ServiceImage, rules: FleetRules, now: Instant): Fleet {
    return new Fleet(rules, now, historyOf(serviceImage, rules))
  }

  /** Its jobs for pre-caching, if it has any or is going to. */
  jobsOf(serviceImage: ServiceImage) {
    return this.#jobs.of(serviceImage)
  }

  /** The images of any pod; undefined where it is not known. */
  imagesAt(pod: string): readonly string[] | undefined {
    return this.#pods.imagesAt(pod)
  }

  /** Opens the cache that a claim would read, without a claim. */
  warm({ metadata: { name }, spec: { target } }: ServiceImage): void {
    const resource = this.#resolve(name, target)
    const id = resource && watchId(resource, target)
    for (const watched of this.#watched.values()) if (watched.users.has(name) && watched.id !== id) this.#leave(name)
    if (resource) (this.#watched.get(id!) ?? this.#open(resource, target)).users.add(name)
  }

  /** Whether its objects were read before this call: they may be older than the ServiceImage. */
  isOpen({ metadata: { name }, spec: { target } }: ServiceImage): boolean {
    const resource = this.#resolve(name, target)
    return resource !== undefined && this.#watched.has(watchId(resource, target))
  }

  /** The ServiceImage was deleted. Its objects keep their image, and another one that selects them takes over. */
  forget(name: string): void {
    this.#leave(name)
    this.#jobs.forget(name)
    for (const names of this.#wanted.values()) names.delete(name)
  }

  #resolve(name: string, target: Target): Resource | undefined {
    const known = builtIn(target)
    if (known) return known
    const { id } = partsOf(target)
    const wanted = this.#wanted.get(id) ?? new Set()
    this.#wanted.set(id, wanted.add(name))
    for (const key of this.#kinds.keysBy("kind", id)) {
      const found = servedBy(this.#kinds.get(key)!, target)
      if (found) return found
    }
    return undefined
  }

  #find(name: string): Claimant | undefined {
    for (const { claimants } of this.#watched.values())
      for (const claimant of claimants) if (claimant.name === name) return claimant
    return undefined
  }

  #renew(claimant: Claimant, target: Target, rules: FleetRules, now: Instant): Claimant {
    const selectsOthers = selectorsOf(target) !== selectorsOf(claimant.target)
    const text = JSON.stringify(rules)
    if (text !== claimant.rules || selectsOthers) {
      claimant.fleet.renew(rules, now)
      claimant.places?.renew()
      claimant.rules = text
    }
    if (selectsOthers) {
      claimant.target = target
      this.#offerAll(resourceName(claimant.resource))
    }
    return claimant
  }

  #join(
    resource: Resource,
    who: Pick<Claimant, "name" | "createdAt" | "target" | "fleet">,
    rules: FleetRules,
  ): Claimant {
    const watched = this.#watched.get(watchId(resource, who.target)) ?? this.#open(resource, who.target)
    const claimant: Claimant = {
      ...who,
      resource,
      reader: watched.reader,
      cache: watched.cache,
      rules: JSON.stringify(rules),
      conflicts: new Map(),
      places: undefined,
    }
    watched.claimants.push(claimant)
    watched.users.add(who.name)
    const all = [...(this.#claimants.get(resourceName(resource)) ?? []), claimant]
    all.sort(byPrecedence)
    this.#claimants.set(resourceName(resource), all)
    this.#offerAll(resourceName(resource))
    return claimant
  }

  #leave(name: string): void {
    for (const [id, watched] of this.#watched) {
      if (!watched.users.delete(name)) continue
      watched.claimants = watched.claimants.filter(claimant => claimant.name !== name)
      if (watched.users.size === 0) {
        watched.cache.close()
        this.#watched.delete(id)
      }
      const kind = resourceName(watched.resource)
      const left = (this.#claimants.get(kind) ?? []).filter(claimant => claimant.name !== name)
      if (left.length > 0) this.#claimants.set(kind, left)
      else this.#claimants.delete(kind)
      this.#offerAll(kind)
    }
    this.#lookForCanaries()
    if (this.#watched.size > 0) return
    this.#pods.close()
    this.#failover.close()
  }

  #open(resource: Resource, target: Target): Watched {
    const reader = targetReader(target)
    const cache = this.#wiring.watch<Member>(resource, {
      project: reader.read,
      indexes: { namespace: member => [member.namespace] },
    })
    const id = watchId(resource, target)
    const watched: Watched = { id, resource, reader, cache, keys: new Map(), claimants: [], users: new Set() }
    this.#watched.set(id, watched)
    this.#pods.open()
    this.#failover.open()
    this.#lookForCanaries()
    cache.subscribe(({ key, before, after, initial }) => {
      if (before && before.uid !== after?.uid) {
        watched.keys.delete(before.uid)
        this.#failover.forget(before)
      }
      if (after) watched.keys.set(after.uid, key)
      this.#offer(watched, key, after, initial)
    })
    const lookAgain = () => {
      for (const { name } of watched.claimants) this.#wiring.enqueue(name)
    }
    cache.synced().then(lookAgain, () => {})
    return watched
  }

  #retry(namespace: string | undefined): void {
    for (const { claimants } of this.#watched.values())
      for (const { fleet, name } of claimants) {
        for (const each of namespace === undefined ? [...fleet.namespaces()] : [namespace]) fleet.retry(each)
        this.#wiring.enqueue(name)
      }
  }

  #traceOf(member: Member) {
    return this.#failover.soften(this.#pods.traceOf(member), member)
  }

  /** The pods of an object have changed, or their trace became reliable. */
  #traced(uid: string): void {
    for (const { keys, claimants } of this.#watched.values()) {
      const key = keys.get(uid)
      if (key === undefined) continue
      for (const { fleet, name, places } of claimants) {
        const member = fleet.get(key)
        if (!member) continue
        fleet.trace(key, this.#traceOf(member))
        places?.traced(key)
        this.#wiring.enqueue(name)
      }
    }
  }

  /** Only where the kind is served, and as long as the objects of a ServiceImage may have a Canary. */
  #lookForCanaries(): void {
    const isServed = [...this.#kinds.keysBy("kind", canaryKind.id)].some(key =>
      servedBy(this.#kinds.get(key)!, canaryKind),
    )
    const isNeeded = [...this.#watched.values()].some(({ resource }) => isHoldable(resource.kind))
    if (isServed && isNeeded) this.#proofs.open()
    else this.#proofs.close()
    this.#proven(undefined)
  }

  /** Where the definitions of kinds cannot be read, whether Canaries are served is not known either. */
  get #areProofsKnown(): boolean {
    return (this.#kinds.hasSynced || this.#kinds.failure !== undefined) && this.#proofs.isKnown
  }

  /** The Canary of a workload has changed; without one: it is known for all of them. */
  #proven(target: Workload | undefined): void {
    for (const { resource, claimants } of this.#watched.values()) {
      if (target && resource.kind !== target.kind) continue
      for (const { fleet, name } of claimants) {
        if (target && fleet.get(target.key)) fleet.proof(target.key, this.#proofs.of(target))
        if (!target || fleet.get(target.key)) this.#wiring.enqueue(name)
      }
    }
  }

  #offerAll(kind: string): void {
    for (const watched of this.#watched.values())
      if (resourceName(watched.resource) === kind)
        for (const [key, member] of watched.cache.entries()) this.#offer(watched, key, member, true)
  }

  #offerNamespace(watched: Watched, namespace: string): void {
    const all = this.#claimants.get(resourceName(watched.resource)) ?? []
    if (!all.some(claimant => claimant.target.namespaceSelector)) return
    for (const key of watched.cache.keysBy("namespace", namespace))
      this.#offer(watched, key, watched.cache.get(key), false)
  }

  /** Puts one object into the fleet it belongs to, and wakes the ServiceImages whose counts it changes. */
  #offer({ resource, claimants }: Watched, key: string, member: Member | undefined, background: boolean): void {
    const all = this.#claimants.get(resourceName(resource)) ?? []
    const owner = member && ownerOf(all, member, this.#labelsOf)
    for (const claimant of claimants) {
      if (claimant === owner) {
        claimant.conflicts.delete(key)
        const isNew = claimant.fleet.get(key)?.uid !== member!.uid
        if (isNew)
          claimant.fleet.set(key, member!, this.#traceOf(member!), this.#proofs.of({ kind: resource.kind, key }))
        else claimant.fleet.set(key, member!)
        if (isNew) claimant.places?.traced(key)
        else claimant.places?.changed(key)
      } else {
        const isSelected = member !== undefined && !leftOutBy(claimant.target, member, this.#labelsOf)
        const was = claimant.fleet.get(key) !== undefined || claimant.conflicts.has(key)
        if (!isSelected && !was) continue
        claimant.fleet.delete(key)
        claimant.places?.traced(key)
        if (isSelected) claimant.conflicts.set(key, owner!.name)
        else claimant.conflicts.delete(key)
      }
      this.#wiring.enqueue(claimant.name, { background })
    }
  }

  readonly #labelsOf = (namespace: string) => this.#namespaces.get(namespace)?.labels
}

const canaryKind = {
  ...partsOf({ apiVersion: apiVersionOf(canaries), kind: canaries.kind }),
  apiVersion: apiVersionOf(canaries),
}

const watchId = (resource: Resource, { image, health }: Target) =>
  `${resourceName(resource)}/${resource.version} ${JSON.stringify([image, health])}`
const selectorsOf = ({ selector, namespaceSelector }: Target) => JSON.stringify([selector, namespaceSelector])

const readNamespace = ({ metadata }: KubeObject) => ({
  resourceVersion: metadata.resourceVersion ?? "",
  labels: metadata.labels ?? {},
})
