import { namesOf } from "#api/names.ts"
import type { Permission } from "#runtime/controller.ts"
import { core, resourceOf } from "#runtime/resource.ts"
import { grantPermissions } from "../grants.ts"

export const imagePullJobs = resourceOf(namesOf("ImagePullJob"))
export const nodeImages = resourceOf(namesOf("NodeImage"))
export const nodes = core("nodes", "Node", false)
export const pods = core("pods", "Pod")
export const secrets = core("secrets", "Secret")

/** Secrets are read by name, and only where a namespace has granted it: see the roles. */
export const permissions: readonly Permission[] = [
  { resource: imagePullJobs, verbs: ["list", "watch", "delete"] },
  { resource: imagePullJobs, subresource: "status", verbs: ["update"] },
  { resource: nodeImages, verbs: ["list", "watch"] },
  { resource: nodes, verbs: ["list", "watch"] },
  { resource: pods, verbs: ["list", "watch"] },
  { resource: secrets, verbs: ["get"] },
  ...grantPermissions,
]
