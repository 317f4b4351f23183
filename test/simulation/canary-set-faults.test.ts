import { describe, expect, test } from "vitest"
import { isDecision, nth, stale } from "#cluster-sim/faults/faults.ts"
import { createLag } from "#cluster-sim/faults/lag.ts"
import type { Json } from "#cluster-sim/index.ts"
import { canaries } from "#controllers/canary/resources.ts"
import { everyOrdinal, heldMark } from "#core/in-place/names.ts"
import { type CanaryOptions, type CanaryStory, canaryStory, v1, v2 } from "#test/support/canary-story.ts"
import { faults, keepAlive, watches } from "./fates.ts"

// Every fault at every write of a run over a StatefulSet and a DaemonSet, metrics that hang or say nothing, views that are
// old and native controllers that are behind. A run ends as without a fault: pods of the other revision take the place of
// those before, one for one, at most one is down, and what always holds did at every moment.

const kinds = ["StatefulSet", "DaemonSet"] as const
const imageOf = (pod: Json) => pod.spec.containers[0].image as string
const metrics = [{ name: "request-success-rate", thresholdRange: { min: 99 } }]
const good = [{ name: "request-success-rate", verdict: "Good" as const, value: 100 }]
const bad = [{ name: "request-success-rate", verdict: "Bad" as const, value: 50, why: "50 is below 99" }]
const spec = { analysis: { interval: "1m", threshold: 2, stepWeights: [34, 67], metrics } }

/** The fewest ready pods since all were, and how many were ever made. */
function podsEver({ world }: CanaryStory): { fewest: number; made: number } {
  const ready = new Map<string, boolean>()
  let fewest = Number.POSITIVE_INFINITY
  for (const { type, object } of world.history as unknown as { type: string; object: Json }[]) {
    if (object.kind !== "Pod") continue
    const conditions: Json[] = object.status?.conditions ?? []
    const isReady = conditions.some(each => each.type === "Ready" && each.status === "True")
    ready.set(object.metadata.uid, type !== "DELETED" && isReady && !object.metadata.deletionTimestamp)
    const count = [...ready.values()].filter(Boolean).length
    if (count === 3 || fewest < Number.POSITIVE_INFINITY) fewest = Math.min(fewest, count)
  }
  return { fewest, made: ready.size }
}

const isStopped = ({ spec: { updateStrategy } }: Json) =>
  updateStrategy.type === "OnDelete" || updateStrategy.rollingUpdate?.partition === everyOrdinal

async function expectPromoted(story: CanaryStory, what: string): Promise<void> {
  await story.world.settle("2m")
  const { status } = await story.canary()
  const set = await story.workload()
  expect([what, (await story.pods()).map(imageOf)]).toEqual([what, [v2, v2, v2]])
  expect([what, status.phase, status.canaryWeight, status.run]).toEqual([what, "Succeeded", 0, undefined])
  expect([what, status.history.map(({ result }: Json) => result)]).toEqual([what, ["Promoted"]])
  expect([what, story.weights()]).toEqual([what, [0, 34, 67, 100, 0]])
  // Three that ran, and one in the place of each.
  expect([what, podsEver(story)]).toEqual([what, { fewest: 2, made: 6 }])
  expect([what, isStopped(set), set.metadata.labels?.[heldMark]]).toEqual([what, true, "canary"])
}

async function expectRolledBack(story: CanaryStory, what: string): Promise<void> {
  await story.world.settle("5m")
  const { status } = await story.canary()
  expect([what, (await story.pods()).map(imageOf)]).toEqual([what, [v1, v1, v1]])
  expect([what, status.phase, status.canaryWeight, status.run]).toEqual([what, "Failed", 0, undefined])
  expect([what, status.history.map(({ result }: Json) => result)]).toEqual([what, ["RolledBack"]])
  expect([what, story.weights()]).toEqual([what, [0, 34, 0]])
  // One pod of the new revision took the place of another, and was replaced in turn.
  expect([what, podsEver(story)]).toEqual([what, { fewest: 2, made: 5 }])
}

/** Of a run with two weights, from the adoption on. */
const writes = 50
const isLong = process.env.AIM_RUNS !== undefined

async function faulty(options: CanaryOptions, make: (typeof faults)[string], at: number): Promise<CanaryStory> {
  const story = await canaryStory({ spec, ...options, isAlone: true })
  story.says.checks = good
  keepAlive(
    story.world.clock,
    given => story.run(given),
    make(nth(isDecision, at), story.world.clock, nth(isDecision, at + 1)),
  )
  await story.until("Initialized", "1h")
  return story
}

