import { describe, expect, test } from "vitest"
import type { Json } from "#cluster-sim/index.ts"
import { canaries, statefulSets } from "#controllers/canary/resources.ts"
import { everyOrdinal, heldMark } from "#core/in-place/names.ts"
import { type CanaryOptions, type CanaryStory, canaryStory, uidsOf, v1, v2, v3 } from "#test/support/canary-story.ts"

// A Canary over a StatefulSet or a DaemonSet in virtual time: pods of the new revision take the place of others, one by one.

const imageOf = (pod: Json) => pod.spec.containers[0].image as string
const imagesOf = async (story: CanaryStory) => (await story.pods()).map(imageOf)
const templateOf = async (story: CanaryStory) => imageOf({ spec: (await story.workload()).spec.template.spec })
const marksOf = async (story: CanaryStory) => {
  const { metadata } = await story.workload()
  return [metadata.labels?.[heldMark], metadata.annotations?.[heldMark]]
}

/** How many pods that were ready there were of each image, at the worst moment. */
function fewestReady({ world }: CanaryStory): number {
  const ready = new Map<string, boolean>()
  let hadAll = false
  let fewest = Number.POSITIVE_INFINITY
  for (const { type, object } of world.history as unknown as { type: string; object: Json }[]) {
    if (object.kind !== "Pod") continue
    const conditions: Json[] = object.status?.conditions ?? []
    const isReady = conditions.some(each => each.type === "Ready" && each.status === "True")
    if (type === "DELETED") ready.delete(object.metadata.uid)
    else ready.set(object.metadata.uid, isReady && !object.metadata.deletionTimestamp)
    const count = [...ready.values()].filter(Boolean).length
    hadAll ||= count === 3
    if (hadAll) fewest = Math.min(fewest, count)
  }
  return fewest
}

async function adopted(options: CanaryOptions): Promise<CanaryStory> {
  const story = await canaryStory(options)
  await story.until("Initialized")
  await story.world.settle("10s")
  return story
}

async function removed({ world, remove }: CanaryStory): Promise<void> {
  await remove()
  await world.until("the Canary is gone", async () => !(await world.list(canaries)).length, "20m")
  await world.settle("2m")
}

const metrics = [{ name: "request-success-rate", thresholdRange: { min: 99 } }]
const judged = { analysis: { interval: "1m", threshold: 2, stepWeights: [34, 67], metrics } }
const bad = [{ name: "request-success-rate", verdict: "Bad" as const, value: 50, why: "50 is below 99" }]

