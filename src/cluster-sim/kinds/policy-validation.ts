import type { Json, Obj } from "../object.ts"
import type { Cause } from "../status-error.ts"
import { same } from "./edit.ts"
import { Findings } from "./findings.ts"

const rbac = "rbac.authorization.k8s.io"

export function validateRole({ kind, rules, aggregationRule }: Json): Cause[] {
  const found = new Findings()
  for (const [index, rule] of (rules ?? []).entries()) {
    const at = `rules[${index}]`
    const { verbs, nonResourceURLs = [], apiGroups = [], resources = [], resourceNames = [] } = rule
    if (!verbs?.length) found.required(`${at}.verbs`, "verbs must contain at least one value")
    if (nonResourceURLs.length > 0) {
      if (kind === "Role")
        found.invalid(`${at}.nonResourceURLs`, nonResourceURLs, "namespaced rules cannot apply to non-resource URLs")
      if (apiGroups.length + resources.length + resourceNames.length > 0)
        found.invalid(
          `${at}.nonResourceURLs`,
          nonResourceURLs,
          "rules cannot apply to both regular resources and non-resource URLs",
        )
      continue
    }
    if (apiGroups.length === 0) found.required(`${at}.apiGroups`, "resource rules must supply at least one api group")
    if (resources.length === 0) found.required(`${at}.resources`, "resource rules must supply at least one resource")
  }
  if (aggregationRule && !aggregationRule.clusterRoleSelectors?.length)
    found.required(
      "aggregationRule.clusterRoleSelectors",
      "at least one clusterRoleSelector required if aggregationRule is non-nil",
    )
  return found.causes
}

export function validateBinding({ kind, roleRef = {}, subjects }: Json): Cause[] {
  const found = new Findings()
  const kinds = kind === "RoleBinding" ? ["Role", "ClusterRole"] : ["ClusterRole"]
  if (roleRef.apiGroup !== rbac) found.unsupported("roleRef.apiGroup", roleRef.apiGroup ?? "", [rbac])
  if (!kinds.includes(roleRef.kind)) found.unsupported("roleRef.kind", roleRef.kind ?? "", kinds)
  if (!roleRef.name) found.required("roleRef.name")
  for (const [index, { name, kind: who = "", apiGroup = "", namespace }] of (subjects ?? []).entries()) {
    const at = `subjects[${index}]`
    if (!name) found.required(`${at}.name`)
    if (who === "ServiceAccount") {
      if (name) found.subdomain(`${at}.name`, name)
      if (apiGroup) found.unsupported(`${at}.apiGroup`, apiGroup, [""])
      if (kind === "ClusterRoleBinding" && !namespace) found.required(`${at}.namespace`)
    } else if (who === "User" || who === "Group") {
      if (apiGroup !== rbac) found.unsupported(`${at}.apiGroup`, apiGroup, [rbac])
    } else found.unsupported(`${at}.kind`, who, ["ServiceAccount", "User", "Group"])
  }
  return found.causes
}

export function validateBindingUpdate(object: Json, old: Obj): Cause[] {
  const found = new Findings()
  found.causes.push(...validateBinding(object))
  const { apiGroup, kind, name } = object.roleRef
  if (!same(object.roleRef, old.roleRef))
    found.invalid("roleRef", { APIGroup: apiGroup, Kind: kind, Name: name }, "cannot change roleRef")
  return found.causes
}

export function validateBudget({ spec = {} }: Json): Cause[] {
  const found = new Findings()
  const { minAvailable, maxUnavailable, selector, unhealthyPodEvictionPolicy: policy } = spec
  if (minAvailable !== undefined && maxUnavailable !== undefined)
    found.invalid(
      "spec",
      {
        MinAvailable: minAvailable,
        Selector: selector ?? null,
        MaxUnavailable: maxUnavailable,
        UnhealthyPodEvictionPolicy: policy ?? null,
      },
      "minAvailable and maxUnavailable cannot be both set",
    )
  for (const field of ["minAvailable", "maxUnavailable"]) {
    if (spec[field] === undefined) continue
    found.intOrPercent(`spec.${field}`, spec[field])
    found.atMostAll(`spec.${field}`, spec[field])
  }
  if (selector) found.selector("spec.selector", selector)
  if (policy !== undefined) found.oneOf("spec.unhealthyPodEvictionPolicy", policy, ["AlwaysAllow", "IfHealthyBudget"])
  return found.causes
}

export function validateLease({ spec = {} }: Json): Cause[] {
  const found = new Findings()
  if (spec.leaseDurationSeconds !== undefined && spec.leaseDurationSeconds <= 0)
    found.invalid("spec.leaseDurationSeconds", spec.leaseDurationSeconds, "must be greater than 0")
  found.notNegative("spec.leaseTransitions", spec.leaseTransitions)
  return found.causes
}

/** The two priorities every cluster has. */
const systemPriorities: Record<string, number> = {
  "system-cluster-critical": 2_000_000_000,
  "system-node-critical": 2_000_001_000,
}

export function validatePriorityClass({ metadata, value = 0 }: Json): Cause[] {
  const found = new Findings()
  const { name } = metadata
  if (name.startsWith("system-")) {
    if (systemPriorities[name] !== value)
      found.forbidden(
        "metadata.name",
        `priority class names with 'system-' prefix are reserved for system use only. error: ${
          Object.hasOwn(systemPriorities, name)
            ? `value of ${name} PriorityClass must be ${systemPriorities[name]}`
            : `${name} is not a known system priority class`
        }`,
      )
  } else if (value > 1_000_000_000)
    found.forbidden("value", "maximum allowed value of a user defined priority is 1000000000")
  return found.causes
}

export function validatePriorityClassUpdate(object: Json, old: Obj): Cause[] {
  const found = new Findings()
  if ((object.value ?? 0) !== (old.value ?? 0)) found.forbidden("value", "may not be changed in an update.")
  found.immutable("preemptionPolicy", object.preemptionPolicy, old.preemptionPolicy)
  return found.causes
}

export function validateAutoscaler({ spec }: Json): Cause[] {
  const found = new Findings()
  const { minReplicas, maxReplicas = 0, scaleTargetRef: target = {} } = spec
  if (minReplicas < 1) found.invalid("spec.minReplicas", minReplicas, "must be greater than or equal to 1")
  if (maxReplicas === 0) found.required("spec.maxReplicas", "must be set and greater than 0")
  else if (maxReplicas < 0) found.invalid("spec.maxReplicas", maxReplicas, "must be greater than or equal to 1")
  if (maxReplicas < minReplicas)
    found.invalid("spec.maxReplicas", maxReplicas, "must be greater than or equal to `minReplicas`")
  for (const field of ["kind", "name"]) if (!target[field]) found.required(`spec.scaleTargetRef.${field}`)
  if (!target.apiVersion && target.kind !== "ReplicationController")
    found.invalid("spec.scaleTargetRef.apiVersion", "", "apiVersion must specify API group")
  return found.causes
}

export function validateRevision({ revision = 0, data }: Json): Cause[] {
  const found = new Findings()
  found.notNegative("revision", revision)
  if (data === undefined || data === null) found.required("data", "data is mandatory")
  return found.causes
}

export function validateRevisionUpdate(object: Json, old: Obj): Cause[] {
  const found = new Findings()
  found.causes.push(...validateRevision(object))
  found.immutable("data", object.data, old.data)
  return found.causes
}
