import { type Answer, type Bounds, judge, type Verdict } from "./verdict.ts"

const anything: Bounds = { name: "", thresholdRange: {} }

/**
 * Compares the quotient, new by running, with the range. Both revisions must have a number. Two equal numbers are a
 * quotient of 1, also where both are 0: a service without errors would otherwise never be proven. More than nothing is
 * above every bound.
 */
export function judgeRelative(metric: Bounds, target: Answer, source: Answer): Verdict {
  const [ofTarget, ofSource] = [judge(anything, target), judge(anything, source)]
  for (const [whose, verdict] of [["new", ofTarget] as const, ["running", ofSource] as const])
    if (verdict.verdict === "Error") return { verdict: "Error", why: `${whose} revision: ${verdict.why}` }
  for (const [whose, verdict] of [["new", ofTarget] as const, ["running", ofSource] as const])
    if (verdict.verdict === "NoData") return { verdict: "NoData", why: `${whose} revision: ${verdict.why}` }
  if (ofTarget.verdict !== "Good" || ofSource.verdict !== "Good")
    throw new Error("a number without bounds is always good")
  const [a, b] = [ofTarget.value, ofSource.value]
  if (b === 0 && a !== 0) {
    const { max, min } = metric.thresholdRange ?? {}
    const why = `${Number(a.toPrecision(4))} where the running revision has 0`
    if (a > 0 ? max !== undefined : min !== undefined) return { verdict: "Bad", value: a, why }
    return { verdict: "Good", value: a }
  }
  const judged = judge(metric, { ok: true, series: [{ labels: {}, value: a === b ? 1 : a / b }] })
  return judged.verdict === "Bad" ? { ...judged, why: `new by running: ${judged.why}` } : judged
}
