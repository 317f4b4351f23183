import { namesOf } from "#api/names.ts"
import { workloadKinds as kinds, type WorkloadKind as Traits } from "#core/workloads/kinds.ts"
import type { Permission } from "#runtime/controller.ts"
import { core, type Resource, resourceOf } from "#runtime/resource.ts"
import { grantPermissions } from "../grants.ts"

export const alternateImageSources = resourceOf(namesOf("AlternateImageSource"))

export const pods = core("pods", "Pod")
export const secrets = core("secrets", "Secret")
export const serviceAccounts = core("serviceaccounts", "ServiceAccount")

/** A kind that makes pods, and its resource. */
export type WorkloadKind = Traits & { readonly resource: Resource }

export const workloadKinds: readonly WorkloadKind[] = kinds.map(kind => ({ ...kind, resource: resourceOf(kind) }))

/** Pods are repaired, and workloads changed, only where a namespace has granted it: see the roles. */
export const permissions: readonly Permission[] = [
  { resource: alternateImageSources, verbs: ["list", "watch"] },
  { resource: alternateImageSources, subresource: "status", verbs: ["update"] },
  { resource: pods, verbs: ["list", "watch", "patch"] },
  ...workloadKinds.map(
    ({ resource, hasTemplate }): Permission => ({
      resource,
      verbs: hasTemplate ? ["list", "watch", "patch"] : ["list", "watch"],
    }),
  ),
  ...grantPermissions,
  { resource: secrets, verbs: ["get"] },
  { resource: serviceAccounts, verbs: ["get"] },
]
