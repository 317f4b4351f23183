import { formatDuration } from "#lib/duration.ts"
import type { ActionName, CellState, HistoryEntry, Lane, Tick } from "#web/wire.ts"

/** How a state looks: by colour, and by a sign where colours cannot be told apart. */
export type Tone = "good" | "busy" | "calm" | "warn" | "bad" | "mute"

/** What a cell says. The signs are also drawn on the map. */
export const cellWords: Record<CellState, { word: string; tone: Tone; help: string }> = {
  Failed: {
    word: "failed",
    tone: "bad",
    help: "not up to date within its deadline, or with a failure that does not heal",
  },
  Failing: { word: "failing", tone: "warn", help: "has the new image and shows a failure; its deadline is not over" },
  Regressed: { word: "regressed", tone: "bad", help: "was up to date and lost its health" },
  Updating: { word: "updating", tone: "busy", help: "has the new image and is not up to date yet" },
  Settling: { word: "settling", tone: "busy", help: "is up to date, and must stay so for a while" },
  Waiting: { word: "waiting", tone: "calm", help: "has another image, until it is its turn" },
  Blank: { word: "without an image", tone: "calm", help: "has no image yet" },
  UpToDate: { word: "up to date", tone: "good", help: "runs its image" },
  Unmanaged: { word: "unmanaged", tone: "mute", help: "its image is set by hand" },
  Unmatched: { word: "in no tier", tone: "mute", help: "belongs to no tier" },
  Gone: { word: "deleted", tone: "mute", help: "was deleted" },
}
/** What needs a look comes first. */
export const cellOrder = Object.keys(cellWords).filter(state => state !== "Gone") as CellState[]

const tones: Record<string, Tone> = {
  Complete: "good",
  Ready: "good",
  InProgress: "busy",
  RollingBack: "busy",
  Progressing: "busy",
  Promoting: "busy",
  Finalising: "busy",
  Initializing: "busy",
  NotReady: "busy",
  Waiting: "calm",
  WaitingPromotion: "warn",
  Paused: "warn",
  Degraded: "warn",
  RolledBack: "warn",
  Halted: "bad",
  Stalled: "bad",
  Failed: "bad",
  NotSeenYet: "mute",
  Succeeded: "good",
  Initialized: "good",
}
export const toneOf = (state: string): Tone => (Object.hasOwn(tones, state) ? tones[state]! : "mute")

/** The sign of a tone: a shape each, not only a colour. */
export const signs: Record<Tone, string> = { good: "✓", busy: "◐", calm: "○", warn: "▲", bad: "✕", mute: "·" }

/** `NotSeenYet` → `not seen yet`. */
export const spaced = (word: string) =>
  word.replaceAll(/(?<=[a-z])(?=[A-Z])/g, " ").replace(/\S+/g, (part, at) => (at === 0 ? part : part.toLowerCase()))

export const actionWords: Record<ActionName, { button: string; title: string; confirm: string }> = {
  approve: { button: "Approve", title: "Approve", confirm: "Approve" },
  pause: { button: "Pause", title: "Pause", confirm: "Pause" },
  resume: { button: "Resume", title: "Resume", confirm: "Resume" },
  rollback: { button: "Roll back", title: "Roll back", confirm: "Roll back" },
  "set-image": { button: "Set image", title: "Set the image of", confirm: "Set image" },
}

/** The time of the cluster, some time after its last tick: in a demo it runs faster than the wall clock. */
export const clusterTime = ({ time, speed }: Tick, elapsedMs: number) => time + elapsedMs * speed

export const ago = (at: number | undefined, now: number) =>
  at === undefined ? "" : `${formatDuration(Math.max(0, wholeSeconds(now - at)))} ago`
export const lasting = (from: number | undefined, to: number) =>
  from === undefined ? "" : formatDuration(Math.max(0, wholeSeconds(to - from)))
/** Counts down to `at`; at the end it says so instead of showing a negative time. */
export const until = (at: number, now: number) =>
  at <= now ? "a moment" : formatDuration(wholeSeconds(at - now + 999))
const wholeSeconds = (ms: number) => Math.floor(ms / 1000) * 1000

/** In UTC, as Kubernetes shows times: `2026-01-31 12:00:05 UTC`. */
export const dayTime = (at: number) => `${new Date(at).toISOString().slice(0, 19).replace("T", " ")} UTC`
export const clockTime = (at: number) => dayTime(at).slice(11)

export const counted = (count: number, one: string, many = `${one}s`) => `${grouped(count)} ${count === 1 ? one : many}`
/** `12,000`: digits in threes, the same in every language. */
export const grouped = (count: number) => String(count).replaceAll(/\B(?=(\d{3})+(?!\d))/g, ",")

/** The parts of a tier's bar, in percent of its objects. They never exceed 100 together. */
export function barOf({
  total,
  upToDate,
  updated,
  failures,
}: Pick<Lane, "total" | "upToDate" | "updated" | "failures">) {
  if (total === 0) return { done: 0, failed: 0, busy: 0 }
  const failing = failures.reduce((sum, { count }) => sum + count, 0)
  const percent = (count: number) => (Math.max(0, count) / total) * 100
  const done = Math.min(100, percent(upToDate))
  const failed = Math.min(100 - done, percent(failing))
  const busy = Math.min(100 - done - failed, percent(updated - upToDate - failing))
  return { done, failed, busy }
}

/** What a lane says about its state besides counts, in the order of importance. */
export function laneNotes(lane: Lane, now: number): string[] {
  const step = lane.steps.find(({ state }) => state === "Current")
  return [
    lane.approval === "Awaited" ? "waits for approval" : "",
    lane.approval === "Needed" && lane.state === "Waiting" ? "will wait for approval" : "",
    lane.approval === "Approved" && lane.state !== "Complete" ? "approved" : "",
    step && lane.soaksUntil !== undefined ? `soaks for ${until(lane.soaksUntil, now)} more` : "",
    lane.rate?.words ?? "",
    lane.rate?.leftWords ?? "",
    lane.unmanaged > 0 ? `${grouped(lane.unmanaged)} unmanaged` : "",
    lane.ignoredFailures > 0 ? `${grouped(lane.ignoredFailures)} failed and ignored` : "",
  ].filter(Boolean)
}

/** How long an operation took, or has taken so far. */
export const durationOf = ({ startedAt, endedAt, isRunning }: HistoryEntry, now: number) =>
  startedAt === undefined ? "" : endedAt === undefined && !isRunning ? "" : lasting(startedAt, endedAt ?? now)

/** `registry.example.com/team/app:v2@sha256:0123…` → its parts; the digest is short. */
export function imageParts(image: string): { repository: string; tag: string; digest: string } {
  const [before = "", digest = ""] = image.split("@")
  const colon = before.lastIndexOf(":")
  const hasTag = colon > before.lastIndexOf("/")
  return {
    repository: hasTag ? before.slice(0, colon) : before,
    tag: hasTag ? before.slice(colon + 1) : "",
    digest: digest.replace(/^(sha\d+:.{12}).*/, "$1"),
  }
}
