import { expect, test } from "vitest"
import { clusterGroupUpgrades } from "#controllers/clustergroupupgrade/resources.ts"
import { fleetStory, namespace, serviceImage } from "#test/support/cluster-fleet-story.ts"

const quick = { readyAfterMs: 60_000 }
const five = () => ({ a: { ...quick }, b: { ...quick }, c: { ...quick }, d: { ...quick }, e: { ...quick } })

test("canaries first and alone, then the others in batches, and every cluster is complete", async () => {
  const story = await fleetStory(five())
  story.start()
  await story.run({ remediationStrategy: { canaries: ["c"], maxConcurrency: 2 } })
  await story.until("Completed")
  expect(await story.states()).toEqual({
    a: "Completed",
    b: "Completed",
    c: "Completed",
    d: "Completed",
    e: "Completed",
  })
  expect(story.order[0]).toBe("c")
  expect(new Set(story.order.slice(1, 3))).toEqual(new Set(["a", "b"]))
  expect(story.most()).toBe(2)
  for (const name of ["a", "e"])
    expect(story.spoke(name).read(serviceImage())).toMatchObject({
      spec: { defaultImage: "registry.example.com/dicom:v2" },
    })
  const status = await story.status()
  expect(status).toMatchObject({ progress: "5/5", counts: { Completed: 5 }, batches: 3, inflight: [] })
  expect(status.operation).toMatchObject({ phase: "Complete", total: 5, completed: 5 })
})

test("a canary that cannot go on stops the run, and no other cluster gets anything", async () => {
  const story = await fleetStory({
    ...five(),
    a: { readyAfterMs: 1000, stalls: { reason: "AllFailed", message: "all crash" } },
  })
  story.start()
  await story.run({ remediationStrategy: { canaries: ["a"] } })
  await story.until("CanaryFailed")
  await story.world.advance("1h")
  expect(story.order).toEqual(["a"])
  const status = await story.status()
  expect(status.clusters).toEqual([
    { name: "a", state: "Failed", cause: expect.stringContaining("AllFailed: all crash") },
  ])
  expect(status.conditions).toContainEqual(
    expect.objectContaining({ type: "Stalled", status: "True", reason: "CanaryFailed" }),
  )
})

test("a batch whose time is over goes on without its late cluster", async () => {
  const story = await fleetStory({ ...five(), a: {} })
  story.start()
  await story.run({ remediationStrategy: { timeout: 60 } })
  await story.until("TimedOut")
  expect(await story.states()).toEqual({
    a: "TimedOut",
    b: "Completed",
    c: "Completed",
    d: "Completed",
    e: "Completed",
  })
  const { startedAt, endedAt } = (await story.upgrade("a")).status
  // A third of an hour: the share of the first of three batches.
  expect(Date.parse(endedAt) - Date.parse(startedAt)).toBeGreaterThanOrEqual(20 * 60_000 - 1000)
  expect(Date.parse(endedAt) - Date.parse(startedAt)).toBeLessThan(20 * 60_000 + 10_000)
})

test("with Abort it ends the run", async () => {
  const story = await fleetStory({ ...five(), a: {} })
  story.start()
  await story.run({ batchTimeoutAction: "Abort", remediationStrategy: { timeout: 60 } })
  await story.until("BatchTimedOut")
  expect(new Set(story.order)).toEqual(new Set(["a", "b"]))
})

test("nothing begins outside the window, what runs has its grace, and closed hours do not count", async () => {
  // The story begins at midnight. A cluster takes 50 minutes, the window is open from one to two.
  const slow = { readyAfterMs: 50 * 60_000 }
  const story = await fleetStory({ a: { ...slow }, b: { ...slow }, c: { ...slow } })
  story.start()
  await story.run({
    windows: { upgrade: [{ schedule: "0 1 * * *", durationMinutes: 60 }], graceMinutes: 30 },
    remediationStrategy: { maxConcurrency: 1, timeout: 200 },
  })
  await story.until("OutsideWindow")
  expect(story.order).toEqual([])
  expect((await story.status()).nextWindow).toBe("2026-01-01T01:00:00Z")
  await story.world.advance("1h55m")
  // The first is complete at ten to two: the ten minutes that are left are too short for the next one.
  expect(await story.states()).toMatchObject({ a: "Completed", b: "NotStarted" })
  expect((await story.status()).state).toBe("DoesNotFit")
  await story.world.advance("48h")
  await story.until("Completed")
  const begun = await Promise.all(
    ["a", "b", "c"].map(async name => (await story.upgrade(name)).status.startedAt.slice(0, 13)),
  )
  expect(begun).toEqual(["2026-01-01T01", "2026-01-02T01", "2026-01-03T01"])
  expect((await story.status()).workedSeconds).toBeLessThan(200 * 60)
})