for (const kind of ["StatefulSet", "DaemonSet"] as const)
  describe(`a ${kind}`, () => {
    test("is adopted without touching a pod, and held", async () => {
      const story = await canaryStory({ kind, isAlone: true })
      const before = uidsOf(await story.pods())
      story.run()
      await story.until("Initialized")
      await story.world.settle("1m")
      expect(uidsOf(await story.pods())).toEqual(before)
      expect((await marksOf(story))[0]).toBe("canary")
    })

    test("is promoted pod by pod, never more than one is down, and it is held for the next change", async () => {
      const story = await adopted({ kind })
      await story.setImage(v2)
      const canary = await story.until("Succeeded")
      await story.world.settle("1m")
      expect(await imagesOf(story)).toEqual([v2, v2, v2])
      expect(story.weights()).toEqual([0, 34, 67, 100, 0])
      expect(canary.status.history[0]).toMatchObject({ result: "Promoted" })
      expect(fewestReady(story)).toBe(2)
      // The next change is held, and runs too.
      const pods = uidsOf(await story.pods())
      await story.setImage(v3)
      await story.world.until("the run", async () => (await story.canary()).status.run !== undefined, "1m")
      expect((await story.pods()).filter(pod => pods.includes(pod.metadata.uid)).length).toBeGreaterThan(1)
      await story.until("Succeeded")
      await story.world.settle("1m")
      expect(await imagesOf(story)).toEqual([v3, v3, v3])
    })

    test("failed by a metric: requests go back, and so do its pods", async () => {
      const story = await adopted({ kind, spec: judged })
      const before = uidsOf(await story.pods())
      story.says.checks = bad
      await story.setImage(v2)
      await story.until("Failed")
      await story.world.settle("5m")
      const { status } = await story.canary()
      expect(story.weights()).toEqual([0, 34, 0])
      expect(await imagesOf(story)).toEqual([v1, v1, v1])
      expect(uidsOf(await story.pods()).filter(uid => before.includes(uid))).toHaveLength(2)
      expect(status.history[0]).toMatchObject({ result: "RolledBack", reason: "AnalysisFailed" })
      expect(fewestReady(story)).toBe(2)
      expect(await templateOf(story)).toBe(kind === "StatefulSet" ? v2 : v1)
      // The same template is not tried again.
      await story.setImage(v2)
      await story.world.settle("2m")
      expect((await story.canary()).status.phase).toBe("Failed")
      expect(await imagesOf(story)).toEqual([v1, v1, v1])
      // After a failed run letting go starts no rollout.
      const pods = uidsOf(await story.pods())
      await removed(story)
      expect(uidsOf(await story.pods())).toEqual(pods)
      expect(await templateOf(story)).toBe(v1)
      expect(await marksOf(story)).toEqual([undefined, undefined])
    })

    test("an image that cannot be pulled: the broken pod goes, and the others were never touched", async () => {
      const story = await adopted({ kind })
      const before = uidsOf(await story.pods())
      await story.setImage("registry.example.com/missing:1")
      await story.until("Failed")
      await story.world.settle("5m")
      expect(await imagesOf(story)).toEqual([v1, v1, v1])
      expect(uidsOf(await story.pods()).filter(uid => before.includes(uid))).toHaveLength(2)
      expect((await story.canary()).status.history[0].result).toBe("RolledBack")
    })

    test("the template changed during a run: the next one starts", async () => {
      const story = await adopted({ kind })
      await story.setImage(v2)
      await story.world.until("a weight", () => story.weights().includes(34))
      await story.setImage(v3)
      await story.until("Succeeded")
      await story.world.settle("1m")
      const { status } = await story.canary()
      expect(status.history.map(({ result }: Json) => result)).toEqual(["Promoted", "Superseded"])
      expect(await imagesOf(story)).toEqual([v3, v3, v3])
    })

    test("reverted: the run is cancelled, and its pods go back", async () => {
      const story = await adopted({ kind })
      await story.setImage(v2)
      await story.world.until("a weight", () => story.weights().includes(34))
      await story.setImage(v1)
      await story.until("Initialized")
      await story.world.settle("3m")
      expect(await imagesOf(story)).toEqual([v1, v1, v1])
      expect((await story.canary()).status.history[0]).toMatchObject({ result: "Cancelled", reason: "Reverted" })
    })

    for (const weight of [0, 34, 67])
      test(`deleted at weight ${weight}: template and pods go back, and nothing is held`, async () => {
        const story = await adopted({ kind })
        await story.setImage(v2)
        await story.world.until("the weight", () => story.weights().includes(weight))
        await removed(story)
        expect(await imagesOf(story)).toEqual([v1, v1, v1])
        expect(await templateOf(story)).toBe(v1)
        expect(await marksOf(story)).toEqual([undefined, undefined])
        expect(story.weights().at(-1)).toBe(0)
        expect(fewestReady(story)).toBeGreaterThan(1)
      })

    for (const phase of ["Promoting", "Finalising", "Succeeded"])
      test(`deleted when ${phase}: one revision is left, and nothing is held`, async () => {
        // The second pod comes with the promotion.
        const story = await adopted({
          kind,
          spec: { analysis: { ...judged.analysis, stepWeights: [34], metrics: [] } },
        })
        await story.setImage(v2)
        await story.until(phase)
        await removed(story)
        const images = await imagesOf(story)
        expect(new Set(images)).toEqual(new Set([await templateOf(story)]))
        expect(images).toHaveLength(3)
        expect(await marksOf(story)).toEqual([undefined, undefined])
      })
  })

const strategies: Record<string, [kind: "StatefulSet" | "DaemonSet", before: Json | undefined, after: Json]> = {
  "a StatefulSet's default": ["StatefulSet", undefined, { type: "RollingUpdate", rollingUpdate: { partition: 0 } }],
  "a StatefulSet's partition": [
    "StatefulSet",
    { type: "RollingUpdate", rollingUpdate: { partition: 2 } },
    { type: "RollingUpdate", rollingUpdate: { partition: 2 } },
  ],
  "a StatefulSet's OnDelete": ["StatefulSet", { type: "OnDelete" }, { type: "OnDelete" }],
  "a DaemonSet's default": [
    "DaemonSet",
    undefined,
    { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 1, maxSurge: 0 } },
  ],
  "a DaemonSet's share": [
    "DaemonSet",
    { type: "RollingUpdate", rollingUpdate: { maxUnavailable: "50%" } },
    { type: "RollingUpdate", rollingUpdate: { maxUnavailable: "50%", maxSurge: 0 } },
  ],
  "a DaemonSet's surge": [
    "DaemonSet",
    { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } },
    { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } },
  ],
}

