import type { ServiceImage, Target } from "#api/v1alpha1/serviceimage/index.ts"
import { Fleet, type FleetRules } from "#core/fleet.ts"
import { type Member, readMember } from "#core/member.ts"
import type { Instant } from "#lib/instant.ts"
import { selects } from "#lib/label-selector.ts"
import type { Cache } from "#runtime/cache/cache.ts"
import type { Wiring } from "#runtime/controller.ts"
import type { KubeObject, Resource } from "#runtime/resource.ts"
import { nameOf, resourceName } from "#runtime/resource.ts"
import { clusterRoleBindings, customResourceDefinitions, grantName, namespaces, roleBindings } from "./resources.ts"

/** What one ServiceImage manages: its fleet, and what an older one keeps from it. */
export type Claim = {
  readonly name: string
  readonly resource: Resource
  readonly cache: Cache<Member>
  readonly fleet: Fleet
  /** Objects it selects too, each with the ServiceImage that has them. */
  readonly conflicts: ReadonlyMap<string, string>
}

type Claimant = Claim & {
  fleet: Fleet
  conflicts: Map<string, string>
  target: Target
  createdAt: string
  rules: string
}
type Watched = { resource: Resource; cache: Cache<Member> & { close(): void }; claimants: Claimant[] }

/**
 * The objects of every target kind, each in the fleet of exactly one ServiceImage: the oldest that selects it. One
 * cache per kind, however many ServiceImages share it, open as long as one of them needs it.
 */
export class Targets {
  readonly #wiring: Wiring
  readonly #kinds
  readonly #namespaces
  readonly #watched = new Map<string, Watched>()
  /** Which ServiceImages asked for a kind, so that they are looked at again when it comes, goes or changes. */
  readonly #wanted = new Map<string, Set<string>>()

