import type { Attention, Row } from "#web/wire.ts"
import type { OverviewFilter } from "./address.ts"

/** Which rows are shown, and in which order. */
export function overviewRows(rows: readonly Row[], { search, kinds, states, sort }: OverviewFilter): Row[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean)
  const isShown = (row: Row) =>
    (kinds.length === 0 || kinds.includes(row.kind)) &&
    (states.length === 0 || states.includes(row.state)) &&
    words.every(word => textOf(row).includes(word))
  return rows.filter(isShown).sort(orders[sort])
}

const textOf = (row: Row) =>
  [row.id, row.state, row.reason, row.message, "image" in row ? row.image : "", "target" in row ? row.target : ""]
    .join(" ")
    .toLowerCase()

const ranks: Record<Attention, number> = { Act: 0, Look: 1, None: 2 }
/** Rollouts before what serves them. */
const views: readonly Row["view"][] = ["rollout", "source", "canary", "workload", "recreate", "pull", "plain"]
const byName = (a: Row, b: Row) => (a.id < b.id ? -1 : a.id > b.id ? 1 : a.kind < b.kind ? -1 : 1)

/** Within the same attention, what is under way comes before what rests. */
const restingStates = new Set(["Complete", "Ready", "RolledBack"])
const restOf = ({ state }: Row) => (restingStates.has(state) ? 1 : 0)

const orders: Record<OverviewFilter["sort"], (a: Row, b: Row) => number> = {
  attention: (a, b) =>
    ranks[a.attention] - ranks[b.attention] ||
    restOf(a) - restOf(b) ||
    views.indexOf(a.view) - views.indexOf(b.view) ||
    byName(a, b),
  name: byName,
  progress: (a, b) => shareOf(a) - shareOf(b) || byName(a, b),
  age: (a, b) => (b.since ?? b.createdAt ?? 0) - (a.since ?? a.createdAt ?? 0) || byName(a, b),
}

/** Done of all, from 0 to 1; kinds without a progress come last. */
function shareOf(row: Row): number {
  if (!("progress" in row)) return 2
  const { done, total } = row.progress
  return total === 0 ? 1 : done / total
}

/** Each value with how often it occurs, the most frequent first. */
export function tally(values: Iterable<string>): { value: string; count: number }[] {
  const counts = new Map<string, number>()
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1)
  return [...counts]
    .map(([value, count]) => ({ value, count }))
    .sort((a, b) => b.count - a.count || (a.value < b.value ? -1 : 1))
}

export const needsSomebody = (rows: Iterable<Row>): number =>
  [...rows].filter(({ attention }) => attention === "Act").length

/** `(3) AutoImageManager`: how many need a person, readable in a tab that is not in front. */
export function titleOf({ waiting, shown }: { waiting: number; shown?: Row }): string {
  const count = waiting > 0 ? `(${waiting}) ` : ""
  if (!shown) return `${count}AutoImageManager`
  const progress = "progress" in shown ? ` ${shown.progress.done}/${shown.progress.total}` : ""
  return `${count}${shown.name} ${shown.state}${progress} · AutoImageManager`
}
