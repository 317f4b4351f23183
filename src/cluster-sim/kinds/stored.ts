import type { Json } from "../object.ts"
import {
  validateMutatingPolicy,
  validatePolicyBinding,
  validateValidatingPolicy,
} from "./admission-policy-validation.ts"
import { age, formatSelector, selectorText } from "./cells.ts"
import type { Definition } from "./define.ts"
import { edit, editEach, fill, fillZero, same, set } from "./edit.ts"
import { validateNetworkPolicy } from "./network-validation.ts"
import {
  validateAutoscaler,
  validateBudget,
  validateLease,
  validatePriorityClass,
  validatePriorityClassUpdate,
} from "./policy-validation.ts"

/** Kinds that are stored and served, and that no part of the simulated cluster acts on (see docs/cluster-sim.md). */

export const podDisruptionBudget: Definition = {
  apiVersion: "policy/v1",
  kind: "PodDisruptionBudget",
  hasGeneration: true,
  hasStatus: true,
  strategy: {
    allowsUnconditionalUpdate: false,
    prepareCreate: object => set(object, "status", noDisruptions),
    validateCreate: validateBudget,
    validateUpdate: validateBudget,
  },
  row: (object, nowMs) => [
    object.metadata.name,
    String(object.spec?.minAvailable ?? "N/A"),
    String(object.spec?.maxUnavailable ?? "N/A"),
    object.status?.disruptionsAllowed ?? 0,
    age(object, nowMs),
  ],
}

const noDisruptions = { disruptionsAllowed: 0, currentHealthy: 0, desiredHealthy: 0, expectedPods: 0 }

export const lease: Definition = {
  apiVersion: "coordination.k8s.io/v1",
  kind: "Lease",
  strategy: {
    allowsUnconditionalUpdate: false,
    allowsCreateOnUpdate: true,
    validateCreate: validateLease,
    validateUpdate: validateLease,
  },
  row: (object, nowMs) => [object.metadata.name, object.spec?.holderIdentity ?? "", age(object, nowMs)],
}

export const priorityClass: Definition = {
  apiVersion: "scheduling.k8s.io/v1",
  kind: "PriorityClass",
  hasGeneration: true,
  strategy: {
    default: object => fill(object, { preemptionPolicy: "PreemptLowerPriority" }),
    movesGeneration: () => false,
    validateCreate: validatePriorityClass,
    validateUpdate: validatePriorityClassUpdate,
  },
  row: (object, nowMs) => [
    object.metadata.name,
    object.value ?? 0,
    object.globalDefault ?? false,
    age(object, nowMs),
    object.preemptionPolicy ?? "",
  ],
}

export const endpointSlice: Definition = {
  apiVersion: "discovery.k8s.io/v1",
  kind: "EndpointSlice",
  hasGeneration: true,
  strategy: {
    movesGeneration: (object, old) =>
      ["addressType", "endpoints", "ports"].some(field => !same(object[field], old[field])),
    default: object =>
      fill(
        editEach(object, "ports", port => fill(port, { name: "", protocol: "TCP" })),
        { endpoints: null, ports: null },
      ),
  },
  row(object, nowMs) {
    const ports = (object.ports ?? []).map(({ port, name }: Json) => String(port ?? name ?? "*"))
    const addresses = (object.endpoints ?? []).flatMap(({ addresses }: Json) => addresses ?? [])
    return [object.metadata.name, object.addressType ?? "", some(ports), some(addresses), age(object, nowMs)]
  },
}

function some(list: string[]): string {
  const shown = list.slice(0, 3).join(",")
  return list.length > 3 ? `${shown} + ${list.length - 3} more...` : shown || "<unset>"
}

export const networkPolicy: Definition = {
  apiVersion: "networking.k8s.io/v1",
  kind: "NetworkPolicy",
  hasGeneration: true,
  strategy: {
    default(object) {
      const ruleDefaults = (rule: Json) => editEach(rule, "ports", port => fill(port, { protocol: "TCP" }))
      let spec = editEach(editEach(object.spec ?? {}, "ingress", ruleDefaults), "egress", ruleDefaults)
      if (!spec.policyTypes?.length)
        spec = set(spec, "policyTypes", spec.egress?.length ? ["Ingress", "Egress"] : ["Ingress"])
      return set(object, "spec", spec)
    },
    validateCreate: validateNetworkPolicy,
    validateUpdate: validateNetworkPolicy,
  },
  row: (object, nowMs) => [object.metadata.name, formatSelector(object.spec?.podSelector), age(object, nowMs)],
}

export const horizontalPodAutoscaler: Definition = {
  apiVersion: "autoscaling/v2",
  kind: "HorizontalPodAutoscaler",
  hasStatus: true,
  strategy: {
    default(object) {
      let spec = fill(object.spec ?? {}, { minReplicas: 1 })
      if (!spec.metrics?.length) spec = set(spec, "metrics", [cpuMetric])
      spec = edit(spec, "behavior", behavior => {
        const next = set(behavior, "scaleUp", fill(behavior.scaleUp ?? {}, scaleUpRules))
        return set(next, "scaleDown", fill(next.scaleDown ?? {}, scaleDownRules))
      })
      return set(object, "spec", spec)
    },
    prepareCreate: object => set(object, "status", { currentMetrics: null, desiredReplicas: 0 }),
    validateCreate: validateAutoscaler,
    validateUpdate: validateAutoscaler,
  },
  row: (object, nowMs) => [
    object.metadata.name,
    `${object.spec.scaleTargetRef.kind}/${object.spec.scaleTargetRef.name}`,
    metricsText(object.spec.metrics ?? [], object.status?.currentMetrics ?? []),
    String(object.spec.minReplicas ?? "<unset>"),
    object.spec.maxReplicas,
    object.status?.currentReplicas ?? 0,
    age(object, nowMs),
  ],
}

