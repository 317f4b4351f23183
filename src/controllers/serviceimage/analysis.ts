import type { Reason, TierAnalysis, TierAnalysisStatus } from "#api/v1alpha1/serviceimage/index.ts"
import { maxAnalysisMessage } from "#api/v1alpha1/serviceimage/index.ts"
import { plain } from "#core/canary/plain.ts"
import { type Check, type Limits, outcomeOf, type Tally } from "#core/canary/tally.ts"
import { parseDuration } from "#lib/duration.ts"
import { hash32 } from "#lib/hash.ts"
import { formatInstant, type Instant, parseInstant } from "#lib/instant.ts"

/** A check of a round. An error with a reason does not pass by itself. */
export type RoundCheck = Check & { readonly reason?: string | undefined }

/** One time at which a step is judged. The plan lacks what was found. */
export type Round = {
  readonly tier: string
  readonly percent: number
  /** The same for each look until it is judged, also by another process. */
  readonly number: number
  /** How long the step has been up to date: no measurement looks back further. */
  readonly sinceMs: number
}

/** How a step that is up to date stands. */
export type Judging = {
  /** What the status keeps; undefined before the first round of the tier. */
  readonly kept: TierAnalysisStatus | undefined
  /** The round that is due, as long as its checks are missing. */
  readonly ask: Round | undefined
  readonly dueAt: Instant
  /** What was found last in this step; undefined before its first round. */
  readonly verdict: TierAnalysisStatus["verdict"] | undefined
  /** The last round was good, and none is due. */
  readonly isGood: boolean
}

type Judged = {
  readonly name: string
  readonly analysis: TierAnalysis
  readonly progressDeadlineSeconds: number
}

type Step = {
  readonly percent: number
  readonly upToDateAt: Instant
  /** What the status keeps of this operation. */
  readonly before: TierAnalysisStatus | undefined
  /** What was found in the round that is due. */
  readonly checks: readonly RoundCheck[] | undefined
  readonly now: Instant
}

const leastIntervalMs = 10_000
/** As a Canary's errorLimit without one: after this many errors in a row a person should look. */
const errorLimit = 4

export const intervalOf = ({ interval }: TierAnalysis): number =>
  Math.max(leastIntervalMs, parseDuration(interval) ?? 60_000)

/** Judges a step once in each interval, from when it is up to date, by the rules of a Canary. */
export function judgeStep(tier: Judged, { percent, upToDateAt, before, checks, now }: Step): Judging {
  const intervalMs = intervalOf(tier.analysis)
  const was = keptFor(tier.analysis, before)
  const at = was?.percent === percent ? (parseInstant(was.checkedAt) ?? 0) : 0
  const isJudged = was !== undefined && at >= upToDateAt
  const dueAt = (isJudged ? at : upToDateAt) + intervalMs
  const verdict = isJudged ? was.verdict : undefined
  const known = { kept: was, ask: undefined, dueAt, verdict }
  if (now < dueAt || hasFailed(tier, was)) return { ...known, isGood: verdict === "Good" }
  if (!checks) {
    const ask = { tier: tier.name, percent, number: Math.round(dueAt / 1000), sinceMs: now - upToDateAt }
    return { ...known, ask, isGood: false }
  }
  const kept = counted(tier, checks, { percent, was, isJudged, now })
  return { kept, ask: undefined, dueAt: now + intervalMs, verdict: kept.verdict, isGood: kept.verdict === "Good" }
}

/** What a round adds to what was counted before. */
function counted(
  tier: Judged,
  checks: readonly RoundCheck[],
  round: { percent: number; was: TierAnalysisStatus | undefined; isJudged: boolean; now: Instant },
): TierAnalysisStatus {
  const { percent, was, isJudged, now } = round
  const { tally, reason, why } = outcomeOf(checks, limitsOf(tier), tallyOf(was, isJudged), now)
  const needsPerson =
    reason === "MetricError" && (tally.errors >= errorLimit || checks.some(check => check.reason !== undefined))
  return {
    of: markOf(tier.analysis),
    percent,
    checkedAt: formatInstant(now),
    verdict: reason ?? "Good",
    message: plain(why ?? valuesIn(checks), maxAnalysisMessage),
    failedChecks: tally.failedChecks,
    ...(tally.errors > 0 && { errors: tally.errors }),
    ...(tally.noDataSince !== undefined && { noDataSince: formatInstant(tally.noDataSince) }),
    ...(needsPerson && { needsPerson }),
  }
}

