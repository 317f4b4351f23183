import { expect, test } from "vitest"
import { canaries } from "#controllers/canary/resources.ts"
import { canaryStory, uidsOf, v2 } from "#test/support/canary-story.ts"

const analysis = (query: string) => ({
  interval: "1m",
  threshold: 2,
  stepWeights: [34, 67],
  metrics: [{ name: "errors", query, thresholdRange: { max: 1 } }],
})

test("a query that does not parse is refused before anything is made, and a correction starts the Canary", async () => {
  const story = await canaryStory({ spec: { analysis: analysis("sum(rate(errors[{{ interval }}])") } })
  const before = uidsOf(await story.pods())
  const stalled = async () => {
    const { status } = await story.canary()
    return status?.conditions?.find(({ type }: { type: string }) => type === "Stalled")
  }
  await story.world.until("Stalled", async () => (await stalled())?.status === "True")
  expect(await stalled()).toMatchObject({
    reason: "InvalidQuery",
    message: "analysis.metrics[0].query: the query does not parse at line 1, column 33: ) is missing, which closes (",
  })
  await story.world.settle("5m")
  expect(story.weights()).toEqual([])
  expect(uidsOf(await story.pods())).toEqual(before)

  const { metadata } = await story.canary()
  const body = { spec: { analysis: analysis("sum(rate(errors[{{ interval }}]))") } }
  await story.world.client.patch(canaries, metadata, { type: "merge", body })
  await story.until("Initialized")
  expect(await stalled()).toMatchObject({ status: "False", reason: "NotStalled" })
})

test("a spec that is broken during a run holds the run where it is", async () => {
  const story = await canaryStory({ spec: { analysis: analysis("vector(0)") } })
  await story.until("Initialized")
  await story.setImage(v2)
  await story.world.until("a weight", () => story.weights().includes(34))
  const { metadata } = await story.canary()
  const change = (query: string) =>
    story.world.client.patch(canaries, metadata, { type: "merge", body: { spec: { analysis: analysis(query) } } })
  await change("vector(")
  await story.world.settle("10m")
  expect(story.weights().at(-1)).toBe(34)
  expect((await story.canary()).status).toMatchObject({ phase: "Progressing", canaryWeight: 34 })
  await change("vector(0)")
  await story.until("Succeeded")
})
