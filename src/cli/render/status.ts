import { formatDuration } from "#lib/duration.ts"
import { clip, counted, printable } from "#lib/text.ts"
import { leftWords, type Outlook, rateWords } from "#operations/rate.ts"
import {
  defaultTier,
  isGoing,
  type Rollout,
  type State,
  type StepProgress,
  type TierProgress,
} from "#operations/rollout.ts"
import { countOf, goalOf, isGoingBack, progressLine } from "#operations/words.ts"
import type { Instant } from "#runtime/clock.ts"
import type { View } from "../command.ts"
import { shortDigest } from "./image.ts"
import { paint } from "./paint.ts"
import { dayTime } from "./time.ts"
import { wrapped } from "./wrap.ts"

/** What a watch knows about a tier in addition to the object. */
export type Outlooks = (tier: TierProgress) => Outlook
const unknown: Outlooks = () => ({})

/** The same with its tiers, for output that is not a terminal. */
export function statusLines(rollout: Rollout, outlooks = unknown): string {
  const lines = rollout.tiers.flatMap(tier => {
    const underWay = tier.updated > tier.upToDate ? `${tier.updated - tier.upToDate} under way` : ""
    const facts = [`${countOf(tier)} ${goalOf(rollout)}`, underWay, ...notesOf(tier, rollout, outlooks(tier))].filter(
      Boolean,
    )
    return [
      `  ${tier.tier ? `tier ${tier.tier}` : defaultTier} priority ${tier.priority} ${tier.state} ${facts.join(", ")}${isGoingBack(rollout) ? "," : ""} ${imageWords(tier, rollout)}`,
      ...failureLines(tier).map(line => `    ${line}`),
    ]
  })
  return `${[progressLine(rollout), ...lostPodLines(rollout).map(line => `  ${line}`), ...lines].join("\n")}\n`
}

/** A rollout as a picture: a head, and each tier with its bar. */
export type Picture = { head: string[]; tiers: { tier: TierProgress; lines: string[]; isQuiet: boolean }[] }

/** Tier names are label values and may have 63 characters: a long one must not push the bars out of the window. */
const nameMax = (columns: number) => Math.max(12, Math.floor(columns * 0.3))

/** The same as a picture: a bar per tier, as wide as the window allows. */
export function pictureOf(rollout: Rollout, view: View, now: Instant, outlooks = unknown): Picture {
  const { bold, dim, red } = paint(view)
  const { tiers, state, reason, message, target } = rollout
  const nameOf = ({ tier }: TierProgress) => clip(tier || defaultTier, nameMax(view.columns))
  const names = Math.max(...tiers.map(tier => nameOf(tier).length))
  const counts = Math.max(...tiers.map(tier => countOf(tier).length))
  const priorities = Math.max(...tiers.map(tier => String(tier.priority).length))
  const bar = Math.max(10, Math.min(40, view.columns - names - counts - priorities - 40))
  const count = state === "NotSeenYet" ? "" : ` ${countOf(rollout)}`
  const marker = paintState(view, state)(`${markers[state]} ${state}${count}`)
  const name = bold(clip(rollout.name, Math.max(20, view.columns - 50)))
  const head = [name, marker, target, dim(elapsed(rollout, now))].filter(Boolean).join("  ")
  const why = [reason, printable(message)].filter(Boolean).join(": ")
  const below = (indent: number, text: string, painted: (text: string) => string) =>
    wrapped(text, Math.max(20, view.columns - indent)).map(line => " ".repeat(indent) + painted(line))
  return {
    head: [head, ...(why ? below(2, why, dim) : []), ...lostPodLines(rollout).flatMap(line => below(2, line, red))],
    tiers: tiers.map(tier => {
      const left = `  ${String(tier.priority).padStart(priorities)}  ${nameOf(tier).padEnd(names)}  `
      const right = `  ${countOf(tier).padStart(counts)}  `
      const room = Math.max(0, view.columns - left.length - bar - right.length)
      const image = imageWords(tier, rollout, room)
      const notes = notesOf(tier, rollout, outlooks(tier), now)
      return {
        tier,
        // Tiers without a failure or progress are left out first.
        isQuiet: tier.failures.length === 0 && !isGoing(tier) && tier.step === undefined && !tier.awaitsApproval,
        lines: [
          `${left}${barOf(tier, bar, view)}${right}${dim(image)}`.trimEnd(),
          ...(notes.length > 0 ? below(left.length, notes.join(", "), dim) : []),
          ...failureLines(tier).flatMap(line => below(left.length, line, red)),
        ],
      }
    }),
  }
}

