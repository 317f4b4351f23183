import type { ServiceImage, Target } from "#api/v1alpha1/serviceimage/index.ts"
import { betweens, events, nodes, podFields, pods, replicaSets } from "#controllers/serviceimage/pods.ts"
import { customResourceDefinitions, namespaces, serviceImages } from "#controllers/serviceimage/resources.ts"
import { Inventory, kindOf } from "#explain/inventory.ts"
import { grantFields, grants } from "#explain/serviceimage/granted.ts"
import {
  cut,
  cutTarget,
  neededOfDefinition,
  neededOfEvent,
  neededOfNamespace,
  neededOfNode,
  neededOfOwner,
  neededOfPod,
  neededOfReplicaSet,
  neededOfServiceImage,
} from "#explain/serviceimage/needed.ts"
import { resourceOf } from "#explain/serviceimage/survey.ts"
import type { Client, ListOptions } from "#runtime/client/client.ts"
import { isFailure } from "#runtime/client/errors.ts"
import { pagesOf } from "#runtime/client/list-all.ts"
import { type KubeObject, type Resource, resourceName } from "#runtime/resource.ts"

/** One step of reading a cluster: a list begins, an object of it, or a list that may not be read. */
export type Piece =
  | { list: { apiVersion: string; kind: string } }
  | { object: KubeObject }
  | { failed: { apiVersion: string; kind: string }; message: string }

export type Wanted = {
  /** Which targets, once the ServiceImages and the kinds are known; without it, those of every ServiceImage. */
  targets?: (seen: Inventory) => readonly Target[]
  signal?: AbortSignal
}

type ListOf = {
  resource: Resource
  options?: ListOptions
  cut(object: KubeObject): KubeObject
}

const basics: readonly ListOf[] = [
  { resource: serviceImages, cut: cut(neededOfServiceImage) },
  { resource: customResourceDefinitions, cut: cut(neededOfDefinition) },
  { resource: namespaces, cut: cut(neededOfNamespace), options: { metadataOnly: true } },
  ...grants.map(resource => ({
    resource,
    cut: cut(neededOfOwner),
    options: { fieldSelector: grantFields, metadataOnly: true },
  })),
]

/** Reads only what the planner needs from a cluster, page by page, so that the number of objects is not limited. */
export async function* collect(client: Client, wanted: Wanted = {}): AsyncGenerator<Piece> {
  const seen = new Inventory()
  for (const list of basics)
    for await (const piece of read(client, list, wanted.signal)) {
      keep(seen, piece)
      yield piece
    }
  const targets = wanted.targets?.(seen) ?? targetsIn(seen)
  const lists = listsOf(seen, targets)
  if (lists.length === 0) return
  for (const list of [...lists, ...behind(lists)]) yield* read(client, list, wanted.signal)
}

export function keep(inventory: Inventory, piece: Piece): void {
  if ("list" in piece) inventory.list(piece.list)
  else if ("failed" in piece) inventory.fail(piece.failed, piece.message)
  else inventory.add(piece.object)
}

export const targetsIn = (seen: Inventory): Target[] =>
  [...seen.of<ServiceImage & KubeObject>(kindOf(serviceImages)).values()].map(({ spec }) => spec.target)

function listsOf(seen: Inventory, targets: readonly Target[]): ListOf[] {
  const byResource = new Map<string, { resource: Resource; targets: Target[] }>()
  for (const target of targets) {
    const resource = resourceOf(seen, target)
    if (!resource) continue
    const id = `${resourceName(resource)}/${resource.version}`
    const known = byResource.get(id) ?? { resource, targets: [] }
    known.targets.push(target)
    byResource.set(id, known)
  }
  return [...byResource.values()].map(({ resource, targets }) => ({ resource, cut: cutTarget(targets) }))
}

/** The objects that the targets own. A workload that is a target itself was read already. */
function behind(lists: readonly ListOf[]): ListOf[] {
  const isIn = (resource: Resource) =>
    lists.some(
      ({ resource: { group, kind, version } }) =>
        kind === resource.kind && group === resource.group && version === resource.version,
    )
  return [
    { resource: nodes, cut: cut(neededOfNode) },
    { resource: pods, cut: cut(neededOfPod), options: { fieldSelector: podFields.pods } },
    { resource: events, cut: cut(neededOfEvent), options: { fieldSelector: podFields.events } },
    { resource: replicaSets, cut: cut(neededOfReplicaSet) },
    ...betweens
      .filter(resource => !isIn(resource))
      .map(resource => ({ resource, cut: cut(neededOfOwner), options: { metadataOnly: true } })),
  ]
}

async function* read(client: Client, { resource, options, cut }: ListOf, signal?: AbortSignal): AsyncGenerator<Piece> {
  const kind = kindOf(resource)
  let isBegun = false
  try {
    for await (const { items } of pagesOf(client, resource, options, signal)) {
      if (!isBegun) yield { list: kind }
      isBegun = true
      for (const object of items) yield { object: cut({ ...object, ...kind }) }
    }
  } catch (error) {
    // Without the ServiceImages there is no answer; without another list there is a partial one.
    if (resource === serviceImages || isBegun || !isFailure(error, "Forbidden", "NotFound")) throw error
    yield { failed: kind, message: error.message }
  }
}
