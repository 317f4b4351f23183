import type { Stage } from "#explain/canary/outlook.ts"
import { formatDuration } from "#lib/duration.ts"
import { counted, printable } from "#lib/text.ts"
import type { PlannedCanary } from "../canary/plan.ts"
import type { World } from "../command.ts"
import { titleOf } from "./kind.ts"
import { paint } from "./paint.ts"
import { wrappedText } from "./wrap.ts"

const strategies = {
  Weighted: "rising weights",
  HeaderOrCookie: "A/B: requests that match go to the new revision",
  BlueGreen: "Blue/Green",
} as const

const kinds = { Refused: "does not work", NoEffect: "no effect", Missing: "missing" } as const

/** `aim plan canary/NAME`. */
export function canaryPlanText(plan: PlannedCanary, { view }: Pick<World, "view">): string {
  const { bold, yellow, red } = paint(view)
  const { state, objects, stages, gates, findings, addresses, configs, leastMs, isSkipped } = plan
  const now = state ? `${state.phase}${state.reason && state.reason !== state.phase ? ` (${state.reason})` : ""}` : ""
  const list = (title: string, items: readonly string[]) =>
    items.length > 0 ? [`  ${title}:`, ...items.map(item => printable(`    ${item}`))] : []
  const lines = [
    `${bold(printable(titleOf("canary", plan)))}  ${now}`.trimEnd(),
    `  ${isSkipped ? "without analysis: promoted when it is ready" : strategies[plan.strategy]}`,
    ...list(
      "objects",
      objects.map(({ object, what }) => `${object}  ${what}`),
    ),
    ...list("a run", [...stages.map(stage => stageWords(stage, plan)), promotionWords(plan)]),
    `  takes: ${isSkipped ? "as long as pods take to become ready" : `at least ${formatDuration(leastMs)}, and the time that pods take to become ready`}`,
    ...list("hooks and gates", gates),
    ...list(
      "configuration",
      configs.map(({ name, what }) => `${name}  ${what}`),
    ),
    ...findings.map(({ field, message, kind }) =>
      (kind === "Refused" ? red : yellow)(printable(`  ${kinds[kind]}: ${field}: ${message}`)),
    ),
    ...addresses.map(({ field, flag, why }) =>
      yellow(printable(`  address: ${field}: ${flag ? `an administrator must allow it with ${flag}: ${why}` : why}`)),
    ),
  ]
  const shown = view.isTerminal ? lines.map(line => wrappedText(line, view.columns, 4)) : lines
  return `${shown.join("\n")}\n`
}

function stageWords({ weight, isMirrored, intervals, pods }: Stage, { strategy, interval }: PlannedCanary): string {
  const of = strategy === "HeaderOrCookie" ? "of the requests that match" : "of the requests"
  const share = isMirrored ? `${weight} % ${of}, and a copy of each` : `${weight} % ${of}`
  const size = pods ? `, ${counted(pods.target, "pod")} beside ${pods.source}` : ""
  return `${share}${size}, for ${intervals === 1 ? interval : `${intervals} × ${interval}`}`
}

function promotionWords({ promotion, stages }: PlannedCanary): string {
  const full = stages[0]?.pods?.source
  const size = full === undefined ? "" : ` with ${counted(full, "pod")}`
  const way = promotion.length > 1 ? ` by ${promotion.map(weight => `${weight} %`).join(", ")}` : ""
  return `promotion: all requests${way}${size}; these pods stay, and the old ones go`
}
