import { namesOf } from "#api/names.ts"
import type { Permission } from "#runtime/controller.ts"
import { resourceOf } from "#runtime/resource.ts"

export const nodeImages = resourceOf(namesOf("NodeImage"))

/** An admission policy lets an agent write the status of its own node's NodeImage only. */
export const permissions: readonly Permission[] = [
  { resource: nodeImages, verbs: ["list", "watch"] },
  { resource: nodeImages, subresource: "status", verbs: ["update"] },
]