/** All lines. */
export const statusBlock = (...of: Parameters<typeof pictureOf>): string => pictureText(pictureOf(...of))
const pictureText = ({ head, tiers }: Picture): string =>
  `${[...head, ...tiers.flatMap(({ lines }) => lines)].join("\n")}\n`

/**
 * As much of all of them as fits into the given lines, with a blank line in between. The rest is counted: inactive
 * tiers are left out first.
 */
export function fittedText(pictures: readonly Picture[], rows: number | undefined): string {
  const whole = pictures.map(pictureText).join("\n")
  if (rows === undefined || linesIn(whole) <= rows) return whole
  const blanks = pictures.length - 1
  let spare = rows - blanks - pictures.reduce((sum, { head }) => sum + head.length + 1, 0)
  if (spare < 0) {
    const lines = pictures.map(({ head }) => head[0]!)
    const shown = lines.slice(0, lines.length <= rows ? rows : rows - 1)
    const more = lines.length - shown.length
    return [...shown, ...(more > 0 ? [`… and ${counted(more, "more rollout")}`] : [])].map(line => `${line}\n`).join("")
  }
  return pictures
    .map(({ head, tiers }) => {
      const kept = new Set<Picture["tiers"][number]>()
      for (const each of [...tiers.filter(({ isQuiet }) => !isQuiet), ...tiers.filter(({ isQuiet }) => isQuiet)]) {
        if (each.lines.length > spare) break
        spare -= each.lines.length
        kept.add(each)
      }
      const left = tiers.filter(each => !kept.has(each)).map(({ tier }) => tier)
      const shown = tiers.filter(each => kept.has(each))
      return `${[...head, ...shown.flatMap(({ lines }) => lines), ...leftOut(left)].join("\n")}\n`
    })
    .join("\n")
}

const linesIn = (text: string) => text.split("\n").length - 1

/** `  … 33 more tiers: 12 complete, 21 waiting` */
function leftOut(tiers: readonly TierProgress[]): string[] {
  if (tiers.length === 0) return []
  const states = (["Complete", "InProgress", "Waiting", "Halted"] as const)
    .map(state => ({ state, count: tiers.filter(tier => tier.state === state).length }))
    .filter(({ count }) => count > 0)
    .map(
      ({ state, count }) =>
        `${count} ${{ Complete: "complete", InProgress: "in progress", Waiting: "waiting", Halted: "halted" }[state]}`,
    )
  return [`  … ${counted(tiers.length, "more tier")}: ${states.join(", ")}`]
}

/** Facts about a tier besides its counts. Where the time is not known, what it waits for is named instead. */
function notesOf(
  tier: TierProgress,
  { currentPriority, state }: Rollout,
  { perMinute, msLeft }: Outlook,
  now?: Instant,
): string[] {
  const { step, awaitsApproval, analysis } = tier
  const goes = isGoing(tier)
  return [
    tier.unmanaged ? `${tier.unmanaged} unmanaged` : "",
    tier.ignoredFailures ? `${tier.ignoredFailures} failed${state === "Halted" ? "" : " and ignored"}` : "",
    step && tier.priority === currentPriority ? stepWords(step, now) : "",
    analysis ? analysisWords(analysis) : "",
    awaitsApproval ? "waits for approval" : "",
    goes && perMinute !== undefined ? rateWords(perMinute) : "",
    goes && msLeft !== undefined ? `${leftWords(msLeft)}${isPart(step) ? " in this step" : ""}` : "",
  ].filter(Boolean)
}

