import { formatDuration } from "#lib/duration.ts"
import type { Instant } from "#runtime/clock.ts"
import { apiVersionOf, type Resource, resourceName } from "#runtime/resource.ts"
import type { View } from "../command.ts"
import type { Rollout, Seen } from "../rollout.ts"
import { rolloutOf } from "../rollout.ts"
import { printable } from "./paint.ts"
import { countOf, paintState } from "./status.ts"
import { toYaml } from "./yaml.ts"

/** Columns as wide as their widest cell, two spaces between them, none at the end of a line. */
export function tableOf(
  rows: readonly (readonly string[])[],
  paintCell = (cell: string, _row: number, _column: number) => cell,
): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map(row => row[column]!.length)))
  return rows
    .map((row, y) =>
      row
        .map(
          (cell, x) => paintCell(cell, y, x) + (x === row.length - 1 ? "" : " ".repeat(widths[x]! - cell.length + 3)),
        )
        .join("")
        .trimEnd(),
    )
    .map(line => `${line}\n`)
    .join("")
}

/** `aim get`. */
export function rolloutTable(
  objects: readonly Seen[],
  { view, now, wide }: { view: View; now: Instant; wide: boolean },
): string {
  const rollouts = objects.map(rolloutOf)
  const head = [
    "NAME",
    "STATE",
    "PROGRESS",
    "PRIORITY",
    "IMAGE",
    "AGE",
    ...(wide ? ["TARGET", "REASON", "MESSAGE"] : []),
  ]
  const rows = rollouts.map(rollout => [
    rollout.name,
    rollout.state,
    rollout.state === "NotSeenYet" ? "-" : countOf(rollout),
    String(rollout.currentPriority),
    printable(imageOf(rollout)),
    rollout.createdAt ? formatDuration(Math.max(0, now - Date.parse(rollout.createdAt))) : "",
    ...(wide ? [rollout.target, rollout.reason, printable(rollout.message)] : []),
  ])
  return tableOf([head, ...rows], (cell, row, column) =>
    row > 0 && column === 1 ? paintState(view, rollouts[row - 1]!.state)(cell) : cell,
  )
}

/** The image being worked on, and that there are others. */
function imageOf({ tiers, currentPriority }: Rollout): string {
  const images = [...new Set(tiers.map(({ image }) => image))]
  const now = tiers.find(({ priority }) => priority === currentPriority)?.image ?? images[0] ?? ""
  return images.length > 1 ? `${now} +${images.length - 1}` : now
}

/** What every `-o` of get and status means, beyond the tables. */
export function machineReadable(
  objects: readonly Seen[],
  { format, resource, single }: { format: "json" | "yaml" | "name"; resource: Resource; single: boolean },
): string {
  if (format === "name")
    return objects
      .map(({ metadata }) => `${resourceName({ ...resource, plural: resource.kind.toLowerCase() })}/${metadata.name}\n`)
      .join("")
  const items = objects.map(({ metadata, ...object }) => {
    const { managedFields: _, ...shown } = metadata as typeof metadata & { managedFields?: unknown } // as kubectl does
    // A list leaves apiVersion and kind out of its items; whoever splits it again needs them.
    return { ...object, apiVersion: apiVersionOf(resource), kind: resource.kind, metadata: shown }
  })
  const value = single && items.length === 1 ? items[0] : { apiVersion: "v1", kind: "List", items }
  return format === "json" ? `${JSON.stringify(value, null, 2)}\n` : toYaml(value)
}
