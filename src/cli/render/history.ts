import type { HistoryEntry } from "#api/v1alpha1/serviceimage/index.ts"
import { formatDuration } from "#lib/duration.ts"
import { type Instant, parseInstant } from "#lib/instant.ts"
import { printable } from "#lib/text.ts"
import { countOf } from "#operations/words.ts"
import type { View } from "../command.ts"
import { shortened } from "./image.ts"
import { paint } from "./paint.ts"
import { tableOf } from "./table.ts"

/** As in the status, with the current operation; fields that an older controller did not write are missing. */
export type Happened = Pick<HistoryEntry, "id" | "startedAt" | "phase"> & Partial<HistoryEntry>

const isRunning = (phase: Happened["phase"]) => phase === "InProgress" || phase === "RollingBack"

/** `aim history`. */
export function historyTable(
  operations: readonly Happened[],
  { view, now, wide }: { view: View; now: Instant; wide: boolean },
): string {
  const { red, green, cyan } = paint(view)
  const head = ["OPERATION", "IMAGES", "STARTED", "TOOK", "UP TO DATE", "FAILED", "OUTCOME", ...(wide ? ["CAUSE"] : [])]
  const rows = operations.map(
    ({ id, images, startedAt, endedAt, phase, total = 0, upToDate = 0, failed = 0, cause }) => {
      const began = parseInstant(startedAt)
      const ended = parseInstant(endedAt) ?? (isRunning(phase) ? now : undefined)
      return [
        printable(id),
        printable(imagesOf(images ?? {}, wide)) || "-",
        began === undefined ? "-" : wide ? printable(startedAt) : `${formatDuration(Math.max(0, now - began))} ago`,
        began === undefined || ended === undefined ? "-" : formatDuration(Math.max(0, ended - began)),
        countOf({ upToDate, total }),
        String(failed),
        printable(phase),
        ...(wide ? [printable(cause ?? "")] : []),
      ]
    },
  )
  const paints: Partial<Record<string, (text: string) => string>> = {
    Complete: green,
    InProgress: cyan,
    Halted: red,
    RolledBack: red,
  }
  return tableOf([head, ...rows], (cell, row, column) =>
    row > 0 && column === head.indexOf("OUTCOME") ? (paints[cell]?.(cell) ?? cell) : cell,
  )
}

/** One image if all tiers have the same, otherwise tier by tier. */
function imagesOf(images: Readonly<Record<string, string>>, wide: boolean): string {
  const shown = (image: string) => (wide ? image : shortened(image))
  const all = Object.entries(images)
  if (new Set(Object.values(images)).size === 1) return shown(all[0]![1])
  return all
    .sort(([left], [right]) => (left < right ? -1 : 1))
    .map(([tier, image]) => (tier ? `${tier}=${shown(image)}` : shown(image)))
    .join(", ")
}
