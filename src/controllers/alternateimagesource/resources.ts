import { AlternateImageSource } from "#api/v1alpha1/alternateimagesource/index.ts"
import type { Permission } from "#runtime/controller.ts"
import { core, type Resource } from "#runtime/resource.ts"
import { grantPermissions } from "../grants.ts"

export const alternateImageSources: Resource = {
  group: AlternateImageSource.group,
  version: AlternateImageSource.version,
  plural: AlternateImageSource.plural,
  kind: AlternateImageSource.kind,
  namespaced: true,
}

export const pods = core("pods", "Pod")
export const secrets = core("secrets", "Secret")
export const serviceAccounts = core("serviceaccounts", "ServiceAccount")

/** A kind that makes pods. */
export type WorkloadKind = {
  readonly name: string // as targets write it
  readonly resource: Resource
  /** Its template can be changed. */
  readonly hasTemplate: boolean
  /** And does so by making new pods. */
  readonly replacesPods: boolean
  /** Its controller replaces pods that were made from an older template, once they run, and knows them by a label. */
  readonly hasRevisions: boolean
}

const workload = (
  group: string,
  kind: string,
  { hasTemplate = true, replacesPods = false, hasRevisions = false } = {},
): WorkloadKind => ({
  name: kind.toLowerCase(),
  resource: { group, version: "v1", plural: `${kind.toLowerCase()}s`, kind, namespaced: true },
  hasTemplate,
  replacesPods,
  hasRevisions,
})

export const workloadKinds: readonly WorkloadKind[] = [
  workload("apps", "Deployment", { replacesPods: true }),
  workload("apps", "StatefulSet", { hasRevisions: true }),
  workload("apps", "DaemonSet", { replacesPods: true }),
  workload("apps", "ReplicaSet"),
  workload("batch", "Job", { hasTemplate: false }),
  workload("batch", "CronJob"),
]

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
