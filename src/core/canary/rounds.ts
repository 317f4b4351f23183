import type { Canary, MetricStatus, Run } from "#api/v1alpha1/canary/index.ts"
import { parseDuration } from "#lib/duration.ts"
import { formatInstant, type Instant, parseInstant } from "#lib/instant.ts"
import { hooksOf } from "./gates.ts"
import { plain } from "./plain.ts"
import { answerKey, type HookAsk, type Sight } from "./sight.ts"
import { type Check, type Limits, type Outcome, outcomeOf, type Tally } from "./tally.ts"

/** As Flagger reads it: what stands behind minutes or seconds does not count. */
function durationOf(text: string): number {
  const begins = /^[0-9]+(m|s)/.exec(text)?.[0] ?? ""
  return parseDuration(text) ?? parseDuration(begins) ?? 60_000
}

const leastIntervalMs = 10_000

export const intervalOf = ({ spec }: Canary): number =>
  Math.max(leastIntervalMs, durationOf(spec.analysis.interval || "1m"))

export const deadlineOf = ({ spec }: Canary): number => spec.progressDeadlineSeconds * 1000

const limitsOf = (canary: Canary): Limits => ({
  threshold: Math.max(1, canary.spec.analysis.threshold),
  errorLimit: canary.spec.analysis.errorLimit,
  noData: canary.spec.analysis.noData,
  deadlineMs: deadlineOf(canary),
})

const at = (time: string | undefined): Instant => parseInstant(time) ?? 0

export type Round = {
  /** The same for every look until it is judged, also by another process. */
  readonly number: number
  readonly dueAt: Instant
  readonly atThisWeightMs: number
}

/** A round is judged once in each interval. The first waits for initialDelay. */
export function roundOf(canary: Canary, run: Run, now: Instant): Round {
  const interval = intervalOf(canary)
  const { initialDelay } = canary.spec.analysis
  const wait = run.checkedAt === undefined && initialDelay ? durationOf(initialDelay) : interval
  const dueAt = Math.max(at(run.weightSince), at(run.checkedAt)) + wait
  return {
    number: Math.max(0, Math.round((dueAt - at(run.startedAt)) / 1000)),
    dueAt,
    atThisWeightMs: Math.max(0, now - at(run.weightSince)),
  }
}

/** What the status has kept of earlier rounds. */
function tallyOf({ failedChecks, metrics }: Run): Tally {
  const errors = metrics.flatMap(({ verdict, count }) => (verdict === "Error" ? [count] : []))
  const silent = metrics.flatMap(({ verdict, since }) => (verdict === "NoData" ? [at(since)] : []))
  return {
    failedChecks,
    errors: Math.max(0, ...errors),
    ...(silent.length > 0 && { noDataSince: Math.min(...silent) }),
  }
}

/** Hooks that are asked in a round, as checks; undefined while one has not answered. */
export function checksOfHooks(
  sight: Sight,
  type: "pre-rollout" | "rollout",
  round: number,
): { checks: readonly Check[] | undefined; asks: readonly HookAsk[] } {
  const asks = hooksOf(sight.canary, type).map(hook => ({ hook, round, phase: "Progressing" }))
  const answers = asks.map(ask => sight.answers.get(answerKey(ask)))
  if (answers.includes(undefined)) return { checks: undefined, asks }
  const checks = asks.map(({ hook: { name } }, index): Check => {
    const { yes, why, isUncalled } = answers[index]!
    if (yes) return { name, verdict: "Yes" }
    return { name, verdict: isUncalled ? "Error" : "No", why }
  })
  return { checks, asks }
}

/** The run after a round, and what the round means for it. */
export function judged(
  { canary, now }: Pick<Sight, "canary" | "now">,
  run: Run,
  checks: readonly Check[],
): { run: Run; outcome: Outcome; isStalled: boolean } {
  const limits = limitsOf(canary)
  const outcome = outcomeOf(checks, limits, tallyOf(run), now)
  const metrics = checks.flatMap(check => statusOf(check, run.metrics, now) ?? [])
  return {
    run: {
      ...run,
      checkedAt: formatInstant(now),
      failedChecks: outcome.tally.failedChecks,
      metrics: metrics.slice(0, 32),
    },
    outcome,
    isStalled: outcome.tally.errors >= limits.errorLimit,
  }
}

function statusOf(check: Check, before: readonly MetricStatus[], now: Instant): MetricStatus | undefined {
  const { name, verdict } = check
  if (verdict === "Yes" || verdict === "No") return undefined
  const was = before.find(each => each.name === name)
  const isSame = was?.verdict === verdict
  return {
    name,
    verdict,
    ...("value" in check &&
      check.value !== undefined && { value: plain(String(Number(check.value.toPrecision(6))), 32) }),
    ...("why" in check && { message: plain(check.why, 160) }),
    count: isSame ? was.count + 1 : 1,
    since: isSame ? was.since : formatInstant(now),
    at: formatInstant(now),
  }
}
