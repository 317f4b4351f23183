import type { ImageRecord } from "#core/image/record.ts"
import { formatDuration } from "#lib/duration.ts"
import { formatInstant, type Instant } from "#lib/instant.ts"
import { printable } from "#lib/text.ts"
import type { View } from "../command.ts"
import { paint } from "./paint.ts"
import { wrapped } from "./wrap.ts"

/** What every answer of `aim why` has. */
export type Answered = {
  reason: string
  sentences: string[]
  since?: Instant | undefined
  lastDecision?: ImageRecord | undefined
}

/** `aim why`: the reason, since when, and the sentences, wrapped at the width of the window. */
export function whyText(
  { reason, sentences, since, lastDecision }: Answered,
  { view, now }: { view: View; now: Instant },
): string {
  const { bold, dim } = paint(view)
  const age =
    since === undefined ? "" : `  ${dim(`since ${formatInstant(since)} (${formatDuration(Math.max(0, now - since))})`)}`
  const decision = lastDecision && [
    `last decision: ${formatInstant(lastDecision.at)} by ${lastDecision.by}, operation ${lastDecision.operation} (${lastDecision.reason}): ${lastDecision.from || "no image"} → ${lastDecision.to}`,
  ]
  const wrap = (text: string) => (view.isTerminal ? wrapped(printable(text), view.columns) : [printable(text)])
  return `${[bold(reason) + age, ...sentences.flatMap(wrap), ...(decision ?? []).flatMap(wrap).map(dim)].join("\n")}\n`
}
