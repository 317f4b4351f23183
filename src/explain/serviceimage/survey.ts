import type { ServiceImage, Target } from "#api/v1alpha1/serviceimage/index.ts"
import { builtIn, customResourceDefinitions, partsOf, readKind, servedBy } from "#controllers/served-kind.ts"
import { newMemory, pass } from "#controllers/serviceimage/memory.ts"
import { type Counted, observe } from "#controllers/serviceimage/observe.ts"
import { FleetPlaces } from "#controllers/serviceimage/places.ts"
import { type Plan, plan, type Snapshot } from "#controllers/serviceimage/plan.ts"
import { betweens, events, nodes, openIndex, pods, replicaSets } from "#controllers/serviceimage/pods.ts"
import { PreCacheJobs } from "#controllers/serviceimage/pre-cache-jobs.ts"
import { Proofs } from "#controllers/serviceimage/proofs.ts"
import { namespaces, serviceImages } from "#controllers/serviceimage/resources.ts"
import { findProblem } from "#controllers/serviceimage/validate.ts"
import { Fleet, type FleetRules } from "#core/fleet/fleet.ts"
import type { Member } from "#core/fleet/member.ts"
import { historyOf } from "#core/fleet/operation.ts"
import { byPrecedence, type Claimant, type LabelsOfNamespace, leftOutBy, ownerOf } from "#core/fleet/ownership.ts"
import type { PodIndex, Root } from "#core/pods/pod-index.ts"
import { targetReader } from "#core/workloads/target-reader.ts"
import type { Instant } from "#lib/instant.ts"
import { KubeError } from "#runtime/client/errors.ts"
import { type KubeObject, type Resource, resourceName } from "#runtime/resource.ts"
import { type Inventory, kindOf } from "../inventory.ts"
import { stillWiring } from "../still.ts"
import { isUngranted, lacksGrant } from "./granted.ts"

/** One rollout as its controller would see and decide it. */
export type Surveyed = {
  readonly serviceImage: ServiceImage
  /** Undefined if the cluster does not serve its kind. */
  readonly resource: Resource | undefined
  readonly snapshot: Snapshot
  readonly plan: Plan
  /** Undefined where nothing about it can be explained. */
  readonly fleet: Fleet | undefined
  /** Objects that it selects but another ServiceImage has, with the name of that one. */
  readonly conflicts: ReadonlyMap<string, string>
}

export type Survey = {
  readonly now: Instant
  readonly rollouts: readonly Surveyed[]
  readonly labelsOf: LabelsOfNamespace
  /** Other namespaces have a grant and this one has none: a stamp is going to be refused. */
  lacksGrant(namespace: string): boolean
  /** Why nothing is known about the pods. */
  readonly podsMissing: string | undefined
}

type Rival = Claimant & { readonly resource: Resource; readonly target: Target }

/**
 * Decides every rollout of an inventory like a controller that has just started and has declared nothing: the same
 * look, the same plan. What only a running controller remembers (how often it was refused, what it stamped a moment
 * ago) is not in an inventory; the status has most of it.
 */
export function survey(inventory: Inventory, now: Instant): Survey {
  const all = [...inventory.of<ServiceImage & KubeObject>(kindOf(serviceImages)).values()]
  const living = all.filter(({ metadata }) => !metadata.deletionTimestamp)
  const resources = new Map(living.map(each => [each.metadata.name, resourceOf(inventory, each.spec.target)]))
  const labelsOf: LabelsOfNamespace = name => {
    const found = inventory.of(kindOf(namespaces)).get(name)
    return found && (found.metadata.labels ?? {})
  }
  const pods = podsIn(inventory, now)
  const jobs = new PreCacheJobs(stillWiring(inventory, now))
  const proofs = new Proofs(stillWiring(inventory, now), () => {})
  proofs.open()
  const rivals = rivalsOf(living, resources)

  const rollouts = living.map((serviceImage): Surveyed => {
    const { name } = serviceImage.metadata
    const resource = resources.get(name)
    const targets = {
      claim: (_: ServiceImage, rules: FleetRules) =>
        resource && claimOf({ inventory, serviceImage, resource, rivals, labelsOf, pods, proofs, rules, now }),
      jobsOf: (each: ServiceImage) => jobs.of(each),
    }
    const electionID = serviceImage.status?.electionID ?? ""
    const memory = newMemory()
    pass(memory, serviceImage, now)
    const { snapshot, claim } = observe(targets, serviceImage, memory, { now, electionID })!
    const isCounted = snapshot.target.state === "Synced"
    return {
      serviceImage,
      resource,
      snapshot,
      plan: plan(snapshot),
      fleet: isCounted ? claim?.fleet : undefined,
      conflicts: claim?.conflicts ?? new Map(),
    }
  })
  return {
    now,
    rollouts,
    labelsOf,
    lacksGrant: namespace => namespace !== "" && lacksGrant(inventory, namespace),
    podsMissing: typeof pods === "string" && rollouts.some(({ fleet }) => fleet) ? pods : undefined,
  }
}

