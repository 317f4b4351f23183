import { namesOf } from "#api/names.ts"
import type { Permission } from "#runtime/controller.ts"
import { resourceOf } from "#runtime/resource.ts"

export const imageListPullJobs = resourceOf(namesOf("ImageListPullJob"))
export const imagePullJobs = resourceOf(namesOf("ImagePullJob"))

export const permissions: readonly Permission[] = [
  { resource: imageListPullJobs, verbs: ["list", "watch", "delete"] },
  { resource: imageListPullJobs, subresource: "status", verbs: ["update"] },
  { resource: imagePullJobs, verbs: ["list", "watch", "create", "patch", "delete"] },
]
