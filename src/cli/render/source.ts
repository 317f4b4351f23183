import { formatDuration } from "#lib/duration.ts"
import { type Instant, parseInstant } from "#lib/instant.ts"
import { counted, printable } from "#lib/text.ts"
import type { Source, Switch } from "#operations/source.ts"
import type { View } from "../command.ts"
import type { PlannedSource } from "../plan-sources.ts"
import { standingBlock, standingLine } from "./kind.ts"
import { paint } from "./paint.ts"
import { tableOf } from "./table.ts"
import { wrappedText } from "./wrap.ts"

/** One AlternateImageSource as lines, with the containers that do not run as their workload says. */
export function sourceLines(source: Source): string {
  const lines = source.astray.map(({ target, container, from, incident }) => {
    const why = incident ? ` (${incident.reason} since ${incident.since}: ${incident.image})` : ""
    return printable(`  ${target} ${container} is pulled from ${from}${why}`)
  })
  const rest = source.targets - source.astray.length
  const others =
    rest > 0
      ? [`  ${counted(rest, source.astray.length > 0 ? "other container" : "container")} as the workload says`]
      : []
  return `${[standingLine("ais", source), ...lines, ...others].join("\n")}\n`
}

/** The same for a terminal. */
export function sourceBlock(source: Source, view: View): string {
  const [, ...lines] = sourceLines(source).trimEnd().split("\n")
  return `${[...standingBlock(source, view), ...lines.map(line => wrappedText(line, view.columns, 2))].join("\n")}\n`
}

/** `aim plan ais/NAME`: which image each container gets next, and what the others wait for. */
export function sourcePlanText(plan: PlannedSource, { view, now }: { view: View; now: Instant }): string {
  const { bold, dim } = paint(view)
  const { name, namespace, reason, message, targets, next, waits } = plan
  const again = (at: Instant | undefined) =>
    at === undefined || at <= now ? "" : dim(`  checks again in ${formatDuration(at - now)}`)
  const lines = [
    `${bold(printable(`ais/${name}`))} -n ${namespace}  ${reason}  ${counted(targets, "container")}`,
    `  ${message}`,
    ...(next.length > 0 ? ["  next:"] : []),
    ...next.map(({ workload, container, from, to, reason: why, pods }) => {
      const what = pods === undefined ? "the workload itself" : counted(pods, "pod")
      return printable(`    ${workload} ${container}  ${from} → ${to}  ${why}`) + dim(`  ${what}`)
    }),
    ...(waits.length > 0 ? ["  waits:"] : []),
    ...waits.map(({ workload, container, image, reason: why, asks, lookAgainAt }) => {
      const asked = asks.length > 0 ? `, asks first: ${asks.join(", ")}` : ""
      return printable(`    ${workload} ${container}  ${image}  ${why}${asked}`) + again(lookAgainAt)
    }),
    ...(next.length + waits.length === 0 ? ["  nothing to do"] : []),
  ]
  const shown = view.isTerminal ? lines.map(line => wrappedText(line, view.columns, 2)) : lines
  return `${shown.join("\n")}\n`
}

/** `aim history ais/NAME`: what was switched, the newest first. */
export function switchTable(switches: readonly Switch[], { now, wide }: { now: Instant; wide: boolean }): string {
  const head = ["WHEN", "WORKLOAD", "CONTAINER", "FROM", "TO", "REASON", "PODS"]
  const rows = switches.map(({ time, target, container, oldImage, newImage, reason, pods }) => {
    const at = parseInstant(time)
    const when = wide || at === undefined ? time : `${formatDuration(Math.max(0, now - at))} ago`
    return [when, target, container, oldImage, newImage, reason ?? "", pods === undefined ? "-" : String(pods)].map(
      printable,
    )
  })
  return tableOf([head, ...rows])
}
