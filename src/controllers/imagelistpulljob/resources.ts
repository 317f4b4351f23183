import { imageListPullJobNames } from "#api/v1alpha1/imagelistpulljob/names.ts"
import { imagePullJobNames } from "#api/v1alpha1/imagepulljob/names.ts"
import type { Permission } from "#runtime/controller.ts"
import { resourceOf } from "#runtime/resource.ts"

export const imageListPullJobs = resourceOf(imageListPullJobNames)
export const imagePullJobs = resourceOf(imagePullJobNames)

export const permissions: readonly Permission[] = [
  { resource: imageListPullJobs, verbs: ["list", "watch", "delete"] },
  { resource: imageListPullJobs, subresource: "status", verbs: ["update"] },
  { resource: imagePullJobs, verbs: ["list", "watch", "create", "patch", "delete"] },
]
