import { Canary } from "#api/v1alpha1/canary/index.ts"
import { workloadKind } from "#core/workloads/kinds.ts"
import type { Permission } from "#runtime/controller.ts"
import { core, type Resource, resourceOf } from "#runtime/resource.ts"
import { grantPermissions } from "../grants.ts"

export const canaries = resourceOf(Canary)
export const deployments = resourceOf(workloadKind("Deployment")!)
export const replicaSets = resourceOf(workloadKind("ReplicaSet")!)
export const pods = core("pods", "Pod")
export const services = core("services", "Service")
export const endpointSlices: Resource = {
  group: "discovery.k8s.io",
  version: "v1",
  plural: "endpointslices",
  kind: "EndpointSlice",
  namespaced: true,
}

export const canaryFinalizer = "autoimagemanager.io/canary"

/** Workloads, Services and routes are changed only where a namespace has granted it: see the roles. */
export const permissions: readonly Permission[] = [
  { resource: canaries, verbs: ["list", "watch", "patch"] },
  { resource: canaries, subresource: "status", verbs: ["update"] },
  { resource: deployments, verbs: ["list", "watch", "create", "patch", "delete"] },
  { resource: replicaSets, verbs: ["list", "watch", "patch", "delete"] },
  { resource: pods, verbs: ["list", "watch"] },
  { resource: services, verbs: ["list", "watch", "create", "update", "delete"] },
  { resource: endpointSlices, verbs: ["list", "watch"] },
  ...grantPermissions,
]