test("batches after the canaries wait for approval, and an approval of another operation has no effect", async () => {
  const story = await fleetStory(five())
  story.start()
  await story.run({ remediationStrategy: { canaries: ["a"], requireApproval: "AfterCanaries" } })
  await story.until("AwaitingApproval")
  const approve = (operation: string) =>
    story.world.patch(
      clusterGroupUpgrades,
      "north",
      { metadata: { annotations: { "autoimagemanager.io/approved": JSON.stringify({ operation, tiers: ["2"] }) } } },
      namespace,
    )
  await approve("g99")
  await story.world.advance("10m")
  expect(story.order).toEqual(["a"])
  await approve((await story.status()).operation.id)
  await story.until("Completed")
  expect(story.order).toHaveLength(5)
})

test("while it is paused nothing new begins, and what was begun is seen to its end", async () => {
  const story = await fleetStory(five())
  story.start()
  await story.run({ remediationStrategy: { canaries: ["a"] } })
  await story.world.until("the canary got its objects", () => story.order.length > 0)
  await story.run({ paused: true, remediationStrategy: { canaries: ["a"] } })
  await story.until("Paused")
  await story.world.advance("1h")
  expect(story.order).toEqual(["a"])
  expect(await story.states()).toMatchObject({ a: "Completed" })
  await story.run({ remediationStrategy: { canaries: ["a"] } })
  await story.until("Completed")
})

test("a cluster that is away times out with its batch, and gets a batch at the end when it is back", async () => {
  const story = await fleetStory({ ...five(), a: { ...quick, isAway: true }, e: { readyAfterMs: 30 * 60_000 } })
  story.start()
  await story.run({ remediationStrategy: { timeout: 120 } })
  await story.world.advance("10m")
  expect(await story.states()).toMatchObject({ a: "InProgress", b: "Completed" })
  expect((await story.status()).counts).toMatchObject({ Unreachable: 1 })
  await story.world.until("its batch is over", async () => (await story.states()).a === "TimedOut", "2h")
  story.spoke("a").setAway(false)
  await story.until("Completed")
  expect(story.order.at(-1)).toBe("a")
})

test("a cluster that comes back after the run gets nothing of it", async () => {
  const story = await fleetStory({ a: { ...quick, isAway: true }, b: { ...quick } })
  story.start()
  await story.run({ remediationStrategy: { timeout: 30 } })
  await story.until("TimedOut")
  story.spoke("a").setAway(false)
  await story.world.advance("24h")
  expect(story.spoke("a").writes).toEqual([])
})

test("a run over changed upgrades is a new operation, and what was begun is superseded", async () => {
  const story = await fleetStory({ a: { ...quick }, b: {} })
  story.start()
  await story.run({ remediationStrategy: { maxConcurrency: 1 } })
  await story.world.until("b is in progress", async () => (await story.states()).b === "InProgress")
  await story.run({
    remediationStrategy: { maxConcurrency: 1 },
    upgrades: [{ name: "dicom", manifests: [serviceImage("registry.example.com/dicom:v3")] }],
  })
  story.spoke("b").script.readyAfterMs = 1000
  await story.until("Completed")
  const { operation, history } = await story.status()
  expect(operation).toMatchObject({ phase: "Complete", id: "g2" })
  expect(history).toMatchObject([{ id: "g1", phase: "Superseded" }])
  for (const name of ["a", "b"])
    expect(story.spoke(name).read(serviceImage())).toMatchObject({
      spec: { defaultImage: "registry.example.com/dicom:v3" },
    })
})

