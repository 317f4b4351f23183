import type { ClusterGroupUpgradeSpec } from "#api/v1alpha1/clustergroupupgrade/index.ts"

/** Another run of the namespace, as far as one that waits for it looks. */
export type OtherRun = {
  blockers: readonly string[]
  outcome: "Running" | "Succeeded" | "Partial" | "Failed"
  completed: readonly string[]
}

export type Blocked =
  | { is: "Free"; onlyThese?: ReadonlySet<string> }
  | {
      is: "Blocked"
      reason: "MissingBlockingCR" | "IncompleteBlockingCR" | "FailedBlockingCR" | "UnresolvableDependency"
      message: string
    }

/** Whether the runs that this one waits for have succeeded, and which clusters they leave. */
export function blockedBy(
  name: string,
  blockingCRs: ClusterGroupUpgradeSpec["blockingCRs"],
  others: ReadonlyMap<string, OtherRun>,
): Blocked {
  const way = cycleFrom(
    name,
    blockingCRs.map(({ name }) => name),
    others,
  )
  if (way) {
    const message = `spec.blockingCRs lead back to this run: ${way.join(" waits for ")}; take one of them off`
    return { is: "Blocked", reason: "UnresolvableDependency", message }
  }
  let onlyThese: Set<string> | undefined
  for (const { name: blocker, completion, onlyItsCompleted } of blockingCRs) {
    const other = others.get(blocker)
    if (!other)
      return {
        is: "Blocked",
        reason: "MissingBlockingCR",
        message: `spec.blockingCRs: there is no ClusterGroupUpgrade ${blocker} in this namespace`,
      }
    const isEnough = other.outcome === "Succeeded" || (completion === "Partial" && other.outcome === "Partial")
    if (!isEnough && other.outcome !== "Running")
      return {
        is: "Blocked",
        reason: "FailedBlockingCR",
        message: `ClusterGroupUpgrade ${blocker} has ended without success: repair it, or take it off spec.blockingCRs`,
      }
    if (!isEnough)
      return { is: "Blocked", reason: "IncompleteBlockingCR", message: `waits for ClusterGroupUpgrade ${blocker}` }
    if (!onlyItsCompleted) continue
    const completed = new Set(other.completed)
    onlyThese = onlyThese ? new Set([...onlyThese].filter(each => completed.has(each))) : completed
  }
  return onlyThese ? { is: "Free", onlyThese } : { is: "Free" }
}

/** The way from a run back to itself: `a`, `b`, `a`. Each run is looked at once. */
function cycleFrom(
  name: string,
  blockers: readonly string[],
  others: ReadonlyMap<string, OtherRun>,
): string[] | undefined {
  const from = new Map<string, string>()
  const queue = blockers.map(blocker => ({ blocker, of: name }))
  for (let next = queue.shift(); next; next = queue.shift()) {
    const { blocker, of } = next
    if (blocker === name) {
      const way = [name]
      for (let at: string | undefined = of; at !== undefined && at !== name; at = from.get(at)) way.unshift(at)
      return [name, ...way]
    }
    if (from.has(blocker)) continue
    from.set(blocker, of)
    for (const each of others.get(blocker)?.blockers ?? []) queue.push({ blocker: each, of: blocker })
  }
  return undefined
}
