import { namesOf } from "#api/names.ts"
import type { Permission } from "#runtime/controller.ts"
import { core, resourceOf } from "#runtime/resource.ts"
import { grantPermissions } from "../grants.ts"

export const containerRecreateRequests = resourceOf(namesOf("ContainerRecreateRequest"))
export const pods = core("pods", "Pod")

/** Pods are set to not ready only where a namespace has granted it: see the roles. No container is stopped from here. */
export const permissions: readonly Permission[] = [
  { resource: containerRecreateRequests, verbs: ["list", "watch", "delete"] },
  { resource: containerRecreateRequests, subresource: "status", verbs: ["update"] },
  { resource: pods, verbs: ["get", "list", "watch"] },
  { resource: pods, subresource: "status", verbs: ["patch"] },
  ...grantPermissions,
]