test("upgrades follow each other on a cluster, each after its soak", async () => {
  const story = await fleetStory({ a: { readyAfterMs: 1000 } })
  story.start()
  const second = serviceImage("registry.example.com/report:v1", "report")
  await story.run({
    upgrades: [
      { name: "dicom", soakSeconds: 600, manifests: [serviceImage()] },
      { name: "report", manifests: [second] },
    ],
  })
  await story.world.advance("5m")
  expect(story.spoke("a").read(second)).toBeUndefined()
  await story.until("Completed")
  expect(story.spoke("a").read(second)).toBeDefined()
})

test("an image mapping of a cluster changes what that cluster gets, and no other", async () => {
  const mapping = [{ from: "registry.example.com/", to: "registry.north.example.com/" }]
  const story = await fleetStory({ a: { ...quick }, b: { ...quick } }, { spokes: { a: { imageMapping: mapping } } })
  story.start()
  await story.run()
  await story.until("Completed")
  expect(story.spoke("a").read(serviceImage())).toMatchObject({
    spec: { defaultImage: "registry.north.example.com/dicom:v2" },
  })
  expect(story.spoke("b").read(serviceImage())).toMatchObject({
    spec: { defaultImage: "registry.example.com/dicom:v2" },
  })
})

const bad: Record<string, { spec: object; reason: string; says: string }> = {
  "an unknown cluster": { spec: { clusters: ["a", "x"] }, reason: "ClusterNotFound", says: "x" },
  "a canary that is not selected": {
    spec: { clusters: ["a"], remediationStrategy: { canaries: ["b"] } },
    reason: "CanaryNotSelected",
    says: "b is not among",
  },
  "an unknown time zone": {
    spec: { windows: { upgrade: [{ schedule: "0 1 * * *", durationMinutes: 60, timeZone: "Mars/North" }] } },
    reason: "InvalidWindow",
    says: "Europe/Berlin",
  },
  "a window that never opens": {
    spec: { windows: { upgrade: [{ schedule: "0 1 30 2 *", durationMinutes: 60 }] } },
    reason: "InvalidWindow",
    says: "never opens",
  },
  "one object twice": {
    spec: { upgrades: [{ name: "x", manifests: [serviceImage(), serviceImage()] }] },
    reason: "InvalidManifest",
    says: "write each object once",
  },
  "a missing configuration": {
    spec: { preCaching: true, preCachingConfigRef: { name: "none" } },
    reason: "PrecacheSpecIncomplete",
    says: "no PreCachingConfig none",
  },
}
for (const [name, { spec, reason, says }] of Object.entries(bad))
  test(`${name} is answered with field and fix, and nothing begins`, async () => {
    const story = await fleetStory({ a: { ...quick }, b: { ...quick } })
    story.start()
    await story.run(spec as never)
    await story.until(reason)
    await story.world.advance("1h")
    expect(story.order).toEqual([])
    const { conditions } = await story.status()
    expect(conditions).toContainEqual(
      expect.objectContaining({ type: "Stalled", status: "True", reason, message: expect.stringContaining(says) }),
    )
  })

