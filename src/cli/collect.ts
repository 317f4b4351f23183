import type { ServiceImage, Target } from "#api/v1alpha1/serviceimage/index.ts"
import { alternateImageSources, workloadKinds } from "#controllers/alternateimagesource/resources.ts"
import { betweens, events, nodes, podFields, pods, replicaSets } from "#controllers/serviceimage/pods.ts"
import { customResourceDefinitions, namespaces, serviceImages } from "#controllers/serviceimage/resources.ts"
import {
  neededOfPod as neededOfPulls,
  neededOfSource,
  neededOfWorkload,
  neededToAsk,
} from "#explain/alternateimagesource/needed.ts"
import { Inventory, kindOf } from "#explain/inventory.ts"
import { grantFields, grants } from "#explain/serviceimage/granted.ts"
import {
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
import { cut } from "#explain/shapes.ts"
import { both, type Shape } from "#lib/shape.ts"
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
  /** ServiceImages, the objects that they stamp, and the pods of those. */
  rollouts?: {
    /** Which targets, once the ServiceImages and the kinds are known; without it, those of every ServiceImage. */
    targets?: (seen: Inventory) => readonly Target[]
  }
  /** AlternateImageSources and, where there is one, workloads and pods. */
  sources?: {
    /** Without it, every namespace. */
    namespace?: string | undefined
    /** Workloads and pods are read even where there is no source, and pods that have succeeded too. */
    isAboutPod?: boolean
    /** With the names of pull secrets and service accounts. */
    asks?: boolean
  }
  signal?: AbortSignal
}

type ListOf = {
  resource: Resource
  options?: ListOptions
  shape: Shape
  /** Each of these reads the objects in its own way. */
  targets?: readonly Target[]
  /** Without this list there is no answer; without another one there is a partial answer. */
  isVital?: boolean
}

const definitions: readonly ListOf[] = [
  { resource: customResourceDefinitions, shape: neededOfDefinition },
  { resource: namespaces, shape: neededOfNamespace, options: { metadataOnly: true } },
  ...grants.map(resource => ({
    resource,
    shape: neededOfOwner,
    options: { fieldSelector: grantFields, metadataOnly: true },
  })),
]

/**
 * Reads only what explanations need from a cluster, page by page, so that the number of objects is not limited. The lists
 * that decide what else is read are kept in `seen`.
 */
export async function* collect(client: Client, wanted: Wanted, seen = new Inventory()): AsyncGenerator<Piece> {
  const { rollouts, sources, signal } = wanted
  async function* first(list: ListOf): AsyncGenerator<Piece> {
    for await (const piece of read(client, list, signal)) {
      keep(seen, piece)
      yield piece
    }
  }
  const options = { namespace: sources?.namespace }
  if (sources) yield* first({ resource: alternateImageSources, shape: neededOfSource, options, isVital: !rollouts })
  if (rollouts) {
    // A cluster may have one kind only. Where neither can be read, the first error stands.
    const isVital = seen.whyMissing(kindOf(alternateImageSources)) !== undefined
    yield* first({ resource: serviceImages, shape: neededOfServiceImage, isVital })
    for (const list of definitions) yield* first(list)
  }
  const lists = [
    ...(rollouts ? targetLists(seen, rollouts.targets?.(seen) ?? targetsIn(seen)) : []),
    ...(sources ? sourceLists(seen, sources) : []),
  ]
  for (const list of joined(lists)) yield* read(client, list, signal)
}

export function keep(inventory: Inventory, piece: Piece): void {
  if ("list" in piece) inventory.list(piece.list)
  else if ("failed" in piece) inventory.fail(piece.failed, piece.message)
  else inventory.add(piece.object)
}

export const targetsIn = (seen: Inventory): Target[] =>
  [...seen.of<ServiceImage & KubeObject>(kindOf(serviceImages)).values()].map(({ spec }) => spec.target)

/** The targets, and the objects that they own. */
function targetLists(seen: Inventory, targets: readonly Target[]): ListOf[] {
  const lists = targets.flatMap(target => {
    const resource = resourceOf(seen, target)
    return resource ? [{ resource, shape: {}, targets: [target] }] : []
  })
  if (lists.length === 0) return []
  return [
    ...lists,
    { resource: nodes, shape: neededOfNode },
    { resource: pods, shape: neededOfPod, options: { fieldSelector: podFields.pods } },
    { resource: events, shape: neededOfEvent, options: { fieldSelector: podFields.events } },
    { resource: replicaSets, shape: neededOfReplicaSet },
    ...betweens.map(resource => ({ resource, shape: neededOfOwner, options: { metadataOnly: true } })),
  ]
}

/** What an AlternateImageSource covers. */
function sourceLists(seen: Inventory, { namespace, isAboutPod, asks }: NonNullable<Wanted["sources"]>): ListOf[] {
  if (!isAboutPod && seen.of(kindOf(alternateImageSources)).size === 0) return []
  const more = asks ? neededToAsk : {}
  const running = isAboutPod ? {} : { fieldSelector: podFields.pods }
  return [
    { resource: pods, shape: both(neededOfPulls, more), options: { namespace, ...running } },
    ...workloadKinds.map(({ resource }) => ({
      resource,
      shape: both(neededOfWorkload, more),
      options: { namespace },
    })),
  ]
}

/** Each kind is read once, with everything that is needed of it. */
const joined = (lists: readonly ListOf[]): ListOf[] => [
  ...Map.groupBy(lists, ({ resource }) => `${resourceName(resource)}/${resource.version}`)
    .values()
    .map(join),
]

function join(same: readonly ListOf[]): ListOf {
  const { resource, options } = same[0]!
  const targets = same.flatMap(each => each.targets ?? [])
  const { namespace, fieldSelector } = options ?? {}
  const isAlike = fieldSelector !== undefined && same.every(each => each.options?.fieldSelector === fieldSelector)
  return {
    resource,
    shape: same.map(({ shape }) => shape).reduce(both),
    ...(targets.length > 0 && { targets }),
    options: {
      namespace,
      ...(isAlike && { fieldSelector }),
      ...(same.every(each => each.options?.metadataOnly) && { metadataOnly: true }),
    },
  }
}

async function* read(client: Client, list: ListOf, signal?: AbortSignal): AsyncGenerator<Piece> {
  const { resource, options, shape, targets, isVital = false } = list
  const kind = kindOf(resource)
  const cutDown = targets ? cutTarget(targets, shape) : cut(shape)
  let isBegun = false
  try {
    for await (const { items } of pagesOf(client, resource, options, signal)) {
      if (!isBegun) yield { list: kind }
      isBegun = true
      for (const object of items) yield { object: cutDown({ ...object, ...kind }) }
    }
  } catch (error) {
    if (isVital || isBegun || !isFailure(error, "Forbidden", "NotFound")) throw error
    yield { failed: kind, message: error.message }
  }
}
