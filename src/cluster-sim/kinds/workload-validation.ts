import type { Json, Obj } from "../object.ts"
import type { Cause } from "../status-error.ts"
import { same } from "./edit.ts"
import { Findings, isEmptySelector, isZero, selects } from "./findings.ts"
import { podTemplate } from "./pod-validation.ts"

/** The template of a workload that keeps pods running. */
function lastingTemplate(found: Findings, { template, selector }: Json, kind: string) {
  const path = "spec.template"
  if (!isEmptySelector(selector) || !selector) {
    const labels = template.metadata?.labels
    if (!selects(selector, labels))
      found.invalid(`${path}.metadata.labels`, labels ?? null, "`selector` does not match template `labels`")
  }
  podTemplate(found, template, path)
  alwaysRestarts(found, template, kind)
}

function alwaysRestarts(found: Findings, { spec }: Json, kind: string) {
  if (spec.restartPolicy !== "Always")
    found.unsupported("spec.template.spec.restartPolicy", spec.restartPolicy, ["Always"])
  if (spec.activeDeadlineSeconds !== undefined)
    found.forbidden("spec.template.spec.activeDeadlineSeconds", `activeDeadlineSeconds in ${kind} is not Supported`)
}

/** A selector that is required and must not be empty. */
function neededSelector(found: Findings, selector: Json, kind: string): boolean {
  if (!selector) {
    found.required("spec.selector")
    return true
  }
  const isGood = found.selector("spec.selector", selector)
  if (isEmptySelector(selector)) found.invalid("spec.selector", {}, `empty selector is invalid for ${kind}`)
  return isGood
}

export function validateDeployment({ spec }: Json): Cause[] {
  const found = new Findings()
  found.notNegative("spec.replicas", spec.replicas)
  if (neededSelector(found, spec.selector, "deployment")) lastingTemplate(found, spec, "ReplicaSet")
  else found.invalid("spec.selector", spec.selector, "invalid label selector")
  validateStrategy(found, spec.strategy)
  found.notNegative("spec.minReadySeconds", spec.minReadySeconds)
  found.notNegative("spec.revisionHistoryLimit", spec.revisionHistoryLimit)
  found.notNegative("spec.progressDeadlineSeconds", spec.progressDeadlineSeconds)
  if (spec.progressDeadlineSeconds <= (spec.minReadySeconds ?? 0))
    found.invalid("spec.progressDeadlineSeconds", spec.progressDeadlineSeconds, "must be greater than minReadySeconds")
  return found.causes
}

function validateStrategy(found: Findings, { type, rollingUpdate }: Json) {
  const path = "spec.strategy"
  if (type === "Recreate") {
    if (rollingUpdate)
      found.forbidden(`${path}.rollingUpdate`, "may not be specified when strategy `type` is 'Recreate'")
    return
  }
  if (type !== "RollingUpdate")
    return found.unsupported(path, { Type: type, RollingUpdate: goRolling(rollingUpdate) }, [
      "Recreate",
      "RollingUpdate",
    ])
  const { maxUnavailable, maxSurge } = rollingUpdate
  found.intOrPercent(`${path}.rollingUpdate.maxUnavailable`, maxUnavailable)
  found.intOrPercent(`${path}.rollingUpdate.maxSurge`, maxSurge)
  if (isZero(maxUnavailable) && isZero(maxSurge))
    found.invalid(`${path}.rollingUpdate.maxUnavailable`, maxUnavailable, "may not be 0 when `maxSurge` is 0")
  found.atMostAll(`${path}.rollingUpdate.maxUnavailable`, maxUnavailable)
}

const goRolling = (rolling: Json) =>
  rolling ? { MaxUnavailable: rolling.maxUnavailable ?? 0, MaxSurge: rolling.maxSurge ?? 0 } : null

export function validateReplicaSet({ spec }: Json): Cause[] {
  const found = new Findings()
  found.notNegative("spec.replicas", spec.replicas)
  found.notNegative("spec.minReadySeconds", spec.minReadySeconds)
  // The server's message has "deployment" here.
  if (neededSelector(found, spec.selector, "deployment")) lastingTemplate(found, spec, "ReplicaSet")
  else found.invalid("spec.selector", spec.selector, "invalid label selector")
  return found.causes
}

