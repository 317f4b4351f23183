import { scheduleProblem } from "#lib/cron.ts"
import type { Json, Obj } from "../object.ts"
import type { Cause } from "../status-error.ts"
import { same } from "./edit.ts"
import { Findings, selects } from "./findings.ts"
import { podTemplate } from "./pod-validation.ts"

export function validateJob({ metadata, spec }: Json): Cause[] {
  const found = new Findings()
  if (!spec.manualSelector && spec.selector) {
    const { uid, name } = metadata
    const expected = {
      "batch.kubernetes.io/controller-uid": uid,
      "batch.kubernetes.io/job-name": name,
      "controller-uid": uid,
      "job-name": name,
    }
    if (!selects(spec.selector, expected))
      found.invalid("spec.selector", spec.selector, "`selector` not auto-generated")
  }
  jobSpec(found, spec)
  return found.causes
}

function jobSpec(found: Findings, spec: Json) {
  jobTemplateSpec(found, spec, "spec")
  if (!spec.selector) found.required("spec.selector")
  else found.selector("spec.selector", spec.selector)
  const labels = spec.template.metadata?.labels
  if (!selects(spec.selector, labels))
    found.invalid("spec.template.metadata.labels", labels ?? null, "`selector` does not match template `labels`")
}

const counts = [
  "parallelism",
  "completions",
  "activeDeadlineSeconds",
  "backoffLimit",
  "ttlSecondsAfterFinished",
  "backoffLimitPerIndex",
  "maxFailedIndexes",
]

function jobTemplateSpec(found: Findings, spec: Json, path: string) {
  for (const count of counts) found.notNegative(`${path}.${count}`, spec[count])
  const { completionMode, completions, backoffLimitPerIndex, maxFailedIndexes } = spec
  if (maxFailedIndexes !== undefined && backoffLimitPerIndex === undefined)
    found.required(`${path}.backoffLimitPerIndex`, "when maxFailedIndexes is specified")
  if (completionMode) found.oneOf(`${path}.completionMode`, completionMode, ["NonIndexed", "Indexed"])
  if (completionMode === "Indexed" && completions === undefined)
    found.required(`${path}.completions`, "when completion mode is Indexed")
  if (completionMode === undefined || completionMode === "NonIndexed")
    for (const [field, value] of Object.entries({ backoffLimitPerIndex, maxFailedIndexes }))
      if (value !== undefined) found.invalid(`${path}.${field}`, value, "requires indexed completion mode")
  podTemplate(found, spec.template, `${path}.template`)
  const { restartPolicy } = spec.template.spec
  const field = `${path}.template.spec.restartPolicy`
  if (restartPolicy === "Always") found.required(field, 'valid values: "OnFailure", "Never"')
  else found.oneOf(field, restartPolicy, ["OnFailure", "Never"])
}

export function validateJobUpdate({ spec }: Json, old: Obj): Cause[] {
  const found = new Findings()
  jobSpec(found, spec)
  // An indexed job may grow and shrink if both numbers change together.
  const isElastic = spec.completionMode === "Indexed" && spec.completions === spec.parallelism
  if (!isElastic) found.immutable("spec.completions", spec.completions, old.spec.completions)
  found.immutable("spec.selector", spec.selector, old.spec.selector)
  validateTemplate(found, spec, old.spec)
  for (const field of ["completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"])
    found.immutable(`spec.${field}`, spec[field], old.spec[field])
  return found.causes
}

/** While a job is suspended, the scheduling fields and resources of its template may change. */
function validateTemplate(found: Findings, spec: Json, old: Json) {
  if (!old.suspend) return found.immutable("spec.template", spec.template, old.template)
  const containers = (list: Json[] | undefined, before: Json[] | undefined) =>
    list?.map((container, index) => ({ ...container, resources: before?.[index]?.resources }))
  const { containers: now, initContainers, nodeSelector: _, tolerations: __, ...rest } = spec.template.spec
  const fixed = {
    ...rest,
    containers: containers(now, old.template.spec.containers),
    initContainers: containers(initContainers, old.template.spec.initContainers),
  }
  const { nodeSelector: ___, tolerations: ____, ...before } = old.template.spec
  if (!same(fixed, before)) found.immutable("spec.template.spec", spec.template.spec, old.template.spec)
}

export function validateCronJob({ metadata, spec }: Json, old?: Obj): Cause[] {
  const found = new Findings()
  if (!spec.schedule) found.required("spec.schedule")
  else {
    const problem = scheduleProblem(spec.schedule)
    if (problem) found.invalid("spec.schedule", spec.schedule, problem)
    else if (spec.schedule.includes("TZ"))
      found.invalid("spec.schedule", spec.schedule, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead")
  }
  found.notNegative("spec.startingDeadlineSeconds", spec.startingDeadlineSeconds)
  if (spec.timeZone !== undefined && spec.timeZone !== old?.spec.timeZone) {
    if (spec.timeZone === "") found.invalid("spec.timeZone", "", "timeZone must be nil or non-empty string")
    else if (!isTimeZone(spec.timeZone))
      found.invalid("spec.timeZone", spec.timeZone, `unknown time zone ${spec.timeZone}`)
  }
  found.oneOf("spec.concurrencyPolicy", spec.concurrencyPolicy, ["Allow", "Forbid", "Replace"])
  jobTemplateSpec(found, spec.jobTemplate.spec, "spec.jobTemplate.spec")
  found.notNegative("spec.successfulJobsHistoryLimit", spec.successfulJobsHistoryLimit)
  found.notNegative("spec.failedJobsHistoryLimit", spec.failedJobsHistoryLimit)
  // Eleven characters are reserved for the names of its jobs.
  if (!old && metadata.name.length > 52)
    found.invalid("metadata.name", metadata.name, "must be no more than 52 characters")
  return found.causes
}

function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat("en", { timeZone: name })
    return true
  } catch {
    return false
  }
}
