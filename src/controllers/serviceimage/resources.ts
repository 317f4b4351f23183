import { namesOf } from "#api/names.ts"
import { workloadKinds } from "#core/workloads/kinds.ts"
import type { Permission } from "#runtime/controller.ts"
import { core, resourceOf } from "#runtime/resource.ts"
import { grantPermissions } from "../grants.ts"
import { customResourceDefinitions } from "../served-kind.ts"
import { judgingPermissions } from "../way-out.ts"
import { podPermissions } from "./pods.ts"
import { jobPermissions } from "./pre-cache-jobs.ts"
import { containerRecreateRequests } from "./stopped.ts"

export const serviceImages = resourceOf(namesOf("ServiceImage"))

/** A pull that an AlternateImageSource may mend does not count against a tier. */
export const alternateImageSources = resourceOf(namesOf("AlternateImageSource"))

/** A workload with a Canary is up to date when that has promoted the image. */
export const canaries = resourceOf(namesOf("Canary"))

export const namespaces = core("namespaces", "Namespace", false)

/** The target's objects are not among these: `aim manifests rbac --for` prints what reading and stamping them needs. */
export const permissions: readonly Permission[] = [
  { resource: serviceImages, verbs: ["list", "watch"] },
  { resource: serviceImages, subresource: "status", verbs: ["update"] },
  { resource: customResourceDefinitions, verbs: ["list", "watch"] },
  { resource: namespaces, verbs: ["list", "watch"] },
  ...grantPermissions,
  ...podPermissions,
  ...jobPermissions,
  { resource: alternateImageSources, verbs: ["list", "watch"] },
  { resource: canaries, verbs: ["list", "watch"] },
  { resource: containerRecreateRequests, verbs: ["list", "watch"] },
  ...judgingPermissions,
  // Each namespace decides which of these may be changed: the roles allow the patch only where it was granted.
  ...workloadKinds
    .filter(({ isTarget }) => isTarget)
    .map((kind): Permission => ({ resource: resourceOf(kind), verbs: ["list", "watch", "patch"] })),
]
