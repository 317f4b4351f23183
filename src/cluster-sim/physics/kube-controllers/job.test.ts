import { describe, expect, test } from "vitest"
import type { Json, Obj } from "../../object.ts"
import { cronJobController, zonedTime } from "./cron-job.ts"
import { garbageCollector } from "./garbage-collector.ts"
import { indexesOf, indexText, jobController } from "./job.ts"
import { ttlController } from "./job-ttl.ts"
import { type PlainNodes, plainNodes, testWorld } from "./test-world.ts"

const template = (spec: Json = {}) => ({
  spec: {
    restartPolicy: "Never",
    terminationGracePeriodSeconds: 1,
    containers: [{ name: "c", image: "job:1" }],
    ...spec,
  },
})
const job = (spec: Json = {}, name = "work"): Json => ({
  apiVersion: "batch/v1",
  kind: "Job",
  metadata: { name },
  spec: { template: template(), ...spec },
})

function started(options: PlainNodes & { at?: number } = {}) {
  const world = testWorld(options.at === undefined ? {} : { at: options.at })
  world.start(
    jobController(world),
    ttlController(world),
    cronJobController(world),
    garbageCollector(world),
    plainNodes(world, { readyMs: () => 20, endMs: () => 30, finishMs: () => 2000, ...options }),
  )
  return world
}
type World = ReturnType<typeof started>

const seen = ({ status = {} }: Obj) =>
  [
    `active ${status.active ?? 0}`,
    `succeeded ${status.succeeded ?? 0}`,
    `failed ${status.failed ?? 0}`,
    `uncounted ${Object.values(status.uncountedTerminatedPods ?? {}).flat().length}`,
    ...(status.conditions ?? []).map(({ type, status, reason }: Json) => `${type}=${status} ${reason}`),
  ].join(", ")
const statuses = (world: World, name = "work") =>
  world.history
    .filter(({ object }) => object.kind === "Job" && object.metadata.name === name)
    .map(({ object }) => seen(object))
const distinct = (lines: string[]) => lines.filter((line, index) => line !== lines[index - 1])

test("a job runs its pods, counts each once, and ends in two steps, as seen on a real 1.36", async () => {
  const world = started()
  world.create(job({ completions: 3, parallelism: 2 }))
  await world.clock.advance(20_000)
  expect(distinct(statuses(world))).toEqual([
    "active 0, succeeded 0, failed 0, uncounted 0",
    "active 2, succeeded 0, failed 0, uncounted 0",
    "active 1, succeeded 0, failed 0, uncounted 2",
    "active 1, succeeded 2, failed 0, uncounted 0",
    "active 0, succeeded 2, failed 0, uncounted 1, SuccessCriteriaMet=True CompletionsReached",
    "active 0, succeeded 3, failed 0, uncounted 0, SuccessCriteriaMet=True CompletionsReached, Complete=True CompletionsReached",
  ])
  const { status, metadata } = world.get("Job", "work")!
  expect(status).toMatchObject({ ready: 0, terminating: 0, uncountedTerminatedPods: {} })
  expect(status.completionTime).toBe(status.conditions[1].lastTransitionTime)
  expect(world.events("work").at(-1)).toBe("Completed: Job completed")
  const pods = world.list("Pod")
  expect(pods).toHaveLength(3)
  expect(pods.every(({ metadata }) => !metadata.finalizers)).toBe(true)
  expect(pods[0]?.metadata.labels).toMatchObject({
    "batch.kubernetes.io/job-name": "work",
    "batch.kubernetes.io/controller-uid": metadata.uid,
    "job-name": "work",
    "controller-uid": metadata.uid,
  })
})

test("failed pods are replaced after 10 s, 20 s, 40 s …, until the limit", async () => {
  const world = started({ finishMs: () => undefined })
  world.create(job({ backoffLimit: 2 }))
  const created: number[] = []
  for (let round = 0; round < 3; round++) {
    await world.clock.advance(45_000)
    const running = world.list("Pod").find(({ status }) => status.phase === "Running")
    if (!running) continue
    created.push(Date.parse(running.metadata.creationTimestamp))
    world.setStatus(running, { phase: "Failed", conditions: [] })
  }
  await world.clock.advance(10_000)
  expect(created).toHaveLength(3)
  expect(statuses(world).at(-1)).toBe(
    "active 0, succeeded 0, failed 3, uncounted 0, FailureTarget=True BackoffLimitExceeded, Failed=True BackoffLimitExceeded",
  )
  expect(world.events("work").at(-1)).toBe("BackoffLimitExceeded: Job has reached the specified backoff limit")
})

test("a job past its deadline deletes its pods and fails when they are gone, as seen on a real 1.36", async () => {
  const world = started({ finishMs: () => undefined })
  world.create(job({ activeDeadlineSeconds: 3 }))
  await world.clock.advance(10_000)
  const end = distinct(statuses(world)).slice(-3)
  expect(end).toEqual([
    "active 0, succeeded 0, failed 0, uncounted 1, FailureTarget=True DeadlineExceeded",
    "active 0, succeeded 0, failed 1, uncounted 0, FailureTarget=True DeadlineExceeded",
    "active 0, succeeded 0, failed 1, uncounted 0, FailureTarget=True DeadlineExceeded, Failed=True DeadlineExceeded",
  ])
})