const cpuMetric = {
  type: "Resource",
  resource: { name: "cpu", target: { type: "Utilization", averageUtilization: 80 } },
}

const scaleUpRules = {
  stabilizationWindowSeconds: 0,
  selectPolicy: "Max",
  policies: [
    { type: "Pods", value: 4, periodSeconds: 15 },
    { type: "Percent", value: 100, periodSeconds: 15 },
  ],
}

const scaleDownRules = { selectPolicy: "Max", policies: [{ type: "Percent", value: 100, periodSeconds: 15 }] }

function metricsText(specs: Json[], statuses: Json[]): string {
  if (specs.length === 0) return "<none>"
  const texts = specs.map((spec, index) => metricText(spec, statuses[index]))
  const shown = texts.slice(0, 2).join(", ")
  return texts.length > 2 ? `${shown} + ${texts.length - 2} more...` : shown
}

function metricText(spec: Json, status: Json): string {
  const field = (
    {
      Resource: "resource",
      ContainerResource: "containerResource",
      Pods: "pods",
      Object: "object",
      External: "external",
    } as Record<string, string>
  )[spec.type]
  if (!field || !spec[field]) return "<unknown type>"
  const { name, target } = spec[field]
  const current = status?.[field]?.current ?? {}
  const isResource = field === "resource" || field === "containerResource"
  if (isResource) {
    if (target.averageValue !== undefined)
      return `${name}: ${current.averageValue ?? "<unknown>"}/${target.averageValue}`
    const percent = (value: number | undefined, otherwise: string) => (value === undefined ? otherwise : `${value}%`)
    return `${name}: ${percent(current.averageUtilization, "<unknown>")}/${percent(target.averageUtilization, "<auto>")}`
  }
  if (field === "pods") return `${current.averageValue ?? "<unknown>"}/${target.averageValue}`
  if (target.averageValue !== undefined) return `${current.averageValue ?? "<unknown>"}/${target.averageValue} (avg)`
  return `${current.value ?? "<unknown>"}/${target.value}`
}

const admission = "admissionregistration.k8s.io/v1"

const ruleDefaults = (rule: Json) => fillZero(rule, { scope: "*" })

const matchDefaults = (constraints: Json) =>
  fill(editEach(editEach(constraints, "resourceRules", ruleDefaults), "excludeResourceRules", ruleDefaults), {
    matchPolicy: "Equivalent",
    namespaceSelector: {},
    objectSelector: {},
  })

const policyStrategy = {
  allowsUnconditionalUpdate: false,
  default: (object: Json) =>
    set(object, "spec", edit(fill(object.spec ?? {}, { failurePolicy: "Fail" }), "matchConstraints", matchDefaults)),
}

const paramKind = ({ spec }: Json) =>
  spec.paramKind ? `${spec.paramKind.apiVersion}/${spec.paramKind.kind}` : "<unset>"

export const validatingAdmissionPolicy: Definition = {
  apiVersion: admission,
  kind: "ValidatingAdmissionPolicy",
  hasGeneration: true,
  hasStatus: true,
  strategy: {
    ...policyStrategy,
    validateCreate: validateValidatingPolicy,
    validateUpdate: validateValidatingPolicy,
    prepareCreate: object => set(object, "status", {}),
  },
  row: (object, nowMs) => [
    object.metadata.name,
    object.spec.validations?.length ?? 0,
    paramKind(object),
    age(object, nowMs),
  ],
}

export const mutatingAdmissionPolicy: Definition = {
  apiVersion: admission,
  kind: "MutatingAdmissionPolicy",
  hasGeneration: true,
  strategy: { ...policyStrategy, validateCreate: validateMutatingPolicy, validateUpdate: validateMutatingPolicy },
  row: (object, nowMs) => [
    object.metadata.name,
    object.spec.mutations?.length ?? 0,
    paramKind(object),
    age(object, nowMs),
  ],
}

export const validatingAdmissionPolicyBinding: Definition = {
  apiVersion: admission,
  kind: "ValidatingAdmissionPolicyBinding",
  hasGeneration: true,
  strategy: {
    allowsUnconditionalUpdate: false,
    validateCreate: validatePolicyBinding,
    validateUpdate: validatePolicyBinding,
    default: object => edit(object, "spec", spec => edit(spec, "matchResources", matchDefaults)),
  },
  row(object, nowMs) {
    const { policyName = "", paramRef } = object.spec ?? {}
    let parameter = "<unset>"
    if (paramRef?.name) parameter = `${paramRef.namespace || "*"}/${paramRef.name}`
    else if (paramRef?.selector) parameter = selectorText(paramRef.selector)
    return [object.metadata.name, policyName, parameter, age(object, nowMs)]
  },
}

export const mutatingAdmissionPolicyBinding: Definition = {
  ...validatingAdmissionPolicyBinding,
  kind: "MutatingAdmissionPolicyBinding",
}
