import { formatDuration } from "#lib/duration.ts"
import { counted } from "#lib/text.ts"
import type { Instant } from "#runtime/clock.ts"
import type { View } from "../command.ts"
import { leftWords, type Outlook, rateWords } from "../rate.ts"
import { isGoing, type Rollout, type State, type StepProgress, type TierProgress } from "../rollout.ts"
import { paint, printable } from "./paint.ts"

/** One rollout in one line: for logs, pipes and the progress of `aim wait`. */
export function progressLine(rollout: Rollout): string {
  const { name, state, reason, message, currentPriority, tiers } = rollout
  const counts = state === "NotSeenYet" ? "" : ` ${countOf(rollout)} ${goalOf(rollout)}`
  const priority = tiers.length > 1 && state === "InProgress" ? `, priority ${currentPriority}` : ""
  const why = [reason && reason !== state ? reason : "", printable(message)].filter(Boolean).join(": ")
  return `si/${name} ${state}${counts}${priority}${why ? ` (${why})` : ""}`
}

/** What a watch has learnt about a tier besides what the object says. */
export type Outlooks = (tier: TierProgress) => Outlook
const unknown: Outlooks = () => ({})

/** The same with its tiers, for a reader that is no terminal. */
export function statusLines(rollout: Rollout, outlooks = unknown): string {
  const lines = rollout.tiers.flatMap(tier => {
    const underWay = tier.updated > tier.upToDate ? `${tier.updated - tier.upToDate} under way` : ""
    const facts = [`${countOf(tier)} ${goalOf(rollout)}`, underWay, ...notesOf(tier, rollout, outlooks(tier))].filter(
      Boolean,
    )
    return [
      `  tier ${titleOf(tier, rollout)} priority ${tier.priority} ${tier.state} ${facts.join(", ")}${isGoingBack(rollout) ? "," : ""} ${imageWords(tier, rollout)}`,
      ...failureLines(tier).map(line => `    ${line}`),
    ]
  })
  return `${[progressLine(rollout), ...lostPodLines(rollout).map(line => `  ${line}`), ...lines].join("\n")}\n`
}

/** The same as a picture: a bar per tier, as wide as the window allows. */
export function statusBlock(rollout: Rollout, view: View, now: Instant, outlooks = unknown): string {
  const { bold, dim, red } = paint(view)
  const { tiers, state, reason, message, target } = rollout
  const names = Math.max(...tiers.map(tier => titleOf(tier, rollout).length))
  const counts = Math.max(...tiers.map(tier => countOf(tier).length))
  const priorities = Math.max(...tiers.map(tier => String(tier.priority).length))
  const bar = Math.max(10, Math.min(40, view.columns - names - counts - priorities - 40))
  const marker = paintState(view, state)(`${markers[state]} ${state}`)
  const head = [bold(rollout.name), marker, target, dim(elapsed(rollout, now))].filter(Boolean).join("  ")
  const why = [reason, printable(message)].filter(Boolean).join(": ")
  return `${[
    head,
    ...(why ? [`  ${dim(clip(why, view.columns - 2))}`] : []),
    ...lostPodLines(rollout).map(line => `  ${red(clip(line, view.columns - 2))}`),
    ...tiers.flatMap(tier => {
      const left = `  ${String(tier.priority).padStart(priorities)}  ${titleOf(tier, rollout).padEnd(names)}  `
      const right = `  ${countOf(tier).padStart(counts)}  `
      const room = Math.max(0, view.columns - left.length - bar - right.length)
      const image = imageWords(tier, rollout, room)
      const notes = notesOf(tier, rollout, outlooks(tier))
      const indent = " ".repeat(left.length)
      return [
        `${left}${barOf(tier, bar, view)}${right}${dim(image)}`,
        ...(notes.length > 0 ? [indent + dim(clip(notes.join(", "), view.columns - indent.length))] : []),
        ...failureLines(tier).map(line => indent + red(clip(line, view.columns - indent.length))),
      ]
    }),
  ].join("\n")}\n`
}

