import { unavailableOf } from "#core/in-place/budget.ts"
import type { WorkloadNote } from "#core/in-place/marks.ts"
import { nextWrites, type PodsNext } from "#core/in-place/next.ts"
import type { PodFacts } from "#core/in-place/pod.ts"
import { parseSettings, type Settings } from "#core/in-place/settings.ts"
import { annotationsOf, imagesOf, labelsOf } from "#core/in-place/template.ts"
import type { Snapshot } from "./plan.ts"

/**
 * After a release that was no completion: the pods that were changed and that no rollout replaces, because the template
 * is again the one that they count as. They go back one after the other, within the same budgets. Undefined where there is
 * none. One that fails is left, since nothing better than the template can be done for it, and the others go on.
 */
export function takingBack(
  seen: Snapshot,
  operation: string,
  failed: ReadonlySet<string> = new Set(),
): { next: PodsNext; note: WorkloadNote } | undefined {
  const { workload, native } = seen
  const { note, template } = workload
  if (!note || isCompletion(note)) return undefined
  const hold = note.operation.slice(0, note.operation.indexOf("-") + 1)
  const isChanged = ({ mark }: PodFacts) =>
    mark !== undefined && (mark.operation === operation || mark.operation.startsWith(hold))
  const pods = seen.pods.filter(pod => isChanged(pod) && native.keeps(pod) && !failed.has(pod.name))
  if (pods.length === 0) return undefined
  const settings = settingsOf(workload.annotations)
  const missing = Math.max(0, workload.replicas - seen.pods.length)
  const down = seen.pods.filter(pod => !pods.includes(pod) && !pod.isReady).length + missing
  const allowed = Math.max(1, unavailableOf(workload.maxUnavailable, settings, workload.replicas))
  const next = nextWrites({
    pods,
    target: {
      operation,
      images: imagesOf(template),
      labels: labelsOf(template),
      annotations: annotationsOf(template),
      touched: note.touched,
      minReadyMs: workload.minReadySeconds * 1000,
      deadlineMs: workload.deadlineSeconds * 1000,
    },
    settings,
    replicas: pods.length,
    maxUnavailable: allowed - down,
    disruptions: seen.disruptions,
    // It is the image of the template: every new pod gets it.
    missingOn: () => undefined,
    noAgentOn: () => undefined,
    isAsked: seen.isAsked,
    evidence: {
      digestOn: () => undefined,
      upSince: seen.upSince,
      drainedSince: seen.drainedSince,
      nodeOf: seen.nodeOf,
      now: seen.now,
    },
  })
  if (next.failures.length > 0)
    return takingBack(seen, operation, new Set([...failed, ...next.failures.map(({ pod }) => pod)]))
  return next.isDone ? undefined : { next, note }
}

/** Fenced: every pod had been proven. */
const isCompletion = ({ reason, fence }: WorkloadNote) =>
  fence !== undefined && (reason === "Completed" || reason === "RolledBack")

/** Only the grace period and the budget are as they were asked for. */
function settingsOf(annotations: Readonly<Record<string, string>>): Settings {
  const parsed = parseSettings(annotations)
  const { graceSeconds = 0, maxUnavailable } = parsed.ok ? parsed.settings : {}
  const plain = {
    strategy: "InPlaceIfPossible",
    partition: { count: 0 },
    containerOrder: [],
    isUnverified: true,
  } as const
  return { ...plain, graceSeconds, ...(maxUnavailable && { maxUnavailable }), onFailure: "Stop" }
}
