import type { Verdict } from "./verdict.ts"

/** What a run has counted so far. A status carries it. */
export type Tally = {
  /** Rounds with a bad value or a hook that said no. A good round takes none of them back. */
  readonly failedChecks: number
  /** Rounds in a row in which a metric could not be asked. */
  readonly errors: number
  /** Since when a metric has given no data; absent when every metric gives some. */
  readonly noDataSince?: number
}

export const nothingCounted: Tally = { failedChecks: 0, errors: 0 }

export type Limits = {
  /** As many failed checks end a run. */
  readonly threshold: number
  /** As many errors in a row are reported as a stall. */
  readonly errorLimit: number
  readonly noData: "Hold" | "Fail" | "Pass"
  /** How long no data is waited for. */
  readonly deadlineMs: number
}

/** One check of a round: a metric's verdict, or what a hook answered. */
export type Check = { readonly name: string } & (
  | Verdict
  | { readonly verdict: "Yes" }
  | { readonly verdict: "No"; readonly why: string }
)

export type Outcome = {
  readonly tally: Tally
  readonly next: "goOn" | "hold" | "fail"
  /** Why it does not go on. */
  readonly reason?: "BadMetric" | "HookSaidNo" | "NoData" | "MetricError"
  readonly why?: string
}

/**
 * What a round of checks means for a run. Only a round in which everything is good goes on: a bad value counts against
 * the new revision, while no data and errors say nothing about it and hold.
 */
export function outcomeOf(checks: readonly Check[], limits: Limits, before: Tally, now: number): Outcome {
  const judged = checks.map(check => underPolicy(check, limits))
  const has = (...verdicts: Check["verdict"][]) => judged.find(({ verdict }) => verdicts.includes(verdict))
  const [against, error, missing] = [has("Bad", "No"), has("Error"), has("NoData")]
  const tally: Tally = {
    failedChecks: before.failedChecks + (against ? 1 : 0),
    errors: error ? before.errors + 1 : 0,
    ...(missing && { noDataSince: before.noDataSince ?? now }),
  }
  if (against) {
    const reason = against.verdict === "No" ? "HookSaidNo" : "BadMetric"
    return { tally, next: tally.failedChecks >= limits.threshold ? "fail" : "hold", reason, why: wordsOf(against) }
  }
  if (error) return { tally, next: "hold", reason: "MetricError", why: wordsOf(error) }
  if (missing) {
    const isOver = now - tally.noDataSince! >= limits.deadlineMs
    return { tally, next: isOver ? "fail" : "hold", reason: "NoData", why: wordsOf(missing) }
  }
  return { tally, next: "goOn" }
}

/** Whether errors have lasted so long that a person should look. The run holds all the same. */
export const isStalled = ({ errors }: Tally, { errorLimit }: Limits): boolean => errors >= errorLimit

function underPolicy(check: Check, { noData }: Limits): Check {
  if (check.verdict !== "NoData" || noData === "Hold") return check
  return noData === "Pass" ? { name: check.name, verdict: "Yes" } : { ...check, verdict: "Bad" }
}

const wordsOf = (check: Check) => ("why" in check ? `${check.name}: ${check.why}` : check.name)
