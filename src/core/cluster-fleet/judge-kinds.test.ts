import { describe, expect, test } from "vitest"
import { PreCachingConfig, type PreCachingConfigSpec } from "#api/v1alpha1/precachingconfig/index.ts"
import { judgePreCachingConfig, judgeSpokeCluster } from "./judge-kinds.ts"
import type { Answer, Reach, TroubleKind } from "./transport.ts"

test("a PreCachingConfig is ready when its patterns can be read", () => {
  const judged = (spec: object) =>
    judgePreCachingConfig(PreCachingConfig.spec.parse(spec) as PreCachingConfigSpec).reason
  expect(judged({})).toBe("WellFormed")
  expect(judged({ excludePrecachePatterns: ["a.*b"] })).toBe("WellFormed")
  expect(judged({ excludePrecachePatterns: ["("] })).toBe("InvalidPattern")
})

const windows = { preCaching: [], upgrade: [] }
const trouble = (is: TroubleKind): Answer<Reach> => ({ ok: false, trouble: { is, message: "" } })
const cases: Record<string, { answer: Answer<Reach> | undefined; gives: string }> = {
  "not asked yet": { answer: undefined, gives: "Observing" },
  "it answered": { answer: { ok: true, value: { isReachable: true } }, gives: "Reachable" },
  "its agent is away": { answer: { ok: true, value: { isReachable: false } }, gives: "Unreachable" },
  "it does not answer": { answer: trouble("Unreachable"), gives: "Unreachable" },
  "its kubeconfig may not be used": { answer: trouble("BadCredential"), gives: "BadCredential" },
  "its Secret is missing": { answer: trouble("UnknownCluster"), gives: "SecretNotFound" },
  "a right is missing": { answer: trouble("Forbidden"), gives: "Forbidden" },
  "OCM is not installed": { answer: trouble("NotInstalled"), gives: "NotInstalled" },
}

describe("a SpokeCluster", () => {
  for (const [name, { answer, gives }] of Object.entries(cases))
    test(name, () => expect(judgeSpokeCluster({ windows }, answer, 0).reason).toBe(gives))

  test("a window that cannot be used is said first", () => {
    const upgrade = [{ schedule: "0 1 * * *", durationMinutes: 60, timeZone: "Mars/North" }]
    const judged = judgeSpokeCluster({ windows: { ...windows, upgrade } }, undefined, 0)
    expect(judged).toMatchObject({
      reason: "InvalidWindow",
      message: expect.stringContaining("spec.windows.upgrade[0]"),
    })
  })
})
