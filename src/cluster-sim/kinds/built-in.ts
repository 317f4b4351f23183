import type { ServedKind } from "../apiserver/kind.ts"
import { kubernetesSchema } from "../schema/index.ts"
import { cronJob, job } from "./batch.ts"
import {
  configMap,
  limitRange,
  namespace,
  persistentVolumeClaim,
  resourceQuota,
  secret,
  serviceAccount,
} from "./core.ts"
import { customResourceDefinition } from "./custom-resource-definition.ts"
import { type Definition, define, type SchemaOf } from "./define.ts"
import { event, newEvent } from "./event.ts"
import { node } from "./node.ts"
import { pod } from "./pod.ts"
import { clusterRole, clusterRoleBinding, role, roleBinding } from "./rbac.ts"
import { service } from "./service.ts"
import {
  endpointSlice,
  horizontalPodAutoscaler,
  lease,
  mutatingAdmissionPolicy,
  mutatingAdmissionPolicyBinding,
  networkPolicy,
  podDisruptionBudget,
  priorityClass,
  validatingAdmissionPolicy,
  validatingAdmissionPolicyBinding,
} from "./stored.ts"
import { controllerRevision, daemonSet, deployment, replicaSet, statefulSet } from "./workloads.ts"

const definitions: readonly Definition[] = [
  configMap, event, limitRange, namespace, node, persistentVolumeClaim, pod, resourceQuota, secret, service,
  serviceAccount, newEvent, controllerRevision, daemonSet, deployment, replicaSet, statefulSet, cronJob, job,
  podDisruptionBudget, horizontalPodAutoscaler, lease, clusterRole, clusterRoleBinding, role, roleBinding,
  customResourceDefinition, validatingAdmissionPolicy, validatingAdmissionPolicyBinding, mutatingAdmissionPolicy,
  mutatingAdmissionPolicyBinding, priorityClass, endpointSlice, networkPolicy,
] // biome-ignore format: a list of words

/** Every built-in kind of the simulated server. */
export function builtInKinds(schemaOf: SchemaOf = kubernetesSchema): ServedKind[] {
  return definitions.map(definition => define(definition, schemaOf))
}