/** The image that a tier gets; during a rollback, the image that it returns to, if known. */
function imageWords({ image, proven }: TierProgress, rollout: Rollout, room?: number): string {
  const shown = (text: string, prefix = "") =>
    room === undefined ? prefix + printable(text) : prefix + shorten(shortDigest(printable(text)), room - prefix.length)
  if (!isGoingBack(rollout)) return shown(image)
  return proven && proven !== image ? shown(proven, "back to ") : shown(image, "not ")
}

const isPart = (step: StepProgress | undefined) => step !== undefined && step.percent < 100

/** A countdown in a live view; elsewhere the end time, which stays true. */
function stepWords({ percent, soaksUntil }: StepProgress, now?: Instant): string {
  if (soaksUntil !== undefined && now !== undefined)
    return `step ${percent}%, soaking for ${formatDuration(Math.max(0, soaksUntil - now))} more`
  if (soaksUntil !== undefined) return `step ${percent}%, soaking until ${dayTime(soaksUntil)}`
  return percent < 100 ? `step ${percent}%` : ""
}

function analysisWords({ verdict, message, failedChecks }: NonNullable<TierProgress["analysis"]>): string {
  const failed = failedChecks > 0 ? ` (${counted(failedChecks, "failed check")})` : ""
  return `${verdict === "Good" ? "judged" : verdict} ${printable(message)}${failed}`
}

const lostPodLines = ({ lostPods }: Rollout) =>
  lostPods > 0 ? [`${counted(lostPods, "pod")} on nodes that no longer answer may still run another image`] : []

const markers: Record<State, string> = {
  RolledBack: "↩",
  RollingBack: "↩",
  Halted: "✗",
  Stalled: "✗",
  Degraded: "✗",
  Complete: "✓",
  Paused: "‖",
  InProgress: "●",
  Waiting: "○",
  NotSeenYet: "○",
}

export function paintState(view: Pick<View, "colours">, state: State): (text: string) => string {
  const { red, green, yellow, cyan, dim } = paint(view)
  return {
    RolledBack: red,
    RollingBack: yellow,
    Halted: red,
    Stalled: red,
    Degraded: red,
    Complete: green,
    Paused: yellow,
    InProgress: cyan,
    Waiting: dim,
    NotSeenYet: dim,
  }[state]
}

/** Done, under way, to do. Any progress shows at least one cell, and only completion fills the bar. */
function barOf({ total, updated, upToDate }: TierProgress, width: number, view: View): string {
  const { green, yellow, dim } = paint(view)
  const share = (count: number) => {
    if (total === 0 || count <= 0) return 0
    if (count >= total) return width
    return Math.min(width - 1, Math.max(1, Math.floor((count / total) * width)))
  }
  const done = share(upToDate)
  const begun = Math.max(done, share(updated))
  return green("█".repeat(done)) + yellow("▒".repeat(begun - done)) + dim("░".repeat(width - begun))
}

const failureLines = (tier: TierProgress) =>
  tier.failures.map(({ reason, scope, count, examples }) => {
    const named = examples.map(printable).join(", ")
    const more = count > examples.length && examples.length > 0 ? ", …" : ""
    return `${scope === "All" ? "all" : count} failing: ${reason}${named ? ` (${named}${more})` : ""}`
  })

function elapsed({ startedAt, endedAt, state }: Rollout, now: Instant): string {
  if (!startedAt) return ""
  if (state === "RolledBack") return ""
  if ((state === "Complete" || state === "Degraded") && endedAt)
    return `done ${formatDuration(Math.max(0, now - Date.parse(endedAt)))} ago, took ${formatDuration(Math.max(0, Date.parse(endedAt) - Date.parse(startedAt)))}`
  return `for ${formatDuration(Math.max(0, now - Date.parse(startedAt)))}`
}

/** Images differ at their end, so the beginning goes. */
function shorten(text: string, room: number): string {
  if (text.length <= room) return text
  return room < 2 ? "" : `…${text.slice(text.length - room + 1)}`
}