const limitsOf = ({ analysis, progressDeadlineSeconds }: Judged): Limits => ({
  threshold: analysis.threshold,
  errorLimit,
  noData: "Hold",
  deadlineMs: progressDeadlineSeconds * 1000,
})

/** A time without data counts only as long as the step has been up to date throughout. */
function tallyOf(was: TierAnalysisStatus | undefined, isJudged: boolean): Tally {
  const noDataSince = isJudged ? parseInstant(was?.noDataSince) : undefined
  return {
    failedChecks: was?.failedChecks ?? 0,
    errors: (isJudged && was?.errors) || 0,
    ...(noDataSince !== undefined && { noDataSince }),
  }
}

const valuesIn = (checks: readonly RoundCheck[]) =>
  checks
    .map(check => {
      const value = "value" in check && check.value !== undefined ? Number(check.value.toPrecision(4)) : "yes"
      return `${check.name} ${value}`
    })
    .join(", ")

/** Another analysis in the spec is another judgement: what was counted for this one does not count for it. */
const keptFor = (analysis: TierAnalysis, before: TierAnalysisStatus | undefined) =>
  before?.of === markOf(analysis) ? before : undefined

/** The same for the same analysis, in whatever order its fields are written. */
const markOf = (analysis: TierAnalysis): string => `a${hash32(JSON.stringify(analysis, sorted)).toString(16)}`

const sorted = (_: string, value: unknown) =>
  typeof value === "object" && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
    : value

/** The step that the last round found good. */
export function goodPercentOf(analysis: TierAnalysis, before: TierAnalysisStatus | undefined): number | undefined {
  const kept = keptFor(analysis, before)
  return kept?.verdict === "Good" ? kept.percent : undefined
}

/** As many failed checks as threshold says: no later round takes them back. */
const hasFailed = ({ analysis }: Judged, kept: TierAnalysisStatus | undefined): boolean =>
  (kept?.failedChecks ?? 0) >= analysis.threshold

/**
 * Why a tier's analysis halts the rollout. Failed checks do for as long as the operation and the analysis last; missing
 * data does until there is some, because it says nothing about the image, and only of a step that has been up to date since.
 */
export function failureOf(
  tier: Judged,
  before: TierAnalysisStatus | undefined,
  { isUpToDate }: { isUpToDate: boolean },
): { reason: Reason; message: string } | undefined {
  const kept = keptFor(tier.analysis, before)
  if (!kept) return undefined
  const { verdict, message, failedChecks } = kept
  if (hasFailed(tier, kept)) {
    // The last round was the one that failed: none is asked for after it.
    const reason = verdict === "HookSaidNo" ? verdict : "BadMetric"
    return { reason, message: `${message} (failed check ${failedChecks} of ${tier.analysis.threshold})` }
  }
  const [since, at] = [parseInstant(kept.noDataSince), parseInstant(kept.checkedAt)]
  if (!isUpToDate || verdict !== "NoData" || since === undefined || at === undefined) return undefined
  const isOver = at - since >= tier.progressDeadlineSeconds * 1000
  return isOver ? { reason: "NoData", message: `${message}, for longer than progressDeadlineSeconds` } : undefined
}

/** What a step waits for, as a part of a sentence. */
export function judgingWords(tier: Judged, { kept, verdict, dueAt }: Judging): { reason: Reason; words: string } {
  if (!kept || verdict === undefined || verdict === "Good")
    return { reason: "Analysing", words: `judged at ${formatInstant(dueAt)}` }
  const { message, failedChecks } = kept
  if (verdict === "NoData" || verdict === "MetricError") return { reason: verdict, words: message }
  return { reason: verdict, words: `${message} (failed check ${failedChecks} of ${tier.analysis.threshold})` }
}
