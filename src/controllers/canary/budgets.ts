import type { BudgetSeen } from "#core/canary/sight.ts"
import { type LabelSelector, selects } from "#lib/label-selector.ts"
import type { Json, PodSeen } from "./facts.ts"
import type { Near } from "./world.ts"

const isThere = ({ isFinished, isTerminating }: PodSeen) => !isFinished && !isTerminating

/** The budgets over pods of these owners, with what they select. The pods of a namespace are counted only for these. */
export function budgetsOver(near: Near, owners: readonly string[], hashLabel: string): readonly BudgetSeen[] {
  const own = owners.flatMap(owner => [...near.pods.keysBy("owner", owner)].flatMap(key => near.pods.get(key) ?? []))
  return [...near.budgets.entries()].flatMap(([, { object }]) => {
    const { metadata, spec = {}, status = {} } = object as Json
    const isCovered = ({ labels }: PodSeen) => selects(spec.selector as LabelSelector | undefined, labels)
    const covered = own.filter(pod => isThere(pod) && isCovered(pod))
    if (covered.length === 0) return []
    const all = [...near.pods.entries()].map(([, pod]) => pod).filter(pod => isThere(pod) && isCovered(pod))
    const byRevision = Object.groupBy(covered, ({ labels }) => labels[hashLabel] ?? "")
    return [
      {
        name: metadata.name,
        minAvailable: spec.minAvailable,
        maxUnavailable: spec.maxUnavailable,
        expected: status.expectedPods ?? 0,
        all: countOf(all),
        own: Object.fromEntries(Object.entries(byRevision).map(([hash, pods]) => [hash, countOf(pods ?? [])])),
      },
    ]
  })
}

const countOf = (pods: readonly PodSeen[]) => ({
  there: pods.length,
  ready: pods.filter(({ isReady }) => isReady).length,
})
