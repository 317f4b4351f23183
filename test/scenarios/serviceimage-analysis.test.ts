import { expect, test } from "vitest"
import type { Secrets } from "#controllers/secrets.ts"
import { createServiceImageController } from "#controllers/serviceimage/controller.ts"
import { metricTemplates } from "#controllers/way-out.ts"
import { countRequests } from "#test/support/counted-requests.ts"
import { analysis, judgedTierStory as story, template, v2, v3 } from "#test/support/judged-tier-story.ts"

test("a tier whose error rate rose halts the rollout although its pods are healthy, and the rest keeps its image", async () => {
  const { world, is, setImage, condition, images, get, asked } = await story()
  await setImage(v2)
  await world.until("the halt", is("Halted"), "20m")
  expect(await condition("Halted")).toMatchObject({
    reason: "BadMetric",
    message: expect.stringMatching(/^tier early: error-rate: (2|3)[0-9]\.?\d* is above 5 \(failed check 2 of 2\)$/),
  })
  expect(await images()).toEqual({ "early-1": "2", "early-2": "2", "late-1": "1", "late-2": "1" })
  // One question for each metric and interval, whatever the tier has of objects and pods; and none at rest.
  expect(asked.metrics).toBe(2)
  await world.advance("5m")
  expect(asked.metrics).toBe(2)
  expect((await get()).status.tierStatus[0]).toMatchObject({
    upToDate: 2,
    analysis: { verdict: "BadMetric", failedChecks: 2, percent: 100 },
  })

  await setImage(v3)
  await world.until("v3 everywhere", is("Complete"), "20m")
  expect(await images()).toEqual({ "early-1": "3", "early-2": "3", "late-1": "3", "late-2": "3" })
  expect(asked.metrics).toBe(3)
  await world.advance("5m")
  expect(asked.metrics).toBe(3)
})

test("with onFailure: Rollback the tier goes back to the image before", async () => {
  const { world, get, setImage, images } = await story({ spec: { onFailure: "Rollback" } })
  await setImage(v2)
  await world.until("it to be back", async () => (await get()).status.operation.phase === "RolledBack", "30m")
  expect((await get()).status.operation.cause).toContain("error-rate")
  expect(await images()).toEqual({ "early-1": "1", "early-2": "1", "late-1": "1", "late-2": "1" })
})

test("a Prometheus that is down holds the step, and its answer lets it go on", async () => {
  const { world, prometheus, is, setImage, condition, images } = await story()
  prometheus.stop()
  await setImage(v3)
  await world.until("an error", async () => (await condition("Complete")).reason === "MetricError", "20m")
  await world.advance("12m")
  expect(await images()).toMatchObject({ "early-1": "3", "late-1": "1" })
  expect(await condition("Halted")).toBeUndefined()
  expect(await condition("Stalled")).toMatchObject({ status: "True", reason: "MetricError" })
  prometheus.resume()
  await world.until("v3 everywhere", is("Complete"), "20m")
})

test("a hook is asked in each round, told what is judged, and its no halts", async () => {
  let answer = 200
  const webhooks = [{ name: "smoke", url: "http://gate.example.com/", metadata: { cmd: "check" } }]
  const { world, is, setImage, condition, asked } = await story({
    tier: { analysis: { ...analysis, threshold: 1, metrics: [], webhooks } },
    hook: () => answer,
  })
  await setImage(v3)
  await world.until("v3 everywhere", is("Complete"), "20m")
  expect(asked.hooks).toMatchObject([
    {
      namespace: "default",
      method: "POST",
      name: "web",
      phase: "Progressing",
      metadata: { cmd: "check", tier: "early", percent: "100", image: v3 },
    },
  ])
  answer = 403
  await setImage(v2)
  await world.until("the halt", is("Halted"), "20m")
  expect(await condition("Halted")).toMatchObject({
    reason: "HookSaidNo",
    message: "tier early: smoke: answered 403 (failed check 1 of 1)",
  })
})

