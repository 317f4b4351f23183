import type { EndedRun, Gate } from "#api/v1alpha1/canary/index.ts"
import { formatDuration } from "#lib/duration.ts"
import { type Instant, parseInstant } from "#lib/instant.ts"
import { counted, printable } from "#lib/text.ts"
import type { Progress, RunShown } from "#operations/canary/progress.ts"
import type { View } from "../command.ts"
import { shortened } from "./image.ts"
import { titleOf } from "./kind.ts"
import { paint } from "./paint.ts"
import { tableOf } from "./table.ts"
import { wrappedText } from "./wrap.ts"

/** One Canary in one line: for logs, pipes and the progress of `aim wait`. */
export function canaryLine(progress: Progress): string {
  const { phase, weight, run, reason, message } = progress
  const share = run ? `, ${weight} % of the requests` : ""
  const why = [reason && reason !== phase ? reason : "", printable(message)].filter(Boolean).join(": ")
  return `${titleOf("canary", progress)} ${phase}${share}${why ? ` (${why})` : ""}`
}

type How = { program: string; now?: Instant }

/** The same with what is behind it. Without `now`, times do not count up: a line is printed only when something changed. */
export const canaryLines = (progress: Progress, how: How): string =>
  `${[canaryLine(progress), ...detailsOf(progress, how)].join("\n")}\n`

/** For a terminal. */
export function canaryBlock(progress: Progress, view: View, how: How): string {
  const { bold, dim, green, yellow, red } = paint(view)
  const { phase, state, name, namespace, reason, message, weight } = progress
  const paints = { NotSeenYet: dim, Stalled: red, Ready: green, NotReady: yellow }
  const markers = { NotSeenYet: "○", Stalled: "✗", Ready: "✓", NotReady: "●" }
  const why = [reason && reason !== phase ? reason : "", printable(message)].filter(Boolean).join(": ")
  const lines = [
    `${bold(name)}  ${paints[state](`${markers[state]} ${phase}`)}  ${namespace}`,
    ...(why ? [`  ${why}`] : []),
    ...(progress.run ? [`  ${bar(weight, view)}  ${weight} %`] : []),
    ...detailsOf(progress, how),
  ]
  return `${lines.map(line => wrappedText(line, view.columns, 2)).join("\n")}\n`
}

const barWidth = 40

function bar(weight: number, view: View): string {
  const { cyan, dim } = paint(view)
  const full = Math.round((weight * barWidth) / 100)
  return cyan("█".repeat(full)) + dim("░".repeat(barWidth - full))
}

function detailsOf(progress: Progress, { program, now }: How): string[] {
  const { run, failedChecks, threshold, history } = progress
  if (!run) return history[0] ? [`  last run  ${endedWords(history[0], now)}`] : []
  const { source, target, metrics, waits, next } = run
  const since = sinceWords(progress.weightSince, now)
  const share = `${progress.weight} % of the requests${since}${progress.isMirrored ? ", and a copy of all" : ""}`
  return [
    `  running  ${sideWords(source)}`,
    `  new      ${sideWords(target)}, ${share}${next === undefined ? "" : `, next ${next} %`}`,
    `  checks   ${failedChecks} of ${threshold} failed${run.iterations > 0 ? `, ${run.iterations} passed` : ""}`,
    ...metrics.map(({ name, verdict, value, message, count }) => {
      const times = count > 1 ? `, ${count} times` : ""
      return printable(
        `  metric   ${name} ${verdict}${value ? ` ${value}` : ""}${times}${message ? `: ${message}` : ""}`,
      )
    }),
    ...waits.map(gate => printable(`  waits    ${gateWords(gate, progress, program)}`)),
  ]
}

const sideWords = ({ image, hash, pods }: RunShown["source"]) =>
  printable(`${image || "?"} (${hash || "no pods yet"}), ${counted(pods, "pod")}`)

function sinceWords(at: string | undefined, now: Instant | undefined): string {
  const since = parseInstant(at)
  if (since === undefined) return ""
  return now === undefined ? ` since ${at}` : ` for ${formatDuration(Math.max(0, now - since))}`
}

/** What opens it: a person by a command, or a hook by its answer. */
function gateWords({ type, name, message, state }: Gate, { name: canary, namespace }: Progress, program: string) {
  if (type === "approval") return `approval (${name}): ${program} approve canary/${canary} -n ${namespace}`
  const said = state === "Refused" ? "said no" : "has not said yes"
  return `hook ${name} (${type}) ${said}${message ? `: ${message}` : ""}`
}

function endedWords({ result, reason, target, message, endedAt }: EndedRun, now: Instant | undefined): string {
  const ended = parseInstant(endedAt)
  const when =
    now === undefined || ended === undefined ? `at ${endedAt}` : `${formatDuration(Math.max(0, now - ended))} ago`
  const why = result === reason ? "" : ` (${reason}${message ? `: ${message}` : ""})`
  return printable(`${target.images?.[0] ?? target.hash} ${result} ${when}${why}`)
}

/** `aim history canary/NAME`. */
export function runTable(
  { run, history }: Pick<Progress, "run" | "history">,
  { view, now, wide }: { view: View; now: Instant; wide: boolean },
): string {
  const { red, green, cyan } = paint(view)
  const head = ["RUN", "FROM", "TO", "STARTED", "TOOK", "RESULT", "REASON", "APPROVED BY", ...(wide ? ["MESSAGE"] : [])]
  const image = ({ images, hash }: { images?: readonly string[]; hash: string }) => {
    const first = images?.[0]
    return printable((first && (wide ? first : shortened(first))) || hash || "-")
  }
  const when = (at: string) => {
    const began = parseInstant(at)
    if (began === undefined) return "-"
    return wide ? printable(at) : `${formatDuration(Math.max(0, now - began))} ago`
  }
  const took = (from: string, to: Instant | undefined) => {
    const began = parseInstant(from)
    return began === undefined || to === undefined ? "-" : formatDuration(Math.max(0, to - began))
  }
  const current = run
    ? [
        [
          printable(run.id),
          image({ images: [run.source.image], hash: run.source.hash }),
          image({ images: [run.target.image], hash: run.target.hash }),
          when(run.startedAt),
          took(run.startedAt, now),
          "InProgress",
          "",
          "",
          ...(wide ? [""] : []),
        ],
      ]
    : []
  // The last run stays in the status while its pods are there.
  const rows = history.map(({ id, source, target, startedAt, endedAt, result, reason, approvedBy, message }) => [
    printable(id),
    image(source),
    image(target),
    when(startedAt),
    took(startedAt, parseInstant(endedAt)),
    printable(result),
    printable(reason),
    printable(approvedBy ?? ""),
    ...(wide ? [printable(message ?? "")] : []),
  ])
  const shown = run && history[0]?.id === run.id ? rows : [...current, ...rows]
  const paints: Partial<Record<string, (text: string) => string>> = {
    Promoted: green,
    InProgress: cyan,
    RolledBack: red,
    Frozen: red,
  }
  return tableOf([head, ...shown], (cell, row, column) =>
    row > 0 && column === head.indexOf("RESULT") ? (paints[cell]?.(cell) ?? cell) : cell,
  )
}
