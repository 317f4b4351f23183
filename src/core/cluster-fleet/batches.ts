import { budgetOf, countOf } from "../fleet/tiers.ts"

/** One batch of a plan. A canary is a batch of its own. */
export type PlannedBatch = { clusters: readonly string[]; isCanary: boolean }

/**
 * Canaries first, each alone and in their order, then the others in theirs. Clusters that have everything already are in
 * no batch: they get the actions after completion and nothing else.
 */
export function planBatches(given: {
  clusters: readonly string[]
  canaries: readonly string[]
  maxConcurrency: number | string
  isUpToDate?: (cluster: string) => boolean
}): PlannedBatch[] {
  const isUpToDate = given.isUpToDate ?? (() => false)
  const canaries = given.canaries.filter(name => given.clusters.includes(name) && !isUpToDate(name))
  const isCanary = new Set(given.canaries)
  const others = given.clusters.filter(name => !isCanary.has(name) && !isUpToDate(name))
  const size = batchSize(given.maxConcurrency, given.clusters.length)
  const batches: PlannedBatch[] = canaries.map(name => ({ clusters: [name], isCanary: true }))
  for (let from = 0; from < others.length; from += size)
    batches.push({ clusters: others.slice(from, from + size), isCanary: false })
  return batches
}

/** How many clusters a batch has: at least one, at most all. */
export const batchSize = (maxConcurrency: number | string, total: number) =>
  Math.max(1, Math.min(countOf(maxConcurrency, total), total))

/** How long a batch may be worked on: an equal share of what is left, and for the last one all of it. */
export const batchLimitMs = (given: { timeoutMs: number; workedBeforeMs: number; batchesLeft: number }) =>
  Math.max(0, given.timeoutMs - given.workedBeforeMs) / Math.max(1, given.batchesLeft)

/** How many clusters may fail or time out; undefined: any number. */
export const failuresAllowed = (failureBudget: number | string | undefined, total: number) =>
  failureBudget === undefined ? undefined : budgetOf(failureBudget, total)