test("the three nights: cached in part, cached, upgraded", async () => {
  // The job of the first night runs out of time, the one of the second night succeeds.
  const story = await fleetStory({ a: {}, b: { ...quick } })
  const job = {
    apiVersion: "autoimagemanager.io/v1alpha1",
    kind: "ImageListPullJob",
    metadata: { name: "pre-cache", namespace: "aim-pre-cache" },
  }
  story.start()
  await story.run({
    preCaching: true,
    windows: {
      preCaching: [{ schedule: "0 1 * * *", durationMinutes: 120 }],
      upgrade: [{ schedule: "0 1 3 * *", durationMinutes: 240 }],
    },
  })
  await story.world.advance("70m")
  expect((await story.upgrade("a")).status.precache).toMatchObject({ state: "Active", attempt: 1 })
  expect((await story.upgrade("b")).status.precache).toMatchObject({ state: "Succeeded", attempt: 1 })
  // An attempt may last until its window closes.
  expect(story.spoke("a").read(job)).toMatchObject({ spec: { completionPolicy: { activeDeadlineSeconds: 7200 } } })
  await story.world.advance("115m")
  story.spoke("a").edit(job, object => {
    const { generation } = object.metadata
    const condition = { observedGeneration: generation, reason: "ImagesFailed", message: "0 of 1 image on every node" }
    object.status = {
      observedGeneration: generation,
      conditions: [
        { ...condition, type: "Ready", status: "False" },
        { ...condition, type: "Stalled", status: "True" },
      ],
      failedImageStatuses: [{ name: "x", message: "DeadlineExceeded: the job has 7200 s" }],
    }
  })
  await story.world.advance("1h")
  expect((await story.upgrade("a")).status.precache).toMatchObject({ state: "PrecacheTimeout", attempt: 1 })
  story.spoke("a").script.readyAfterMs = 60_000
  await story.world.advance("22h")
  expect((await story.upgrade("a")).status.precache).toMatchObject({ state: "Succeeded", attempt: 2 })
  expect(story.order).toEqual([])
  expect((await story.status()).conditions).toContainEqual(
    expect.objectContaining({ type: "PrecachingSucceeded", status: "True", reason: "PrecachingCompleted" }),
  )
  // What pre-caching needed is gone.
  expect(story.spoke("b").read(job)).toBeUndefined()
  await story.world.advance("24h")
  await story.until("Completed")
  for (const name of ["a", "b"]) expect((await story.upgrade(name)).status.startedAt).toMatch(/^2026-01-03T01/)
})

test("a run that is rolled back asks the clusters for the operation that each reported, the last batch first", async () => {
  const story = await fleetStory({ a: {}, b: {}, c: {} })
  const say = (cluster: string, ready: string, phase: string) =>
    story.spoke(cluster).edit(serviceImage(), object => {
      const { generation: observedGeneration } = object.metadata
      const said = { observedGeneration, reason: phase, message: "" }
      object.status = {
        observedGeneration,
        operation: { id: `g7${cluster}`, phase },
        conditions: [
          { ...said, type: "Ready", status: ready },
          { ...said, type: "Stalled", status: ready === "True" ? "False" : "True" },
        ],
      }
    })
  story.start()
  await story.run({ onFailure: "Rollback", remediationStrategy: { maxConcurrency: 1, failureBudget: 0 } })
  for (const name of ["a", "b", "c"]) {
    await story.world.until(`${name} got its objects`, () => story.order.includes(name))
    if (name === "c") say(name, "False", "Halted")
    else say(name, "True", "Complete")
  }
  await story.until("RollingBack")
  const asked = (cluster: string) =>
    story.spoke(cluster).read(serviceImage())?.metadata.annotations?.["autoimagemanager.io/rollback"]
  for (const name of ["c", "b", "a"]) {
    await story.world.until(`${name} is asked`, () => asked(name) === `g7${name}`)
    for (const earlier of name === "c" ? ["a", "b"] : name === "b" ? ["a"] : []) expect(asked(earlier)).toBeUndefined()
    say(name, "False", "RolledBack")
  }
  await story.until("RolledBack")
  expect(await story.states()).toEqual({ a: "RolledBack", b: "RolledBack", c: "RolledBack" })
})

test("a hub that was down for a day goes on where it was, and that day does not count", async () => {
  const story = await fleetStory({ a: {}, b: { ...quick } })
  story.start()
  await story.run({ remediationStrategy: { maxConcurrency: 1, timeout: 60 } })
  await story.world.until("a got its objects", () => story.order.includes("a"))
  story.controller.die()
  await story.world.advance("24h")
  story.start()
  await story.world.advance("5m")
  expect(await story.states()).toEqual({ a: "InProgress", b: "NotStarted" })
  story.spoke("a").settle(serviceImage())
  await story.until("Completed")
  expect(story.spoke("a").read(serviceImage())?.metadata.generation).toBe(1)
})