for (const [name, [kind, updateStrategy, after]] of Object.entries(strategies))
  test(`${name} is given back exactly after a promotion`, async () => {
    const story = await adopted({ kind, workload: updateStrategy && { updateStrategy } })
    await story.setImage(v2)
    await story.until("Succeeded")
    await story.world.settle("1m")
    expect(await imagesOf(story)).toEqual([v2, v2, v2])
    await removed(story)
    expect((await story.workload()).spec.updateStrategy).toEqual(after)
    expect(await imagesOf(story)).toEqual([v2, v2, v2])
  })

test("during the analysis the partition stands above every ordinal, so that a change replaces no pod", async () => {
  const story = await adopted({ kind: "StatefulSet" })
  await story.setImage(v2)
  await story.world.until("a weight", () => story.weights().includes(34))
  await story.world.settle("5s")
  const { spec } = await story.workload()
  expect(spec.updateStrategy.rollingUpdate.partition).toBe(everyOrdinal)
  expect(await imagesOf(story)).toEqual([v1, v1, v2])
})

test("a set of ten gives its requests away as its pods go: pods and weight rise by turns", async () => {
  const spec = { analysis: { interval: "1m", threshold: 2, stepWeights: [30] } }
  const story = await adopted({ kind: "StatefulSet", replicas: 10, spec })
  await story.setImage(v2)
  await story.until("Succeeded")
  await story.world.settle("1m")
  expect(story.weights()).toEqual([0, 10, 20, 30, 40, 50, 60, 70, 80, 100, 0])
  expect(await imagesOf(story)).toEqual(Array.from({ length: 10 }, () => v2))
})

test("a StatefulSet of one pod cannot run two revisions: the Canary says so", async () => {
  const story = await canaryStory({ kind: "StatefulSet", replicas: 1 })
  const stalled = async () =>
    (await story.canary()).status?.conditions?.find(({ type }: Json) => type === "Stalled")?.reason
  await story.world.until("it is refused", async () => (await stalled()) === "WeightNotPossible", "1m")
})

const mixtures: Record<string, [reason: string, metric: Json, Json]> = {
  "a query that names only the workload": [
    "InvalidQuery",
    { name: "errors", query: 'x{app="{{ target }}"}' },
    { name: "errors", query: 'x{app="{{ target }}", hash="{{ revision }}"}' },
  ],
  "a built-in metric that goes by the names of pods": [
    "NotSupported",
    { name: "request-duration" },
    { name: "latency", query: 'y{hash="{{ revision }}"}' },
  ],
}

for (const [name, [reason, metric, exact]] of Object.entries(mixtures))
  test(`${name} would measure both revisions at once: refused with the remedy, and an exact one is taken`, async () => {
    const with_ = (given: Json) => ({ interval: "1m", threshold: 2, iterations: 2, metrics: [given] })
    const spec = { provider: "kubernetes" as const, service: { port: 80 }, analysis: with_(metric) }
    const story = await canaryStory({ kind: "StatefulSet", spec: spec as NonNullable<CanaryOptions["spec"]> })
    const stalled = async () => (await story.canary()).status?.conditions?.find(({ type }: Json) => type === "Stalled")
    await story.world.until("it is refused", async () => (await stalled())?.reason === reason, "1m")
    expect((await stalled()).message).toMatch(/^analysis\.metrics\[0\]\..*\{\{ revision \}\}/)
    await story.world.patch(canaries, "web", { spec: { analysis: with_(exact) } }, "default")
    await story.until("Initialized")
    expect(await stalled()).toMatchObject({ status: "False" })
  })

test("a StatefulSet that its owner takes back during a run is its owner's", async () => {
  const story = await adopted({ kind: "StatefulSet" })
  await story.setImage(v2)
  await story.world.until("a weight", () => story.weights().includes(34))
  await story.world.patch(
    statefulSets,
    "web",
    { spec: { updateStrategy: { rollingUpdate: { partition: 0 } } } },
    "default",
  )
  await story.world.settle("10m")
  expect(await imagesOf(story)).toEqual([v2, v2, v2])
  const { status } = await story.canary()
  expect(status.history[0]).toMatchObject({ result: "Cancelled", reason: "Released" })
  expect(status.canaryWeight).toBe(0)
})
