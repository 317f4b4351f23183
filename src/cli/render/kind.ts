import { formatDuration } from "#lib/duration.ts"
import type { Instant } from "#lib/instant.ts"
import { printable } from "#lib/text.ts"
import type { Column } from "#operations/columns.ts"
import type { KubeObject } from "#runtime/resource.ts"
import { type Standing, standingOf } from "#runtime/standing.ts"
import type { View } from "../command.ts"
import type { PlannedObject } from "../plan-kind.ts"
import { paint } from "./paint.ts"
import { tableOf } from "./table.ts"
import { wrappedText } from "./wrap.ts"

// Any kind of ours, as far as its conditions tell. ServiceImages and AlternateImageSources have more to show.

type Named = { name: string; namespace?: string | undefined }

/** `mo/ours -n shop` */
export const titleOf = (short: string, { name, namespace }: Named) =>
  `${short}/${name}${namespace === undefined ? "" : ` -n ${namespace}`}`

/** One object in one line: for logs, pipes and the progress of `aim wait`. */
export function standingLine(short: string, object: Named & Standing): string {
  const { state, reason, message } = object
  const why = [reason && reason !== state ? reason : "", printable(message)].filter(Boolean).join(": ")
  return `${titleOf(short, object)} ${state}${why ? ` (${why})` : ""}`
}

/** The head of one object for a terminal, and why it is in its state. */
export function standingBlock({ name, namespace, state, reason, message }: Named & Standing, view: View): string[] {
  const { bold, dim, green, yellow, red } = paint(view)
  const painted = { NotSeenYet: dim, Stalled: red, Ready: green, NotReady: yellow }[state]
  const marker = { NotSeenYet: "○", Stalled: "✗", Ready: "✓", NotReady: "●" }[state]
  const why = [reason, printable(message)].filter(Boolean).join(": ")
  const head = `${bold(name)}  ${painted(`${marker} ${state}`)}${namespace === undefined ? "" : `  ${namespace}`}`
  return [head, ...(why ? [`  ${why}`] : []).map(line => wrappedText(line, view.columns, 2))]
}

type How = { view: View; now: Instant; wide: boolean; widths?: number[]; everywhere: boolean }

/** `aim get KIND`. */
export function kindTable(
  objects: readonly KubeObject[],
  { view, now, wide, widths, everywhere }: How,
  own: readonly Column[] = [],
): string {
  const { dim, green, yellow, red } = paint(view)
  const colours = { NotSeenYet: dim, Stalled: red, Ready: green, NotReady: yellow }
  const standings = objects.map(standingOf)
  const rows = objects.map((object, index) => {
    const { state, reason, message } = standings[index]!
    const { name, namespace = "", creationTimestamp } = object.metadata
    const age = creationTimestamp ? formatDuration(Math.max(0, now - Date.parse(creationTimestamp))) : ""
    const cells = own.map(({ cell }) => cell(object))
    return [
      ...(everywhere ? [namespace] : []),
      ...[name, state, reason, ...cells, age],
      ...(wide ? [printable(message)] : []),
    ]
  })
  const head = [
    ...(everywhere ? ["NAMESPACE"] : []),
    ...["NAME", "STATE", "REASON", ...own.map(column => column.head), "AGE"],
    ...(wide ? ["MESSAGE"] : []),
  ]
  const stateAt = everywhere ? 2 : 1
  return tableOf(
    [head, ...rows],
    (cell, row, column) => (row > 0 && column === stateAt ? colours[standings[row - 1]!.state](cell) : cell),
    widths,
  )
}

/** `aim plan KIND/NAME`: what is written next. */
export function kindPlanText(plan: PlannedObject, { view, now, short }: { view: View; now: Instant; short: string }) {
  const { bold, dim } = paint(view)
  const { reason, message, next, details = [], lookAgainAt } = plan
  const again =
    lookAgainAt === undefined || lookAgainAt <= now ? "" : dim(`  checks again in ${formatDuration(lookAgainAt - now)}`)
  const lines = [
    `${bold(printable(titleOf(short, plan)))}  ${reason}${again}`,
    ...(message ? [`  ${printable(message)}`] : []),
    ...details.map(sentence => `  ${printable(sentence)}`),
    ...(next ? [next.length > 0 ? "  next:" : "  nothing to do"] : []),
    ...(next ?? []).map(phrase => `    ${printable(phrase)}`),
  ]
  const shown = view.isTerminal ? lines.map(line => wrappedText(line, view.columns, 2)) : lines
  return `${shown.join("\n")}\n`
}