export function validateStatefulSet({ spec }: Json): Cause[] {
  const found = new Findings()
  if (!["OrderedReady", "Parallel"].includes(spec.podManagementPolicy))
    found.invalid("spec.podManagementPolicy", spec.podManagementPolicy, "must be 'OrderedReady' or 'Parallel'")
  const { type, rollingUpdate } = spec.updateStrategy
  const go = rollingUpdate
    ? { Partition: rollingUpdate.partition ?? 0, MaxUnavailable: rollingUpdate.maxUnavailable ?? null }
    : null
  if (type === "OnDelete") {
    if (rollingUpdate)
      found.invalid("spec.updateStrategy.rollingUpdate", go, "only allowed for updateStrategy 'RollingUpdate'")
  } else if (type === "RollingUpdate")
    found.notNegative("spec.updateStrategy.rollingUpdate.partition", rollingUpdate?.partition)
  else found.invalid("spec.updateStrategy", { Type: type, RollingUpdate: go }, "must be 'RollingUpdate' or 'OnDelete'")
  for (const field of ["whenDeleted", "whenScaled"])
    found.oneOf(
      `spec.persistentVolumeClaimRetentionPolicy.${field}`,
      spec.persistentVolumeClaimRetentionPolicy[field],
      ["Retain", "Delete"],
    )
  found.notNegative("spec.replicas", spec.replicas)
  found.notNegative("spec.minReadySeconds", spec.minReadySeconds)
  found.notNegative("spec.ordinals.start", spec.ordinals?.start)
  if (spec.serviceName) found.label("spec.serviceName", spec.serviceName)
  if (neededSelector(found, spec.selector, "statefulset")) {
    const claims = (spec.volumeClaimTemplates ?? []).map(({ metadata }: Json) => ({
      name: metadata?.name,
      persistentVolumeClaim: { claimName: metadata?.name },
    }))
    const own = (spec.template.spec.volumes ?? []).filter(
      ({ name }: Json) => !claims.some((claim: Json) => claim.name === name),
    )
    const template = { ...spec.template, spec: { ...spec.template.spec, volumes: [...claims, ...own] } }
    delete template.spec.hostname // the controller sets both
    delete template.spec.subdomain
    lastingTemplate(found, { selector: spec.selector, template }, "StatefulSet")
  } else found.invalid("spec.selector", spec.selector, "")
  return found.causes
}

export function validateStatefulSetUpdate(object: Json, old: Obj): Cause[] {
  const found = new Findings()
  found.causes.push(...validateStatefulSet(object))
  const fixed = { ...object.spec }
  for (const field of statefulSetMutable) fixed[field] = old.spec[field]
  if (!same(fixed, old.spec))
    found.forbidden(
      "spec",
      "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
    )
  return found.causes
}

const statefulSetMutable = [
  "replicas",
  "ordinals",
  "template",
  "updateStrategy",
  "revisionHistoryLimit",
  "persistentVolumeClaimRetentionPolicy",
  "minReadySeconds",
]

export function validateDaemonSet({ spec }: Json): Cause[] {
  const found = new Findings()
  const { template, selector } = spec
  const isGood = found.selector("spec.selector", selector)
  const labels = template.metadata?.labels
  if (isGood && !selects(selector, labels))
    found.invalid("spec.template.metadata.labels", labels ?? null, "`selector` does not match template `labels`")
  if (selector && isEmptySelector(selector))
    found.invalid("spec.selector", {}, "empty selector is invalid for daemonset")
  podTemplate(found, template, "spec.template")
  alwaysRestarts(found, template, "DaemonSet")
  found.notNegative("spec.minReadySeconds", spec.minReadySeconds)
  validateDaemonStrategy(found, spec.updateStrategy)
  found.notNegative("spec.revisionHistoryLimit", spec.revisionHistoryLimit)
  return found.causes
}

function validateDaemonStrategy(found: Findings, { type, rollingUpdate }: Json) {
  const path = "spec.updateStrategy"
  if (type === "OnDelete") return
  if (type !== "RollingUpdate")
    return found.unsupported(path, { Type: type, RollingUpdate: goRolling(rollingUpdate) }, [
      "RollingUpdate",
      "OnDelete",
    ])
  const { maxUnavailable, maxSurge } = rollingUpdate
  for (const check of ["intOrPercent", "atMostAll"] as const) {
    found[check](`${path}.rollingUpdate.maxUnavailable`, maxUnavailable)
    found[check](`${path}.rollingUpdate.maxSurge`, maxSurge)
  }
  if (!isZero(maxUnavailable) && !isZero(maxSurge))
    found.invalid(`${path}.rollingUpdate.maxSurge`, maxSurge, "may not be set when maxUnavailable is non-zero")
  if (isZero(maxUnavailable) && isZero(maxSurge))
    found.required(`${path}.rollingUpdate.maxUnavailable`, "cannot be 0 when maxSurge is 0")
}

/** The selector is immutable. `isFirst`: the server reports it before its other findings, not after them. */
export const keepsSelector =
  (validate: (object: Json) => Cause[], { isFirst = false } = {}) =>
  (object: Json, old: Obj): Cause[] => {
    const found = new Findings()
    found.immutable("spec.selector", object.spec.selector, old.spec.selector)
    return isFirst ? [...found.causes, ...validate(object)] : [...validate(object), ...found.causes]
  }

/** Counts in a status that contradict each other. */
export function validateCounts(fields: readonly string[], belowReplicas: readonly string[], readyWord: string) {
  return ({ status = {} }: Json): Cause[] => {
    const found = new Findings()
    for (const field of fields) found.notNegative(`status.${field}`, status[field])
    const { replicas = 0, availableReplicas = 0, readyReplicas = 0 } = status
    for (const field of belowReplicas)
      if ((status[field] ?? 0) > replicas)
        found.invalid(`status.${field}`, status[field], "cannot be greater than status.replicas")
    if (availableReplicas > readyReplicas)
      found.invalid("status.availableReplicas", availableReplicas, `cannot be greater than ${readyWord}`)
    return found.causes
  }
}
