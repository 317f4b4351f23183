import { namesOf } from "#api/names.ts"
import type { Permission } from "#runtime/controller.ts"
import { core, resourceOf } from "#runtime/resource.ts"

export const nodeImages = resourceOf(namesOf("NodeImage"))
export const nodes = core("nodes", "Node", false)

export const permissions: readonly Permission[] = [
  { resource: nodeImages, verbs: ["get", "list", "watch", "create", "update", "delete"] },
  { resource: nodes, verbs: ["list", "watch"] },
]
