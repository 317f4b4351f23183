import { expect, test } from "vitest"
import type { Canary, CanaryStatus } from "#api/v1alpha1/canary/index.ts"
import { canaryWith } from "../test-judging.ts"
import { messagesOf } from "./announce.ts"

const condition = (type: string, status: string, reason: string, message = "") => ({
  type,
  status,
  reason,
  message,
  observedGeneration: 1,
  lastTransitionTime: "2026-01-31T12:00:00Z",
})

const statusOf = (phase: string, more: Record<string, unknown> = {}, stalled = "False") =>
  ({
    phase,
    canaryWeight: 0,
    failedChecks: 0,
    iterations: 0,
    history: [],
    conditions: [
      condition("Ready", "False", stalled === "True" ? "AnalysisFailed" : phase, `it is ${phase}`),
      condition("Stalled", stalled, stalled === "True" ? "AnalysisFailed" : "NotStalled"),
    ],
    ...more,
  }) as unknown as CanaryStatus

const runOf = (weight: number, gates: readonly unknown[] = []) => ({
  run: { checksum: "abc", weight, target: { hash: "h", images: ["web:2"] }, gates },
  canaryWeight: weight,
})

const gate = (name: string) => ({ type: "confirm-rollout", name, state: "Waiting" })

const hooked = canaryWith({
  webhooks: [
    { type: "confirm-rollout", name: "quiet", url: "http://gate.example.com/", muteAlert: true },
    { type: "confirm-rollout", name: "loud", url: "http://gate.example.com/" },
  ],
})

const cases: Record<string, { before: CanaryStatus; after: CanaryStatus; says: unknown[] }> = {
  "a new phase is news": {
    before: statusOf("Initialized"),
    after: statusOf("Progressing", runOf(0)),
    says: [{ severity: "info", text: "Progressing: it is Progressing", phase: "Progressing", checksum: "abc" }],
  },
  "so is a new weight": {
    before: statusOf("Progressing", runOf(0)),
    after: statusOf("Progressing", runOf(20)),
    says: [{ severity: "info", text: "Advanced: the new revision has weight 20" }],
  },
  "a failed run is an error": {
    before: statusOf("Progressing", runOf(20)),
    after: statusOf("Failed", runOf(20), "True"),
    says: [{ severity: "error", text: "Failed: it is Failed" }],
  },
  "what waits for a person is a warning": {
    before: statusOf("Initialized"),
    after: statusOf("Waiting", runOf(0, [gate("loud")])),
    says: [{ severity: "warn", isMuted: false }],
  },
  "a muted hook is not": {
    before: statusOf("Initialized"),
    after: statusOf("Waiting", runOf(0, [gate("quiet")])),
    says: [{ severity: "warn", isMuted: true }],
  },
  "unless another hook waits too": {
    before: statusOf("Initialized"),
    after: statusOf("Waiting", runOf(0, [gate("quiet"), gate("loud")])),
    says: [{ isMuted: false }],
  },
  "the same status again says nothing": {
    before: statusOf("Progressing", runOf(20)),
    after: statusOf("Progressing", runOf(20)),
    says: [],
  },
}

for (const [name, { before, after, says }] of Object.entries(cases))
  test(name, () => expect(messagesOf({ ...hooked, status: before } as Canary, after)).toMatchObject(says))