export function resourceOf(inventory: Inventory, target: Pick<Target, "apiVersion" | "kind">): Resource | undefined {
  const known = builtIn(target)
  if (known) return known
  for (const definition of inventory.of(kindOf(customResourceDefinitions)).values()) {
    const kind = readKind(definition)
    const found = kind.id === partsOf(target).id ? servedBy(kind, target) : undefined
    if (found) return found
  }
  return undefined
}

/** ServiceImages that may have objects, including those that have begun and whose spec became invalid. */
function rivalsOf(all: readonly ServiceImage[], resources: ReadonlyMap<string, Resource | undefined>): Rival[] {
  const rivals = all.flatMap(({ metadata, spec, status }): Rival[] => {
    const { name, creationTimestamp: createdAt = "" } = metadata
    const resource = resources.get(name)
    if (!resource || (findProblem(spec) && !status?.operation)) return []
    return [{ name, createdAt, target: spec.target, resource }]
  })
  return rivals.sort(byPrecedence)
}

type Sight = {
  inventory: Inventory
  serviceImage: ServiceImage
  resource: Resource
  rivals: readonly Rival[]
  labelsOf: LabelsOfNamespace
  pods: Pick<PodIndex, "traceOf" | "placesOf"> | string
  proofs: Proofs
  rules: FleetRules
  now: Instant
}

function claimOf(sight: Sight): Counted {
  const { inventory, serviceImage, resource, rivals, labelsOf, pods, proofs, rules, now } = sight
  const { metadata, spec } = serviceImage
  const fleet = new Fleet(rules, now, { ...historyOf(serviceImage, rules), isStill: true })
  const conflicts = new Map<string, string>()
  const missing = inventory.whyMissing(kindOf(resource))
  const failure = missing === undefined ? undefined : new KubeError("Unreachable", missing)
  const reader = targetReader(spec.target)
  const same = rivals.filter(rival => resourceName(rival.resource) === resourceName(resource))
  for (const [key, object] of inventory.of(kindOf(resource))) {
    const member: Member = reader.read(object)
    const owner = ownerOf(same, member, labelsOf)
    if (owner?.name === metadata.name)
      fleet.set(
        key,
        member,
        typeof pods === "string" ? undefined : pods.traceOf(member),
        proofs.of({ kind: resource.kind, key }),
      )
    else if (owner && !leftOutBy(spec.target, member, labelsOf)) conflicts.set(key, owner.name)
  }
  recollect(fleet, serviceImage, inventory)
  const known = typeof pods === "string" ? { isReliable: false, placesOf: () => undefined } : readable(pods)
  const places = spec.preCache === "Never" ? undefined : new FleetPlaces(fleet, known)
  const cache = { hasSynced: missing === undefined, failure }
  return { resource, fleet, conflicts, places, cache, areProofsKnown: true }
}

/** The status has the refusals of the controller, as far as it has room for them. */
function recollect(fleet: Fleet, { status }: ServiceImage, inventory: Inventory): void {
  const all = (status?.tierStatus ?? []).flatMap(({ failures }) => failures)
  // A message is about the first example; the others most likely have the same.
  const wordsOf = (reason: string) => all.find(each => each.reason === reason && each.message)?.message ?? ""
  for (const { reason, examples } of all) {
    if (reason === "Forbidden")
      for (const each of [...fleet.namespaces()])
        if (isUngranted(inventory, each)) fleet.refuse({ namespace: each }, { reason, message: "" })
    for (const key of examples) {
      const state = fleet.standing(key)?.state
      const isUnstamped = state === "Stale" || state === "Blank"
      if (isUnstamped && !fleet.refusalOf(key)) fleet.refuse({ key }, { reason, message: wordsOf(reason) })
    }
  }
}

const readable = (pods: Pick<PodIndex, "placesOf">) => ({
  isReliable: true,
  placesOf: (root: Root) => pods.placesOf(root),
})

/** How to find the pods of an object, or why that is not possible. */
function podsIn(inventory: Inventory, now: Instant): PodIndex | string {
  for (const resource of [pods, nodes, events, replicaSets, ...betweens]) {
    const missing = inventory.whyMissing(kindOf(resource))
    if (missing !== undefined) return `${resource.plural}: ${missing}`
  }
  return openIndex(stillWiring(inventory, now), () => {}).index
}
