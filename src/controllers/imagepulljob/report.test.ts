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
      answering: 0,
      transfer: undefined,
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
  const later = (view: Partial<typeof busy.view>, ms = 4999) => {
    const next = { ...busy, job: { ...busy.job, status: first }, view: { ...busy.view, ...view }, reportedAt: busy.now }
    return report(next, plan(next), { started: 0 }, busy.now + ms)
  }
  expect(later({ Succeeded: 1, Waiting: 4998 })).toBeUndefined()
  // With parallelism 1 a node is a wave.
  expect(later({ Succeeded: 1, Waiting: 4998 }, 5000)?.status?.succeeded).toBe(1)
  // A node that tries again is named with the next report.
  const retries = [{ node: "a", reason: "NotFound", message: "" }]
  expect(later({ retries })).toBeUndefined()
  const { status } = report({ ...busy, view: { ...busy.view, retries } }, plan(busy), { started: 0 }, busy.now)!
  expect(status).toMatchObject({ failed: 0, failedNodes: [{ name: "a", reason: "NotFound" }] })
  expect(later({ Succeeded: 5000, Active: 0, Waiting: 0 })?.status?.conditions[0]?.reason).toBe("Completed")
})

test("bytes of the nodes that pull are reported, in the message too, and are gone when the job has ended", () => {
  const seen = worst()
  const MiB = 2 ** 20
  const transfer = { doneBytes: 30 * MiB, totalBytes: 80 * MiB, nodes: 2, sharedNodes: 1 }
  const pulling = { Failed: 0, Active: 2, Waiting: 4998, failures: [], retries: [], answering: 2, transfer }
  const busy: Snapshot = { ...seen, view: { ...seen.view!, ...pulling } }
  const { status } = report(busy, plan(busy), { started: 0 }, busy.now)!
  expect(status).toMatchObject({
    transfer,
    message:
      "0 of 5000 nodes have the image; 30 MiB of 80 MiB fetched on 2 nodes, on 1 of them together with other pulls",
  })
  expect(validate(ImagePullJob, { ...busy.job, status }).errors).toEqual([])
  const over: Snapshot = { ...busy, view: { ...busy.view!, Active: 0, Waiting: 0, Succeeded: 5000 } }
  expect(report(over, plan(over), { started: 0 }, busy.now)!.status).not.toHaveProperty("transfer")
})
