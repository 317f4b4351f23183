import { namesOf } from "#api/names.ts"
import { workloadKind } from "#core/workloads/kinds.ts"
import type { Permission } from "#runtime/controller.ts"
import { core, type Resource, resourceOf } from "#runtime/resource.ts"
import { grantPermissions } from "../grants.ts"
import { secretPermissions } from "../secrets.ts"
import { sharingPermissions } from "../sharing.ts"
import { reachablePermissions } from "./reachable.ts"
import { servedPermissions } from "./served.ts"

export const canaries = resourceOf(namesOf("Canary"))
export const metricTemplates = resourceOf(namesOf("MetricTemplate"))
export const alertProviders = resourceOf(namesOf("AlertProvider"))
export const deployments = resourceOf(workloadKind("Deployment")!)
export const replicaSets = resourceOf(workloadKind("ReplicaSet")!)
export const statefulSets = resourceOf(workloadKind("StatefulSet")!)
export const daemonSets = resourceOf(workloadKind("DaemonSet")!)
export const controllerRevisions: Resource = {
  group: "apps",
  version: "v1",
  plural: "controllerrevisions",
  kind: "ControllerRevision",
  namespaced: true,
}
/** Workloads beside Deployments: watched where a Canary has one for its target. */
export const setResources = { StatefulSet: statefulSets, DaemonSet: daemonSets } as const
export const pods = core("pods", "Pod")
export const services = core("services", "Service")
export const endpointSlices: Resource = {
  group: "discovery.k8s.io",
  version: "v1",
  plural: "endpointslices",
  kind: "EndpointSlice",
  namespaced: true,
}

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
const httpRoutes = { group: "gateway.networking.k8s.io", plural: "httproutes" }

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
  { resource: services, verbs: ["list", "watch", "create", "update", "delete"] },
  { resource: endpointSlices, verbs: ["list", "watch"] },
  { resource: httpRoutes, verbs: ["list", "watch", "create", "update", "delete"] },
  { resource: metricTemplates, verbs: ["list", "watch"] },
  { resource: alertProviders, verbs: ["list", "watch"] },
  ...servedPermissions,
  ...secretPermissions,
  ...sharingPermissions,
  ...reachablePermissions,
  { resource: autoscalers, verbs: ["list", "watch", "update"] },
  { resource: scaledObjects, verbs: ["list", "watch", "update"] },
  ...grantPermissions,
]