test("suspended, resumed, suspended: pods are deleted and created, and do not count as failed", async () => {
  const world = started({ finishMs: () => undefined })
  world.create(job({ suspend: true }))
  await world.clock.advance(3000)
  expect(world.get("Job", "work")?.status).not.toHaveProperty("startTime")
  world.patch("Job", "work", { spec: { suspend: false } })
  await world.clock.advance(3000)
  expect(world.get("Job", "work")?.status).toHaveProperty("startTime")
  world.patch("Job", "work", { spec: { suspend: true } })
  await world.clock.advance(3000)
  expect(distinct(statuses(world))).toEqual([
    "active 0, succeeded 0, failed 0, uncounted 0",
    "active 0, succeeded 0, failed 0, uncounted 0, Suspended=True JobSuspended",
    "active 1, succeeded 0, failed 0, uncounted 0, Suspended=False JobResumed",
    "active 0, succeeded 0, failed 0, uncounted 0, Suspended=True JobSuspended",
  ])
  expect(world.events("work").filter(text => /Job (suspended|resumed)/.test(text))).toEqual([
    "Suspended: Job suspended (x2)",
    "Resumed: Job resumed",
  ])
})

test("indexed pods get their index, and completed indexes are a list of ranges", async () => {
  const world = started()
  world.create(job({ completionMode: "Indexed", completions: 4, parallelism: 4 }))
  await world.clock.advance(500)
  const [pod] = world.list("Pod").sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
  expect(pod?.metadata.name).toMatch(/^work-0-.{5}$/)
  expect(pod?.metadata.annotations).toEqual({ "batch.kubernetes.io/job-completion-index": "0" })
  expect(pod?.spec).toMatchObject({ hostname: "work-0" })
  expect(pod?.spec.containers[0].env).toMatchObject([{ name: "JOB_COMPLETION_INDEX" }])
  await world.clock.advance(10_000)
  expect(world.get("Job", "work")?.status).toMatchObject({ succeeded: 4, completedIndexes: "0-3" })
})

test("a finished job is deleted after its TTL, and its pods with it", async () => {
  const world = started()
  world.create(job({ ttlSecondsAfterFinished: 5 }))
  await world.clock.advance(6000)
  expect(world.get("Job", "work")).toBeDefined()
  await world.clock.advance(10_000)
  expect(world.get("Job", "work")).toBeUndefined()
  expect(world.list("Pod")).toEqual([])
})

test("a deleted job removes the finalizers of its pods", async () => {
  const world = started({ finishMs: () => undefined })
  world.create(job())
  await world.clock.advance(2000)
  world.remove("Job", "work", "Background")
  await world.clock.advance(5000)
  expect(world.list("Pod")).toEqual([])
})

test("indexes as text", () => {
  expect(indexText([0, 2, 3, 5, 6, 7])).toBe("0,2,3,5-7")
  expect(indexesOf("0,2,3,5-7")).toEqual([0, 2, 3, 5, 6, 7])
})

test("scheduled times are written in their time zone", () => {
  expect(zonedTime(Date.parse("2026-06-01T01:00:00Z"), "Europe/Berlin")).toBe("2026-06-01T03:00:00+02:00")
  expect(zonedTime(Date.parse("2026-06-01T01:00:00Z"), undefined)).toBe("2026-06-01T01:00:00Z")
})

describe("a CronJob", () => {
  const cronJob = (spec: Json = {}): Json => ({
    apiVersion: "batch/v1",
    kind: "CronJob",
    metadata: { name: "tick" },
    spec: { schedule: "* * * * *", jobTemplate: { spec: { template: template() } }, ...spec },
  })
  const at = Date.parse("2026-01-01T00:00:10Z")
  const names = (world: World) => world.list("Job").map(({ metadata }) => metadata.name)

  test("starts a job each minute, named by the minute, and keeps the last three", async () => {
    const world = started({ at })
    world.create(cronJob())
    await world.clock.advance(5 * 60_000)
    const minute = Date.parse("2026-01-01T00:00:00Z") / 60_000
    expect(names(world)).toEqual([`tick-${minute + 3}`, `tick-${minute + 4}`, `tick-${minute + 5}`])
    const { status } = world.get("CronJob", "tick")!
    expect(status).toMatchObject({ lastScheduleTime: "2026-01-01T00:05:00Z", lastSuccessfulTime: expect.any(String) })
    expect(world.events("tick").slice(0, 2)).toEqual([
      `SuccessfulCreate: Created job tick-${minute + 1}`,
      `SawCompletedJob: Saw completed job: tick-${minute + 1}, condition: Complete`,
    ])
    expect(world.get("Job", `tick-${minute + 5}`)?.metadata.annotations).toEqual({
      "batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-01-01T00:05:00Z",
    })
  })

  test("forbids, replaces or allows another one while one runs", async () => {
    const counts: Record<string, number> = {}
    for (const concurrencyPolicy of ["Forbid", "Replace", "Allow"]) {
      const world = started({ at, finishMs: () => undefined })
      world.create(cronJob({ concurrencyPolicy }))
      await world.clock.advance(3 * 60_000)
      counts[concurrencyPolicy] = names(world).length
      if (concurrencyPolicy === "Replace") expect(names(world)[0]).toMatch(/3$/)
      if (concurrencyPolicy === "Forbid") expect(world.events("tick").join()).toContain("JobAlreadyActive")
    }
    expect(counts).toEqual({ Forbid: 1, Replace: 1, Allow: 3 })
  })

  test("does nothing while suspended, and afterwards starts only the last missed job", async () => {
    const world = started({ at })
    world.create(cronJob({ suspend: true }))
    await world.clock.advance(10 * 60_000)
    expect(names(world)).toEqual([])
    world.patch("CronJob", "tick", { spec: { suspend: false } })
    await world.clock.advance(1000)
    expect(names(world)).toHaveLength(1)
  })
})
