import { describe, expect, test } from "vitest"
import type { Canary, CanaryStatus } from "#api/v1alpha1/canary/index.ts"
import { hasRejected, type Proof, proofOf, provesOther } from "./proof.ts"
import { canaryOf } from "./test-canary.ts"

const [v1, v2] = ["shop/web:1", "shop/web:2"]
const at = "2026-01-01T00:00:10Z"
const revision = (image: string) => ({ hash: "h", images: [image] })
const run = { id: "r2_abc", reason: "Measuring", message: "judged", weight: 20, progressAt: at }
const running = { ...run, source: revision(v1), target: revision(v2) }
const ended = { id: "r2_abc", source: revision(v1), target: revision(v2), endedAt: at, startedAt: at }
const failed = { ...ended, result: "RolledBack", reason: "AnalysisFailed", message: "too many errors" }
const condition = (type: string, status: string, reason: string, message: string) => ({ type, status, reason, message })
const stalled = (reason: string, message = "say") => condition("Stalled", "True", reason, message)
const ready = condition("Ready", "True", "Succeeded", "Deployment web runs what its template says")

const cases: Record<string, { status: object; is: Pick<Proof, "state" | "message"> & Partial<Proof> }> = {
  "a Canary that no controller has seen": {
    status: {},
    is: { state: "AtRest", message: "Canary web: Observing", at: 0 },
  },
  "one between runs": {
    status: {
      phase: "Succeeded",
      conditions: [ready],
      history: [{ ...ended, result: "Promoted", reason: "Promoted" }],
    },
    is: { state: "AtRest", message: "Canary web: Succeeded, Deployment web runs what its template says" },
  },
  "a run": {
    status: { phase: "Progressing", run: running },
    is: { state: "UnderWay", images: [v2], source: [v1], message: "Canary web, run r2_abc at 20 %: Measuring, judged" },
  },
  "a run that waits for an approval": {
    status: { phase: "WaitingPromotion", run: { ...running, reason: "AwaitingApproval", message: "run aim approve" } },
    is: { state: "Waiting", message: "Canary web, run r2_abc at 20 %: AwaitingApproval, run aim approve" },
  },
  "a run that a person paused": {
    status: { phase: "Progressing", run: { ...running, reason: "Paused" } },
    is: { state: "Waiting", message: "Canary web, run r2_abc at 20 %: Paused, judged" },
  },
  "a run that waits for a person by a conflict": {
    status: { phase: "Progressing", run: running, conditions: [stalled("Conflict")] },
    is: { state: "Stalled", message: "Canary web, run r2_abc at 20 %: Measuring, judged" },
  },
  "a run that has failed and goes back": {
    status: { phase: "Failed", run: { ...running, reason: "AnalysisFailed" }, conditions: [stalled("AnalysisFailed")] },
    is: { state: "Failed", images: [v2], message: "Canary web, run r2_abc at 20 %: AnalysisFailed, judged" },
  },
  "a run whose change was taken back: the running image is not settled before it is over": {
    status: { phase: "Progressing", run: { ...running, reason: "Reverted" } },
    is: { state: "UnderWay", source: [], message: "Canary web, run r2_abc at 20 %: Reverted, judged" },
  },
  "a failed run": {
    status: { phase: "Failed", history: [failed], conditions: [stalled("Rejected")] },
    is: { state: "Failed", images: [v2], message: "Canary web, run r2_abc: AnalysisFailed, too many errors" },
  },
  "a failed run whose template was taken back": {
    status: { phase: "Failed", history: [failed], conditions: [condition("Ready", "True", "Reverted", "again")] },
    is: { state: "AtRest", images: [], message: "Canary web: Reverted, again" },
  },
  "a Canary that cannot be carried out": {
    status: { phase: "Initialized", conditions: [stalled("NotSupported", `x"<y>${"z".repeat(300)}`)] },
    is: { state: "Stalled", message: `Canary web: NotSupported, x''y'${"z".repeat(300)}`.slice(0, 197).concat("...") },
  },
}

for (const [name, { status, is }] of Object.entries(cases))
  test(name, () =>
    expect(proofOf({ ...canaryOf(), status: status as CanaryStatus } as Canary)).toMatchObject({ name: "web", ...is }),
  )

test("one that is being deleted is under way: it may write another template back", () =>
  expect(proofOf({ ...canaryOf(), metadata: { name: "web", deletionTimestamp: at } } as Canary).state).toBe("UnderWay"))

describe("about an image", () => {
  const of = (status: object) => proofOf({ ...canaryOf(), status } as Canary)
  const rejected = of(cases["a failed run"]!.status)
  test("it was rejected, however it is written", () =>
    expect([hasRejected(rejected, v2), hasRejected(rejected, `docker.io/${v2}`)]).toEqual([true, true]))
  test("another image was not", () => expect(hasRejected(rejected, v1)).toBe(false))
  test("an image that both revisions have is not what is being proven", () => {
    const both = { ...running, source: revision(v2) }
    expect([provesOther(of({ run: both }), v2), provesOther(of({ run: running }), v2)]).toEqual([true, false])
  })
})