test("a hook whose Secret the API server does not give has not said no: nothing halts, and it is called later", async () => {
  let isDown = true
  const secrets: Secrets = {
    async read() {
      if (isDown) throw new Error("the server is down")
      return { ok: true, keys: new Map([["key", Buffer.from("secret")]]) }
    },
  }
  const webhooks = [{ name: "smoke", url: "http://gate.example.com/", secretRef: { name: "gate" } }]
  const tier = { analysis: { ...analysis, threshold: 1, metrics: [], webhooks } }
  const { world, is, setImage, condition, asked } = await story({ tier, secrets, spec: { onFailure: "Rollback" } })
  await setImage(v3)
  await world.until("an error", async () => (await condition("Complete")).reason === "MetricError", "20m")
  expect(await condition("Halted")).toBeUndefined()
  expect(asked.hooks).toEqual([])
  isDown = false
  await world.until("v3 everywhere", is("Complete"), "20m")
  expect(asked.hooks).toHaveLength(1)
})

test("a process that starts in the middle of a judgement goes on with it: what was counted, and since when", async () => {
  const { world, process, run, is, get, setImage, asked } = await story({
    tier: { steps: [{ percent: 100, soakSeconds: 600 }], analysis: { ...analysis, threshold: 3 } },
  })
  await setImage(v2)
  const early = async () => (await get()).status.tierStatus[0]
  await world.until("a failed check", async () => (await early()).analysis?.failedChecks === 1, "20m")
  const before = await early()
  await process.stop()
  await world.advance("5s")
  run()
  await world.advance("20s")
  expect(await early()).toMatchObject({ step: before.step, analysis: before.analysis })
  await world.until("the halt", is("Halted"), "10m")
  expect((await early()).analysis.failedChecks).toBe(3)
  expect(asked.metrics).toBe(3)
})

test("what cannot be asked says what to do: a template that is missing, and an address that may not be reached", async () => {
  const { world, process, setImage, condition } = await story()
  await process.stop()
  const { spec } = template
  const address = "http://10.0.0.1:9090"
  await world.patch(
    metricTemplates,
    "error-rate",
    { spec: { ...spec, provider: { ...spec.provider, address } } },
    "default",
  )
  world.run([createServiceImageController()])
  await setImage(v3)
  const stalled = async () => (await condition("Stalled"))?.status === "True"
  await world.until("a person is asked for", stalled, "20m")
  expect(await condition("Stalled")).toMatchObject({
    reason: "MetricError",
    message: expect.stringContaining("10.0.0.1"),
  })
  await world.client.delete(metricTemplates, { name: "error-rate", namespace: "default" })
  const says = async (words: string) => (await condition("Complete")).message.includes(words)
  await world.until(
    "the template is missed",
    () => says("MetricTemplate error-rate does not exist in default: create it"),
    "20m",
  )
})

test("a judgement costs one question in an interval and nothing of the API server but one status write, at any size", async () => {
  const costOf = async (early: number) => {
    const counted = countRequests()
    const tier = { steps: [{ percent: 100, soakSeconds: 270 }] }
    const { world, setImage, get, asked, is } = await story({ tier, early, faults: [counted.fault] })
    await setImage(v3)
    const judgedTimes = (times: number) => async () => asked.metrics === times
    // MetricTemplates are watched from the first round on.
    await world.until("the first round", judgedTimes(1), "20m")
    await world.advance("5s")
    counted.taken()
    await world.until("the fourth round", judgedTimes(4), "20m")
    await world.advance("5s")
    const judging = counted.taken()
    await world.until("v3 everywhere", is("Complete"), "20m")
    expect((await get()).status.tierStatus[0].total).toBe(early)
    return { judging, asked: asked.metrics }
  }
  const small = await costOf(2)
  expect(small).toEqual({
    judging: { reads: [], watches: 0, writes: Array(3).fill("PUT serviceimages/web/status") },
    asked: 4,
  })
  expect(await costOf(6)).toEqual(small)
})
