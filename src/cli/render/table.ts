import type { AlternateImageSource } from "#api/v1alpha1/alternateimagesource/index.ts"
import { imageInWork } from "#core/fleet/rollout-state.ts"
import { formatDuration } from "#lib/duration.ts"
import { printable } from "#lib/text.ts"
import type { Rollout, Seen } from "#operations/rollout.ts"
import { rolloutOf } from "#operations/rollout.ts"
import { countOf } from "#operations/words.ts"
import type { Instant } from "#runtime/clock.ts"
import { apiVersionOf, type KubeObject, type Resource, resourceName } from "#runtime/resource.ts"
import type { View } from "../command.ts"
import { paint } from "./paint.ts"
import { paintState } from "./status.ts"
import { toYaml } from "./yaml.ts"

/** Columns as wide as their widest cell, two spaces between them, none at the end of a line. */
export function tableOf(
  rows: readonly (readonly string[])[],
  paintCell = (cell: string, _row: number, _column: number) => cell,
  /** For a table that is continued: at least as wide as before. */
  least: number[] = [],
): string {
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(least[column] ?? 0, ...rows.map(row => row[column]!.length)),
  )
  least.splice(0, least.length, ...widths)
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

type How = { view: View; now: Instant; wide: boolean; widths?: number[] }

/** `aim get`. */
export function rolloutTable(objects: readonly Seen[], { view, now, wide, widths }: How): string {
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
  return tableOf(
    [head, ...rows],
    (cell, row, column) => (row > 0 && column === 1 ? paintState(view, rollouts[row - 1]!.state)(cell) : cell),
    widths,
  )
}

/** `aim get ais`: the columns that the server prints for kubectl. */
export function sourceTable(
  objects: readonly AlternateImageSource[],
  { view, now, wide, widths, everywhere }: How & { everywhere: boolean },
): string {
  const { green, yellow, red } = paint(view)
  const ready = objects.map(({ status }) => status?.conditions.find(({ type }) => type === "Ready"))
  const head = ["NAME", "READY", "REASON", "TARGETS", "SWITCHED", "INCIDENTS", "AGE", ...(wide ? ["MESSAGE"] : [])]
  const rows = objects.map(({ metadata, status }, index) => [
    metadata.name,
    ready[index]?.status ?? "-",
    ready[index]?.reason ?? "NotSeenYet",
    ...[status?.targets, status?.switched, status?.incidents].map(count => (count === undefined ? "-" : String(count))),
    metadata.creationTimestamp ? formatDuration(Math.max(0, now - Date.parse(metadata.creationTimestamp))) : "",
    ...(wide ? [printable(ready[index]?.message ?? "")] : []),
  ])
  const named = (row: string[], namespace: string) => (everywhere ? [namespace, ...row] : row)
  const reasonAt = everywhere ? 3 : 2
  return tableOf(
    [named(head, "NAMESPACE"), ...rows.map((row, index) => named(row, objects[index]!.metadata.namespace ?? ""))],
    (cell, row, column) => {
      if (row === 0 || column !== reasonAt) return cell
      const { conditions = [], switched = 0 } = objects[row - 1]!.status ?? {}
      const isStalled = conditions.some(({ type, status }) => type === "Stalled" && status === "True")
      const isReady = ready[row - 1]?.status === "True"
      return isStalled ? red(cell) : isReady && switched === 0 ? green(cell) : yellow(cell)
    },
    widths,
  )
}

/** The current image, and how many others there are; after a rollback, the image that was restored. */
const imageOf = ({ tiers, currentPriority, state }: Rollout) =>
  imageInWork(
    tiers.map(({ image, proven, priority }) => ({
      priority,
      image: ((state === "RolledBack" || state === "RollingBack") && proven) || image,
    })),
    currentPriority,
  )

/** The formats of `-o` of get and status, other than tables. */
export function machineReadable(
  objects: readonly KubeObject[],
  { format, resource, single }: { format: "json" | "yaml" | "name"; resource: Resource; single: boolean },
): string {
  if (format === "name")
    return objects
      .map(({ metadata }) => `${resourceName({ ...resource, plural: resource.kind.toLowerCase() })}/${metadata.name}\n`)
      .join("")
  const items = objects.map(({ metadata, ...object }) => {
    const { managedFields: _, ...shown } = metadata as typeof metadata & { managedFields?: unknown } // as kubectl does
    // A list leaves apiVersion and kind out of its items; they are needed when it is split.
    // In the usual order of a manifest.
    const { apiVersion: _a, kind: _k, ...rest } = object
    return { apiVersion: apiVersionOf(resource), kind: resource.kind, metadata: shown, ...rest }
  })
  const value = single && items.length === 1 ? items[0] : { apiVersion: "v1", kind: "List", items }
  return format === "json" ? `${JSON.stringify(value, null, 2)}\n` : toYaml(value)
}
