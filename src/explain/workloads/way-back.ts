import { hasImages, podsOf, type Revision, readWorkload, revisionsOf, type Sight, type WorkloadFacts } from "./facts.ts"

export type WayBack = {
  /** Where a rollback without a number goes. */
  readonly to: Revision | undefined
  /** Revisions that it does not go to, because an update to them failed or was taken back. */
  readonly failed: readonly Revision[]
}

/**
 * Of the revisions that are not what the workload says now, one that pods have proven: what the StatefulSet controller
 * counts as current, what ready pods run, or what the last update came from. Otherwise the newest. A set keeps a
 * revision of every template that was ever written, those that failed included.
 */
export function wayBack(sight: Sight): WayBack {
  const workload = readWorkload(sight.workload)
  const pods = podsOf(sight)
  const ready = new Set(pods.flatMap(({ name, isReady }) => (isReady ? [name] : [])))
  const tried = [unproven(workload), ...pods.flatMap(({ mark }) => (mark?.failed === undefined ? [] : [mark.from]))]
  const hasFailed = ({ template }: Revision) => tried.some(images => images && hasImages(template, images))
  const others = revisionsOf(sight).filter(({ isPresent }) => !isPresent)
  const usable = others.filter(each => !hasFailed(each))
  const to =
    usable.find(({ name }) => name === workload.status.currentRevision) ??
    usable.find(each => each.pods.some(name => ready.has(name))) ??
    usable.find(({ template }) => cameFrom(workload, template)) ??
    usable[0]
  return { to, failed: others.filter(hasFailed) }
}

/** The images of an update that was rolled back, or that its owner took back before it was complete. */
function unproven({ note }: WorkloadFacts) {
  if (note?.isTakenBack) return note.from
  return note && (note.failed !== undefined || note.reason === "RolledBack") ? note.to : undefined
}

/** The last update has brought the pods from this template to the present one. */
const cameFrom = ({ note, template: present }: WorkloadFacts, template: Revision["template"]) =>
  note?.reason === "Completed" && !note.isTakenBack && hasImages(present, note.to) && hasImages(template, note.from)
