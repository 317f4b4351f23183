import { describe, expect, test } from "vitest"
import {
  approvedAnnotation,
  approvedByAnnotation,
  pausedAnnotation,
  retryAnnotation,
  rollbackAnnotation,
} from "#api/v1alpha1/canary/annotations.ts"
import type { CanarySpecInput, Gate, Run } from "#api/v1alpha1/canary/index.ts"
import { formatApproval } from "../fleet/approval.ts"
import type { Decision } from "./decision.ts"
import { awaitedApprovals } from "./gates.ts"
import { decide } from "./run.ts"
import type { Sight } from "./sight.ts"
import { minute, running, startedAt } from "./test-sight.ts"

const told = ({ phase, act, reason }: Decision) => [phase, act?.do ?? "", reason]

const approvedBy = (operation: string, checksum: string | undefined, ...tiers: string[]) => ({
  [approvedAnnotation]: formatApproval({ operation, tiers, ...(checksum !== undefined && { checksum }) }),
  [approvedByAnnotation]: "ann@example.com",
})
type Word = NonNullable<CanarySpecInput["requireApproval"]>[number]
const gateOf = (name: Word, round = 0): Gate => ({
  type: "approval",
  name,
  round,
  state: "Waiting",
  since: startedAt,
  attempts: 0,
})
const asking = (word: Word): Partial<CanarySpecInput> => ({ requireApproval: [word] })
const passed = { state: "Passed", reason: "Approved", approvedBy: "ann@example.com" }

describe("approvals", () => {
  const waiting = (annotations?: Record<string, string>) =>
    running(0, { spec: asking("Rollout"), status: { phase: "Waiting" }, ...(annotations && { annotations }) })
  const rising = (annotations?: Record<string, string>) =>
    running(20, {
      spec: asking("TrafficIncrease"),
      run: { next: { weight: 40, mirrored: false }, gates: [gateOf("TrafficIncrease", 40)] },
      ...(annotations && { annotations }),
    })
  const proven = (annotations?: Record<string, string>, spec = {}) =>
    running(40, {
      spec: { ...asking("Promotion"), ...spec },
      status: { phase: "WaitingPromotion" },
      run: { gates: [gateOf("Promotion")] },
      ...(annotations && { annotations }),
    })
  const skipping = (annotations?: Record<string, string>) => ({
    ...proven(annotations, { skipAnalysis: true, canaryReplicas: 1 }),
    trial: { ...running(100).trial!, size: 4 },
    sets: running(100).sets,
    services: running(100).services,
  })
  const cases: Record<string, [Sight, [string, string, string], object | undefined]> = {
    "none yet": [waiting(), ["Waiting", "", "AwaitingApproval"], { state: "Waiting" }],
    "of another run": [
      waiting(approvedBy("r1_aaaa", "bbbb", "Rollout")),
      ["Waiting", "", "AwaitingApproval"],
      { state: "Waiting", reason: "ApprovalStale" },
    ],
    "of another template": [
      waiting(approvedBy("r2_bbbb", "aaaa", "Rollout")),
      ["Waiting", "", "AwaitingApproval"],
      { state: "Waiting", reason: "ApprovalStale" },
    ],
    "without a template": [
      waiting(approvedBy("r2_bbbb", undefined, "Rollout")),
      ["Waiting", "", "AwaitingApproval"],
      { state: "Waiting" },
    ],
    "of another gate": [
      waiting(approvedBy("r2_bbbb", "bbbb", "Promotion")),
      ["Waiting", "", "AwaitingApproval"],
      { state: "Waiting" },
    ],
    "text that is none": [
      waiting({ [approvedAnnotation]: "yes" }),
      ["Waiting", "", "AwaitingApproval"],
      { state: "Waiting" },
    ],
    "of the rollout": [waiting(approvedBy("r2_bbbb", "bbbb", "Rollout")), ["Progressing", "", "Started"], passed],
    "of a weight: it waits": [rising(), ["Progressing", "", "AwaitingApproval"], { state: "Waiting", round: 40 }],
    "of the weight before": [
      rising(approvedBy("r2_bbbb", "bbbb", "TrafficIncrease/20")),
      ["Progressing", "", "AwaitingApproval"],
      { state: "Waiting" },
    ],
    "of the weight: what was approved is kept": [
      rising(approvedBy("r2_bbbb", "bbbb", "TrafficIncrease/40")),
      ["Progressing", "scaleTrial", "Scaling"],
      { ...passed, round: 40 },
    ],
    "of the promotion": [
      proven(approvedBy("r2_bbbb", "bbbb", "Promotion")),
      ["Promoting", "", "Advanced"],
      { ...passed, name: "Promotion" },
    ],
    "of the promotion, without analysis: it waits": [
      skipping(),
      ["WaitingPromotion", "", "AwaitingApproval"],
      { state: "Waiting" },
    ],
    "of the promotion, without analysis": [
      skipping(approvedBy("r2_bbbb", "bbbb", "Promotion")),
      ["Promoting", "", "AnalysisSkipped"],
      passed,
    ],
  }
  for (const [name, [sight, expected, gate]] of Object.entries(cases))
    test(name, () => {
      const decision = decide(sight)
      expect(told(decision)).toEqual(expected)
      expect(decision.run?.gates[0]).toMatchObject(gate ?? {})
    })

  test("what waits is named as an approval names it", () => {
    const gates = [gateOf("TrafficIncrease", 40), { ...gateOf("Rollout"), state: "Passed" as const }]
    expect(awaitedApprovals({ gates })).toEqual(["TrafficIncrease/40"])
  })
})

