import { expect, test } from "vitest"
import type { Json } from "#cluster-sim/index.ts"
import { events } from "#runtime/events.ts"
import { type CanaryStory, canaryStory, v2 } from "#test/support/canary-story.ts"

// Each phase of a Canary is an Event, once for each time that it is entered.

async function told(story: CanaryStory): Promise<string[]> {
  await story.world.settle("1m")
  const { items } = await story.world.client.list<Json & { metadata: Json }>(events, { namespace: "default" })
  return (
    items
      .filter(({ involvedObject }) => involvedObject.kind === "Canary")
      // Times have whole seconds, and several phases may begin within one.
      .sort((a, b) => Number(a.metadata.resourceVersion) - Number(b.metadata.resourceVersion))
      .map(({ type, reason }) => (type === "Warning" ? `${reason}!` : reason))
  )
}

test("a run that is promoted", async () => {
  const story = await canaryStory()
  await story.until("Initialized")
  await story.setImage(v2)
  await story.until("Succeeded")
  const phases = ["Initializing", "Initialized", "Progressing", "Promoting", "Finalising", "Succeeded"]
  const seen = await told(story)
  expect(seen.filter(reason => phases.includes(reason))).toEqual(phases)
  expect(seen).toContain("Advanced")
})

test("a run that fails, and a Canary that goes", async () => {
  const metrics = [{ name: "request-success-rate", thresholdRange: { min: 99 } }]
  const story = await canaryStory({ spec: { analysis: { interval: "1m", threshold: 1, stepWeights: [34], metrics } } })
  await story.until("Initialized")
  story.says.checks = [{ name: "request-success-rate", verdict: "Bad", value: 50, why: "50 is below 99" }]
  await story.setImage(v2)
  await story.until("Failed")
  await story.world.settle("1m")
  await story.remove()
  const seen = await told(story)
  expect(seen.filter(reason => /^(Progressing|Failed!|Terminating)$/.test(reason))).toEqual([
    "Progressing",
    "Failed!",
    "Terminating",
  ])
})
