import { expect, test } from "vitest"
import { ImagePullJob, maxFailedNodes } from "#api/v1alpha1/imagepulljob/index.ts"
import { validate } from "#api/validate.ts"
import type { JobView } from "#core/pulls/board.ts"
import { plan, type Snapshot } from "./plan.ts"
import { report } from "./report.ts"

const long = "x".repeat(253)

/** 5,000 nodes of the longest names, all failed with the longest messages. */
const worst = (): Snapshot => {
  const { object } = validate(ImagePullJob, {
    apiVersion: "autoimagemanager.io/v1alpha1",
    kind: "ImagePullJob",
    metadata: { name: "app", namespace: "shop" },
    spec: { image: "registry.example.com/app:1" },
  })
  const failures = Array.from({ length: maxFailedNodes }, () => ({
    node: long,
    reason: "UnknownFailure",
    message: "é".repeat(5000),
  }))
  return {
    job: object!,
    view: {
      desired: 5000,
      Waiting: 0,
      Starting: 0,
      Active: 0,
      Succeeded: 0,
      Failed: 5000,
      startable: 0,
      failures,
      retries: failures,
      unknown: [],
      oldestUnanswered: undefined,
    },
    isListed: true,
    isOver: false,
    credentials: { is: "None" },
    registry: { host: "registry.example.com", inFlight: 0, limit: 20, risesAt: undefined },
    reportedAt: 0,
    now: 1_000_000,
  }
}

test("the status of a job over 5,000 nodes stays below 20 kB, and the server takes it", () => {
  const seen = worst()
  const { status } = report(seen, plan(seen), { started: 0 }, seen.now)!
  expect(Buffer.byteLength(JSON.stringify(status))).toBeLessThan(20_000)
  expect(validate(ImagePullJob, { ...seen.job, status }).errors).toEqual([])
})

test("counts alone wait five seconds; a new reason is reported at once", () => {
  const seen = worst()
  const busy: Snapshot & { view: JobView } = {
    ...seen,
    view: { ...seen.view!, Failed: 0, Active: 1, Waiting: 4999, failures: [], retries: [] },
  }
  const first = report(busy, plan(busy), { started: 0 }, busy.now)!.status!
  const later = (view: Partial<typeof busy.view>) => {
    const next = { ...busy, job: { ...busy.job, status: first }, view: { ...busy.view, ...view }, reportedAt: busy.now }
    return report(next, plan(next), { started: 0 }, busy.now + 4999)
  }
  expect(later({ Succeeded: 1, Waiting: 4998 })).toBeUndefined()
  // A node that tries again is named with the next report.
  const retries = [{ node: "a", reason: "NotFound", message: "" }]
  expect(later({ retries })).toBeUndefined()
  const { status } = report({ ...busy, view: { ...busy.view, retries } }, plan(busy), { started: 0 }, busy.now)!
  expect(status).toMatchObject({ failed: 0, failedNodes: [{ name: "a", reason: "NotFound" }] })
  expect(later({ Succeeded: 5000, Active: 0, Waiting: 0 })?.status?.conditions[0]?.reason).toBe("Completed")
})