describe("pause, resume and rollback", () => {
  const id = "r2_bbbb"
  const frozen = (annotations?: Record<string, string>, run: Partial<Run> = {}) =>
    running(20, {
      spec: { onFailure: "Freeze" },
      status: { phase: "Failed" },
      run: { reason: "AnalysisFailed", ...run },
      ...(annotations && { annotations }),
    })
  const draining = (target: string, annotations?: Record<string, string>, run: Partial<Run> = {}): Sight => {
    const sight = running(0, {
      spec: { scaleDownDelaySeconds: 60 },
      status: { phase: run.reason ? "Failed" : "Finalising" },
      run,
      ...(annotations && { annotations }),
    })
    const services = {
      source: { hash: "new", ready: { new: 4 } },
      target: { hash: target, ready: { [target]: 4 } },
      areMade: () => true,
    }
    return { ...sight, trial: { ...sight.trial!, size: 4 }, services }
  }
  const cases: Record<string, [Sight, [string, string, string]]> = {
    "paused: a round that is due is not judged": [
      running(20, { annotations: { [pausedAnnotation]: id }, forMs: 2 * minute }),
      ["Progressing", "", "Paused"],
    ],
    "a pause of another run": [
      running(0, { annotations: { [pausedAnnotation]: "r1_aaaa" } }),
      ["Progressing", "route", "Measuring"],
    ],
    "a rollback ends a paused run": [
      running(20, { annotations: { [pausedAnnotation]: id, [rollbackAnnotation]: id } }),
      ["Failed", "", "RolledBackByUser"],
    ],
    "a rollback of another run": [
      running(0, { annotations: { [rollbackAnnotation]: "r1_aaaa" } }),
      ["Progressing", "route", "Measuring"],
    ],
    "a frozen run stays": [frozen(), ["Failed", "", "Frozen"]],
    "a frozen run is taken back": [frozen({ [rollbackAnnotation]: id }), ["Failed", "route", "RollingBack"]],
    "a frozen run is tried again": [frozen({ [retryAnnotation]: id }), ["Failed", "route", "RollingBack"]],
    "promoted: the Service without requests selects the revision before": [
      draining("new"),
      ["Finalising", "services", "Draining"],
    ],
    "promoted: then its pods only stay": [draining("old"), ["Finalising", "", "Draining"]],
    "promoted, and taken back": [draining("old", { [rollbackAnnotation]: id }), ["Failed", "", "RolledBackByUser"]],
    "promoted, and taken back: one write of the route": [
      draining("old", { [rollbackAnnotation]: id }, { reason: "RolledBackByUser" }),
      ["Failed", "route", "RollingBack"],
    ],
  }
  for (const [name, [sight, expected]] of Object.entries(cases))
    test(name, () => expect(told(decide(sight))).toEqual(expected))

  test("the time of a pause does not count towards the deadline", () => {
    const waiting = { reason: "WaitingForReady" as const, progressAt: startedAt }
    const unready = (annotations: Record<string, string>, run: Partial<Run>): Sight => {
      const sight = running(20, { annotations, run, forMs: 60 * minute })
      return { ...sight, services: { ...sight.services, target: { hash: "new", ready: {} } } }
    }
    const paused = decide(unready({ [pausedAnnotation]: id }, waiting))
    expect(paused.run?.reason).toBe("Paused")
    expect(told(decide(unready({}, paused.run!)))).toEqual(["Progressing", "", "WaitingForReady"])
    expect(told(decide(unready({}, waiting)))).toEqual(["Failed", "", "DeadlineExceeded"])
  })

  test("a pause keeps why a run ends", () => {
    expect(decide(frozen({ [pausedAnnotation]: id })).run?.reason).toBe("AnalysisFailed")
  })
})
