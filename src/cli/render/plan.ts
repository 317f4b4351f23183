import type { Planned } from "#explain/serviceimage/planned.ts"
import type { Instant } from "#lib/instant.ts"
import { planLines } from "#operations/plan-words.ts"
import type { View } from "../command.ts"
import { paint } from "./paint.ts"
import { wrappedText } from "./wrap.ts"

/** `aim plan`, for one rollout. */
export function planText(
  planned: Planned,
  { view, now, program }: { view: View; now: Instant; program: string },
): string {
  const lines = planLines(planned, { now, program, paint: paint(view) })
  const shown = view.isTerminal ? lines.map(line => wrappedText(line, view.columns, 2)) : lines
  return `${shown.join("\n")}\n`
}
