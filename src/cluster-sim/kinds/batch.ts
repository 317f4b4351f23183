import type { Json } from "../object.ts"
import { validateCronJob, validateJob, validateJobUpdate } from "./batch-validation.ts"
import { age, containerCells, formatSelector, humanDuration, printBool, since } from "./cells.ts"
import type { Definition } from "./define.ts"
import { edit, editEach, fill, fillZero, set } from "./edit.ts"
import { templateDefaults } from "./pod-defaults.ts"

export const job: Definition = {
  apiVersion: "batch/v1",
  kind: "Job",
  hasGeneration: true,
  hasStatus: true,
  strategy: {
    default(object) {
      const given = object.spec ?? {}
      let spec = set(given, "template", templateDefaults(given.template))
      if (spec.completions === undefined && spec.parallelism === undefined) spec = fill(spec, { completions: 1 })
      spec = fill(spec, {
        parallelism: 1,
        backoffLimit: spec.backoffLimitPerIndex === undefined ? 6 : 2 ** 31 - 1,
        completionMode: "NonIndexed",
        suspend: false,
        podReplacementPolicy: spec.podFailurePolicy ? "Failed" : "TerminatingOrFailed",
        manualSelector: false,
      })
      spec = edit(spec, "podFailurePolicy", policy =>
        editEach(policy, "rules", rule =>
          editEach(rule, "onPodConditions", pattern => fillZero(pattern, { status: "True" })),
        ),
      )
      const labels = spec.template.metadata?.labels
      const next = set(object, "spec", spec)
      if (!labels || Object.keys(object.metadata?.labels ?? {}).length > 0) return next
      return set(next, "metadata", { ...next.metadata, labels })
    },
    prepareCreate: object => set(generateSelector(object), "status", {}),
    validateCreate: validateJob,
    validateUpdate: validateJobUpdate,
    selectableFields: ({ status }) => ({ "status.successful": String(status?.succeeded ?? 0) }),
  },
  row(object, nowMs) {
    const { metadata, spec, status = {} } = object
    const { startTime, completionTime, succeeded = 0 } = status
    const has = (wanted: string) => status.conditions?.find(({ type }: Json) => type === wanted)?.status === "True"
    const word = has("Complete")
      ? "Complete"
      : has("Failed")
        ? "Failed"
        : metadata.deletionTimestamp
          ? "Terminating"
          : (["Suspended", "FailureTarget", "SuccessCriteriaMet"].find(has) ?? "Running")
    const of = spec.completions ?? (spec.parallelism > 1 ? `1 of ${spec.parallelism}` : 1)
    const end = completionTime ? Date.parse(completionTime) : nowMs
    return [
      metadata.name,
      word,
      `${succeeded}/${of}`,
      startTime ? humanDuration(end - Date.parse(startTime)) : "",
      age(object, nowMs),
      ...containerCells(spec.template.spec),
      formatSelector(spec.selector),
    ]
  },
}

const controllerUid = "batch.kubernetes.io/controller-uid"
const jobName = "batch.kubernetes.io/job-name"

/** A job selects its pods by its own uid, unless the user gives a selector. */
function generateSelector(object: Json): Json {
  const { spec, metadata } = object
  if (spec.manualSelector) return object
  const { name, uid } = metadata
  const labels = { ...spec.template.metadata?.labels }
  for (const [key, value] of [
    [controllerUid, uid],
    [jobName, name],
    ["controller-uid", uid],
    ["job-name", name],
  ])
    labels[key] ??= value
  const template = set(spec.template, "metadata", { ...spec.template.metadata, labels })
  // Labels defaulted from the template are shared with it, so labels added here appear in both.
  const isShared = !metadata.labels || metadata.labels === spec.template.metadata?.labels
  const matchLabels = { ...spec.selector?.matchLabels }
  matchLabels[controllerUid] ??= uid
  const next = set(object, "spec", { ...spec, template, selector: { ...spec.selector, matchLabels } })
  return isShared ? set(next, "metadata", { ...metadata, labels }) : next
}

export const cronJob: Definition = {
  apiVersion: "batch/v1",
  kind: "CronJob",
  hasGeneration: true,
  hasStatus: true,
  strategy: {
    default(object) {
      let spec = fillZero(object.spec ?? {}, { concurrencyPolicy: "Allow" })
      spec = fill(spec, { suspend: false, successfulJobsHistoryLimit: 3, failedJobsHistoryLimit: 1 })
      // Jobs get their defaults when they are created. Here only the pod template gets defaults.
      const template = spec.jobTemplate ?? {}
      const jobSpec = template.spec ?? {}
      const next = set(jobSpec, "template", templateDefaults(jobSpec.template))
      return set(object, "spec", set(spec, "jobTemplate", set(template, "spec", next)))
    },
    prepareCreate: object => set(object, "status", {}),
    validateCreate: object => validateCronJob(object),
    validateUpdate: validateCronJob,
  },
  row(object, nowMs) {
    const { spec, status = {} } = object
    return [
      object.metadata.name,
      spec.schedule,
      spec.timeZone ?? "<none>",
      printBool(spec.suspend),
      status.active?.length ?? 0,
      status.lastScheduleTime ? since(status.lastScheduleTime, nowMs) : "<none>",
      age(object, nowMs),
      ...containerCells(spec.jobTemplate.spec.template.spec),
      formatSelector(spec.jobTemplate.spec.selector),
    ]
  },
}
