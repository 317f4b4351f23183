import type { ServiceImage, Target } from "#api/v1alpha1/serviceimage/index.ts"
import { customResourceDefinitions } from "#controllers/served-kind.ts"
import { betweens, events, nodes, podFields, pods, replicaSets } from "#controllers/serviceimage/pods.ts"
import { hasPreCache, imagePullJobs } from "#controllers/serviceimage/pre-cache-jobs.ts"
import { canaries, namespaces, serviceImages } from "#controllers/serviceimage/resources.ts"
import { containerRecreateRequests } from "#controllers/serviceimage/stopped.ts"
import { isHoldable } from "#core/in-place/own-hold.ts"
import { apiVersionOf, type KubeObject } from "#runtime/resource.ts"
import { type Inventory, kindOf } from "../inventory.ts"
import type { ListOf, Reading } from "../reading.ts"
import { grantFields, grants } from "./granted.ts"
import {
  neededOfCanary,
  neededOfDefinition,
  neededOfEvent,
  neededOfJob,
  neededOfNamespace,
  neededOfNode,
  neededOfOwner,
  neededOfPod,
  neededOfReplicaSet,
  neededOfRequest,
  neededOfServiceImage,
} from "./needed.ts"
import { resourceOf } from "./survey.ts"

/**
 * ServiceImages, the objects that they stamp, and the pods of those. `targets` says which objects, once the ServiceImages
 * and the kinds are known; without it, those of every ServiceImage.
 */
export const readRollouts = (targets: (seen: Inventory) => readonly Target[] = targetsIn): Reading => ({
  own: { resource: serviceImages, shape: neededOfServiceImage },
  first: definitions,
  rest: seen => targetLists(seen, targets(seen)),
})

export const targetsIn = (seen: Inventory): Target[] =>
  [...seen.of<ServiceImage & KubeObject>(kindOf(serviceImages)).values()].map(({ spec }) => spec.target)

const haveCanaries = (seen: Inventory, targets: readonly Target[]) =>
  targets.some(({ kind }) => isHoldable(kind)) &&
  resourceOf(seen, { apiVersion: apiVersionOf(canaries), kind: canaries.kind }) !== undefined

const wantPreCache = (seen: Inventory) =>
  [...seen.of<ServiceImage & KubeObject>(kindOf(serviceImages)).values()].some(hasPreCache)

const definitions: readonly ListOf[] = [
  { resource: customResourceDefinitions, shape: neededOfDefinition },
  { resource: namespaces, shape: neededOfNamespace, options: { metadataOnly: true } },
  ...grants.map(resource => ({
    resource,
    shape: neededOfOwner,
    options: { fieldSelector: grantFields, metadataOnly: true },
  })),
]

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
    { resource: containerRecreateRequests, shape: neededOfRequest },
    ...(haveCanaries(seen, targets) ? [{ resource: canaries, shape: neededOfCanary }] : []),
    ...(wantPreCache(seen) ? [{ resource: imagePullJobs, shape: neededOfJob }] : []),
    ...betweens.map(resource => ({ resource, shape: neededOfOwner, options: { metadataOnly: true } })),
  ]
}