for (const kind of kinds) {
  // In the long form each fault at each write; in the short form each at one or two, and at others for each kind.
  const every = isLong ? 1 : 37
  const offset = kind === "StatefulSet" ? 0 : 11

  describe(`a fault at each write of a run of a ${kind}`, () => {
    for (const [index, [name, make]] of Object.entries(faults).entries())
      test(`promoted: ${name}`, async () => {
        for (let at = 1 + ((index * 5 + offset) % every); at <= writes; at += every) {
          const story = await faulty({ kind }, make, at)
          await story.setImage(v2)
          await story.until("Succeeded", "2h")
          await expectPromoted(story, `${name}: ${at}`)
        }
      })

    for (const [index, [name, make]] of Object.entries(faults).entries())
      test(`rolled back: ${name}`, async () => {
        for (let at = 12 + ((index * 3 + offset) % every); at <= writes; at += every) {
          const story = await faulty({ kind }, make, at)
          story.says.checks = bad
          await story.setImage(v2)
          await story.until("Failed", "2h")
          await expectRolledBack(story, `${name}: ${at}`)
        }
      })

    for (const [index, [name, make]] of Object.entries(faults).entries())
      test(`deleted in the middle: ${name}`, async () => {
        for (let at = 16 + ((index * 3 + offset) % every); at <= writes; at += every) {
          const story = await faulty({ kind }, make, at)
          const { world } = story
          await story.setImage(v2)
          await world.until("the weight", () => story.weights().includes(34), "1h")
          await story.remove()
          const what = `${name}: ${at}`
          await world.until(`${what}: the Canary is gone`, async () => !(await world.list(canaries)).length, "2h")
          await world.settle("2m")
          const set = await story.workload()
          expect([what, (await story.pods()).map(imageOf)]).toEqual([what, [v1, v1, v1]])
          expect([what, imageOf({ spec: set.spec.template.spec }), isStopped(set)]).toEqual([what, v1, false])
          expect([what, set.metadata.labels?.[heldMark], podsEver(story).fewest]).toEqual([what, undefined, 2])
        }
      })
  })

  describe(`a ${kind} whose world is seen late`, () => {
    const native = `${kind.toLowerCase()}-controller`
    const plural = `${kind.toLowerCase()}s`

    for (const resource of ["pods", plural, "controllerrevisions", "services", "endpointslices"])
      test(`a view of ${resource} that is thirty seconds old`, async () => {
        const story = await canaryStory({ kind, spec, isAlone: true })
        story.says.checks = good
        story.run({ faults: [stale(watches(resource), story.world.clock, 30_000)] })
        await story.until("Initialized", "1h")
        await story.setImage(v2)
        await story.until("Succeeded", "2h")
        await expectPromoted(story, resource)
      })

    for (const behind of [undefined, ["Pod"], [kind]])
      test(`its controller is twenty seconds behind in ${behind?.join() ?? "everything"}`, async () => {
        const lag = createLag()
        const story = await canaryStory({ kind, spec, lags: { [native]: lag } })
        story.says.checks = good
        await story.until("Initialized", "1h")
        lag.behind(20_000, behind)
        await story.setImage(v2)
        await story.until("Succeeded", "2h")
        await expectPromoted(story, "behind")
      })

    test("its controller is stopped in the middle of a run, and continued", async () => {
      for (const seconds of [2, 65, 130, 190]) {
        const lag = createLag()
        const story = await canaryStory({ kind, spec, lags: { [native]: lag } })
        story.says.checks = good
        await story.until("Initialized", "1h")
        await story.setImage(v2)
        await story.world.advance(`${seconds}s`)
        lag.stop()
        await story.world.advance("90s")
        lag.resume()
        await story.until("Succeeded", "2h")
        await expectPromoted(story, `stopped after ${seconds} s`)
      }
    })
  })

  describe(`metrics and hooks beside a ${kind} (F12)`, () => {
    test("a metric that has no data holds the weight until the deadline, and then the run fails", async () => {
      const story = await canaryStory({ kind, spec })
      story.says.checks = [{ name: "request-success-rate", verdict: "NoData", why: "the query found no series" }]
      await story.until("Initialized", "1h")
      await story.setImage(v2)
      await story.until("Failed", "2h")
      await expectRolledBack(story, "no data")
      expect((await story.canary()).status.history[0].reason).toBe("DeadlineExceeded")
    })

    test("a metric service that errs never promotes, and the run goes on when it answers", async () => {
      const story = await canaryStory({ kind, spec })
      story.says.checks = [{ name: "request-success-rate", verdict: "Error", why: "it did not answer" }]
      await story.until("Initialized", "1h")
      await story.setImage(v2)
      await story.world.advance("2h")
      expect(story.weights()).toEqual([0, 34])
      story.says.checks = good
      await story.until("Succeeded", "1h")
      await expectPromoted(story, "error")
    })
  })
}