/** What there is to say of a tier beside its counts. What it waits for is named instead of a time that nobody knows. */
function notesOf(tier: TierProgress, { currentPriority }: Rollout, { perMinute, msLeft }: Outlook): string[] {
  const { step, awaitsApproval } = tier
  const goes = isGoing(tier)
  return [
    tier.unmanaged ? `${tier.unmanaged} unmanaged` : "",
    tier.ignoredFailures ? `${tier.ignoredFailures} failed and ignored` : "",
    step && tier.priority === currentPriority ? stepWords(step) : "",
    awaitsApproval ? "waits for approval" : "",
    goes && perMinute !== undefined ? rateWords(perMinute) : "",
    goes && msLeft !== undefined ? `${leftWords(msLeft)}${isPart(step) ? " in this step" : ""}` : "",
  ].filter(Boolean)
}

/** While an operation is taken back, done means that an object runs what it ran before it. */
const isGoingBack = ({ state }: Rollout) => state === "RollingBack" || state === "RolledBack"
const goalOf = (rollout: Rollout) => (isGoingBack(rollout) ? "as before" : "up to date")
const imageWords = ({ image }: TierProgress, rollout: Rollout, room = Number.POSITIVE_INFINITY) =>
  isGoingBack(rollout) ? `not ${shorten(printable(image), room - 4)}` : shorten(printable(image), room)

const isPart = (step: StepProgress | undefined) => step !== undefined && step.percent < 100

function stepWords({ percent, soaksUntil }: StepProgress): string {
  if (soaksUntil !== undefined) return `step ${percent}%, soaking until ${clockTime(soaksUntil)}`
  return percent < 100 ? `step ${percent}%` : ""
}

/** In UTC, as every other time that Kubernetes shows. */
const clockTime = (at: Instant) => `${new Date(at).toISOString().slice(0, 16).replace("T", " ")} UTC`

const lostPodLines = ({ lostPods }: Rollout) =>
  lostPods > 0 ? [`${counted(lostPods, "pod")} on nodes that no longer answer may still run another image`] : []

const markers: Record<State, string> = {
  RolledBack: "↩",
  RollingBack: "↩",
  Halted: "✗",
  Stalled: "✗",
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
    Complete: green,
    Paused: yellow,
    InProgress: cyan,
    Waiting: dim,
    NotSeenYet: dim,
  }[state]
}

/** Done, under way, to do. Anything begun shows at least one cell, and only all of it fills the bar. */
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

export const countOf = ({ upToDate, total }: { upToDate: number; total: number }) => `${upToDate}/${total}`

/** The tier without a name takes what no other tier names. */
const titleOf = ({ tier }: TierProgress, { tiers }: Rollout) => tier || (tiers.length > 1 ? "(default)" : "(all)")

const failureLines = (tier: TierProgress) =>
  tier.failures.map(({ reason, scope, count, examples }) => {
    const named = examples.map(printable).join(", ")
    const more = count > examples.length && examples.length > 0 ? ", …" : ""
    return `${scope === "All" ? "all" : count} failing: ${reason}${named ? ` (${named}${more})` : ""}`
  })

function elapsed({ startedAt, completedAt, state }: Rollout, now: Instant): string {
  if (!startedAt) return ""
  if (state === "RolledBack") return ""
  if (state === "Complete" && completedAt)
    return `done ${formatDuration(Math.max(0, now - Date.parse(completedAt)))} ago, took ${formatDuration(Math.max(0, Date.parse(completedAt) - Date.parse(startedAt)))}`
  return `for ${formatDuration(Math.max(0, now - Date.parse(startedAt)))}`
}

const clip = (text: string, room: number) => (text.length <= room ? text : `${text.slice(0, Math.max(0, room - 1))}…`)

/** Images differ at their end, so the beginning goes. */
function shorten(text: string, room: number): string {
  if (text.length <= room) return text
  return room < 2 ? "" : `…${text.slice(text.length - room + 1)}`
}
