import { namesOf } from "#api/names.ts"
import { workloadKind } from "#core/workloads/kinds.ts"
import type { Permission } from "#runtime/controller.ts"
import { controllerRevisions, core, podDisruptionBudgets, resourceOf } from "#runtime/resource.ts"
import { grantPermissions } from "../grants.ts"

export const deployments = resourceOf(workloadKind("Deployment")!)
export const replicaSets = resourceOf(workloadKind("ReplicaSet")!)
export const statefulSets = resourceOf(workloadKind("StatefulSet")!)
export const daemonSets = resourceOf(workloadKind("DaemonSet")!)
export const pods = core("pods", "Pod")
export const nodes = core("nodes", "Node", false)
export const imagePullJobs = resourceOf(namesOf("ImagePullJob"))
export const nodeImages = resourceOf(namesOf("NodeImage"))
export const requests = resourceOf(namesOf("ContainerRecreateRequest"))

/** Workloads, their ReplicaSets and pods are changed only where a namespace has granted it: see the roles. */
export const permissions: readonly Permission[] = [
  ...[deployments, statefulSets, daemonSets].map(
    (resource): Permission => ({ resource, verbs: ["list", "watch", "patch"] }),
  ),
  { resource: controllerRevisions, verbs: ["list", "watch"] },
  // A template is flipped, the one before is kept for `kubectl rollout undo`, and its double is removed.
  { resource: replicaSets, verbs: ["list", "watch", "create", "patch", "delete"] },
  { resource: pods, verbs: ["list", "watch", "patch"] },
  { resource: pods, subresource: "status", verbs: ["patch"] },
  // As a dry run only: the client cannot send another.
  { resource: pods, subresource: "eviction", verbs: ["create"] },
  { resource: podDisruptionBudgets, verbs: ["list", "watch"] },
  { resource: imagePullJobs, verbs: ["list", "watch", "create", "delete"] },
  { resource: nodeImages, verbs: ["list", "watch"] },
  // Pods of a node that is not ready wait for it.
  { resource: nodes, verbs: ["list", "watch"] },
  // For containers that read a changed label or annotation into their environment.
  { resource: requests, verbs: ["create"] },
  ...grantPermissions,
]
