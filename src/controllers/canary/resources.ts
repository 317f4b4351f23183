import { namesOf } from "#api/names.ts"
import { routeKinds } from "#core/canary/routers/index.ts"
import { workloadKind } from "#core/workloads/kinds.ts"
import type { Permission } from "#runtime/controller.ts"
import {
  controllerRevisions,
  core,
  endpointSlices,
  podDisruptionBudgets,
  type Resource,
  resourceOf,
} from "#runtime/resource.ts"
import { grantPermissions } from "../grants.ts"
import { judgingPermissions } from "../way-out.ts"
import { configPermissions } from "./configs.ts"
import { servedPermissions } from "./served.ts"

export const canaries = resourceOf(namesOf("Canary"))
export const alertProviders = resourceOf(namesOf("AlertProvider"))
export const deployments = resourceOf(workloadKind("Deployment")!)
export const replicaSets = resourceOf(workloadKind("ReplicaSet")!)
export const statefulSets = resourceOf(workloadKind("StatefulSet")!)
export const daemonSets = resourceOf(workloadKind("DaemonSet")!)
/** Workloads beside Deployments: watched where a Canary has one for its target. */
export const setResources = { StatefulSet: statefulSets, DaemonSet: daemonSets } as const
export const pods = core("pods", "Pod")
export const services = core("services", "Service")

export const autoscalers: Resource = {
  group: "autoscaling",
  version: "v2",
  plural: "horizontalpodautoscalers",
  kind: "HorizontalPodAutoscaler",
  namespaced: true,
}
export const scaledObjects: Resource = {
  group: "keda.sh",
  version: "v1alpha1",
  plural: "scaledobjects",
  kind: "ScaledObject",
  namespaced: true,
}
export const canaryFinalizer = "autoimagemanager.io/canary"

/** Workloads, Services and routes are changed only where a namespace has granted it: see the roles. */
export const permissions: readonly Permission[] = [
  { resource: canaries, verbs: ["list", "watch", "patch"] },
  { resource: canaries, subresource: "status", verbs: ["update"] },
  { resource: deployments, verbs: ["list", "watch", "create", "patch", "delete"] },
  { resource: replicaSets, verbs: ["list", "watch", "patch", "delete"] },
  ...[statefulSets, daemonSets].map((resource): Permission => ({ resource, verbs: ["list", "watch", "patch"] })),
  { resource: controllerRevisions, verbs: ["list", "watch"] },
  // Pods of a StatefulSet or DaemonSet make room for those of the other revision.
  { resource: pods, verbs: ["list", "watch", "delete"] },
  // As a dry run only: the client cannot send another.
  { resource: pods, subresource: "eviction", verbs: ["create"] },
  // They bind what a run takes away.
  { resource: podDisruptionBudgets, verbs: ["list", "watch"] },
  { resource: services, verbs: ["list", "watch", "create", "update", "delete"] },
  { resource: endpointSlices, verbs: ["list", "watch"] },
  ...routeKinds.map(
    ({ group, plural }): Permission => ({
      resource: { group, plural },
      verbs: ["list", "watch", "create", "update", "delete"],
    }),
  ),
  { resource: alertProviders, verbs: ["list", "watch"] },
  ...servedPermissions,
  ...judgingPermissions,
  ...configPermissions,
  { resource: autoscalers, verbs: ["list", "watch", "update"] },
  { resource: scaledObjects, verbs: ["list", "watch", "update"] },
  ...grantPermissions,
]
