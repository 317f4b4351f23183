import { expect, test } from "vitest"
import type { CanarySpecInput } from "#api/v1alpha1/canary/index.ts"
import { cookieFields, cookiesOf } from "./cookies.ts"
import { asRouted, effective } from "./effective.ts"
import { aRun, canaryOf } from "./test-sight.ts"

const analysis = { interval: "1m", threshold: 2, iterations: 3 }

test("mirror has no effect with provider kubernetes, and has with a gateway", () => {
  const mirrors = (spec: Partial<CanarySpecInput>) =>
    effective(canaryOf({ ...spec, analysis: { ...analysis, mirror: true } })).spec.analysis.mirror
  expect(mirrors({ provider: "kubernetes" })).toBe(false)
  expect(mirrors({ service: { port: 80 } })).toBe(false)
  expect(mirrors({})).toBe(true)
})

const match = [{ headers: { "x-beta": { exact: "1" } } }]
const sides = (source: string, target: string) => ({
  source: { hash: source, ready: {} },
  target: { hash: target, ready: {} },
})
const rows: [string, "Progressing" | "Promoting" | "Failed", ReturnType<typeof sides>, number][] = [
  ["judged", "Progressing", sides("old", "new"), 1],
  ["promoted", "Promoting", sides("old", "new"), 0],
  ["failed before the promotion", "Failed", sides("old", "new"), 1],
  ["on the way back from the promotion", "Failed", sides("new", "old"), 0],
  ["and at its end", "Failed", sides("old", "old"), 0],
]
test.each(rows)("requests that match, %s", (_, phase, services, matches) => {
  const canary = canaryOf({ analysis: { ...analysis, match } }, { phase })
  expect(asRouted(canary, services, aRun).spec.analysis.match).toHaveLength(matches)
})

test("each run has a cookie of its own, the same for every process, and clients drop it afterwards", () => {
  const sessionAffinity = { cookieName: "web", primaryCookieName: "web-source" }
  const canary = canaryOf({ analysis: { interval: "1m", threshold: 2, stepWeight: 20, sessionAffinity } }, {})
  const cookies = cookiesOf(canary, aRun)!
  expect(cookies).toEqual({
    target: expect.stringMatching(/^web=[0-9a-f]{10}$/),
    source: expect.stringMatching(/^web-source=[0-9a-f]{10}$/),
    previous: cookies.target,
  })
  expect(cookiesOf(canary, aRun)).toEqual(cookies)
  expect(cookiesOf(canary, { id: "r3_cccc" })!.target).not.toBe(cookies.target)
  expect(cookieFields(canary, aRun)).toEqual({
    sessionAffinityCookie: cookies.target,
    primarySessionAffinityCookie: cookies.source,
  })
  const after = cookieFields(canary, undefined, aRun)
  expect(after).toEqual({ previousSessionAffinityCookie: cookies.target })
  const next = canaryOf({ analysis: canary.spec.analysis as never }, after)
  expect(cookiesOf(next, undefined)).toEqual({ previous: cookies.target })
  expect(cookiesOf(canaryOf(), aRun)).toBeUndefined()
})