  constructor(wiring: Wiring) {
    this.#wiring = wiring
    this.#kinds = wiring.watch(customResourceDefinitions, { project: readKind, indexes: { kind: kind => [kind.id] } })
    this.#kinds.subscribe(({ before, after }) => {
      for (const kind of [before, after])
        for (const name of this.#wanted.get(kind?.id ?? "") ?? []) wiring.enqueue(name)
    })
    this.#namespaces = wiring.watch(namespaces, { project: readNamespace })
    this.#namespaces.subscribe(({ key, initial }) => {
      if (!initial) for (const watched of this.#watched.values()) this.#offerNamespace(watched, key)
    })
    // A grant is acted on at once. Without this it would be found at the next attempt, which may be minutes away.
    const grants = { project: readVersion, fieldSelector: `metadata.name=${grantName}` }
    wiring.watch(roleBindings, grants).subscribe(({ key }) => this.#retry(nameOf(key).namespace))
    wiring.watch(clusterRoleBindings, grants).subscribe(() => this.#retry(undefined))
  }

  /** The claim of a ServiceImage with its fleet under the present rules, or undefined if its kind is not served. */
  claim({ metadata, spec }: ServiceImage, rules: FleetRules, now: Instant): Claim | undefined {
    const { name, creationTimestamp: createdAt = "" } = metadata
    const resource = this.#resolve(name, spec.target)
    const present = this.#find(name)
    if (present && (!resource || resourceId(resource) !== resourceId(present.resource))) this.#leave(name)
    if (!resource) return undefined
    const claimant = this.#find(name)
    if (claimant) return this.#renew(claimant, spec.target, rules, now)
    return this.#join(resource, { name, createdAt, target: spec.target }, rules, now)
  }

  /** The ServiceImage is gone: its objects keep their image, and whoever also selected them takes over. */
  forget(name: string): void {
    this.#leave(name)
    for (const names of this.#wanted.values()) names.delete(name)
  }

  #resolve(name: string, { apiVersion, kind }: Target): Resource | undefined {
    const [group = "", version = ""] = apiVersion.split("/")
    const id = kindId(group, kind)
    const wanted = this.#wanted.get(id) ?? new Set()
    this.#wanted.set(id, wanted.add(name))
    for (const key of this.#kinds.keysBy("kind", id)) {
      const found = this.#kinds.get(key)!
      if (found.isEstablished && found.versions.includes(version))
        return { group, version, kind, plural: found.plural, namespaced: found.namespaced }
    }
    return undefined
  }

  #find(name: string): Claimant | undefined {
    for (const { claimants } of this.#watched.values())
      for (const claimant of claimants) if (claimant.name === name) return claimant
    return undefined
  }

  #renew(claimant: Claimant, target: Target, rules: FleetRules, now: Instant): Claim {
    const selectsOthers = selectorsOf(target) !== selectorsOf(claimant.target)
    const text = JSON.stringify(rules)
    if (text !== claimant.rules || selectsOthers) {
      const before = claimant.fleet
      claimant.fleet = new Fleet(rules, now)
      claimant.rules = text
      for (const key of before.keys()) claimant.fleet.set(key, before.get(key)!)
    }
    if (selectsOthers) {
      claimant.target = target
      this.#offerAll(this.#watched.get(resourceId(claimant.resource))!)
    }
    return claimant
  }

  #join(
    resource: Resource,
    who: Pick<Claimant, "name" | "createdAt" | "target">,
    rules: FleetRules,
    now: Instant,
  ): Claim {
    const watched = this.#watched.get(resourceId(resource)) ?? this.#open(resource)
    const claimant: Claimant = {
      ...who,
      resource,
      cache: watched.cache,
      fleet: new Fleet(rules, now),
      rules: JSON.stringify(rules),
      conflicts: new Map(),
    }
    watched.claimants.push(claimant)
    watched.claimants.sort((a, b) => (a.createdAt + a.name < b.createdAt + b.name ? -1 : 1))
    this.#offerAll(watched)
    return claimant
  }

  #leave(name: string): void {
    for (const [id, watched] of this.#watched) {
      const index = watched.claimants.findIndex(claimant => claimant.name === name)
      if (index < 0) continue
      watched.claimants.splice(index, 1)
      if (watched.claimants.length > 0) this.#offerAll(watched)
      else {
        watched.cache.close()
        this.#watched.delete(id)
      }
    }
  }

  #open(resource: Resource): Watched {
    const cache = this.#wiring.watch<Member>(resource, {
      project: readMember,
      indexes: { namespace: member => [member.namespace] },
    })
    const watched: Watched = { resource, cache, claimants: [] }
    this.#watched.set(resourceId(resource), watched)
    cache.subscribe(({ key, after, initial }) => this.#offer(watched, key, after, initial))
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

  #offerAll(watched: Watched): void {
    for (const [key, member] of watched.cache.entries()) this.#offer(watched, key, member, true)
  }

  #offerNamespace(watched: Watched, namespace: string): void {
    if (!watched.claimants.some(claimant => claimant.target.namespaceSelector)) return
    for (const key of watched.cache.keysBy("namespace", namespace))
      this.#offer(watched, key, watched.cache.get(key), false)
  }

  /** Puts one object where it belongs, and wakes those whose counts it changes. */
  #offer({ claimants }: Watched, key: string, member: Member | undefined, background: boolean): void {
    let owner: Claimant | undefined
    for (const claimant of claimants) {
      const isSelected = member !== undefined && this.#selects(claimant.target, member)
      if (isSelected && !owner) {
        owner = claimant
        claimant.conflicts.delete(key)
        claimant.fleet.set(key, member)
      } else {
        const was = claimant.fleet.get(key) !== undefined || claimant.conflicts.has(key)
        if (!isSelected && !was) continue
        claimant.fleet.delete(key)
        if (isSelected) claimant.conflicts.set(key, owner!.name)
        else claimant.conflicts.delete(key)
      }
      this.#wiring.enqueue(claimant.name, { background })
    }
  }

  #selects({ selector, namespaceSelector }: Target, member: Member): boolean {
    if (selector && !selects(selector, member.labels)) return false
    if (!namespaceSelector || member.namespace === "") return true
    const labels = this.#namespaces.get(member.namespace)?.labels
    return labels !== undefined && selects(namespaceSelector, labels)
  }
}

const selectorsOf = ({ selector, namespaceSelector }: Target) => JSON.stringify([selector, namespaceSelector])
const resourceId = (resource: Resource) => `${resourceName(resource)}/${resource.version}`
const kindId = (group: string, kind: string) => `${kind}.${group}`

const readVersion = ({ metadata }: KubeObject) => ({ resourceVersion: metadata.resourceVersion ?? "" })

const readNamespace = ({ metadata }: KubeObject) => ({
  resourceVersion: metadata.resourceVersion ?? "",
  labels: metadata.labels ?? {},
})

type CustomResourceDefinition = KubeObject & {
  spec: {
    group: string
    scope: string
    names: { kind: string; plural: string }
    versions: { name: string; served: boolean }[]
  }
  status?: { conditions?: { type: string; status: string }[] }
}

function readKind(object: KubeObject) {
  const { metadata, spec, status } = object as CustomResourceDefinition
  return {
    resourceVersion: metadata.resourceVersion ?? "",
    id: kindId(spec.group, spec.names.kind),
    plural: spec.names.plural,
    namespaced: spec.scope === "Namespaced",
    versions: spec.versions.filter(version => version.served).map(version => version.name),
    isEstablished:
      metadata.deletionTimestamp === undefined &&
      (status?.conditions?.some(each => each.type === "Established" && each.status === "True") ?? false),
  }
}
