import { expect, test } from "vitest"
import { isWatch, nth, silence, stale } from "#cluster-sim/faults/faults.ts"
import type { Clock } from "#runtime/clock.ts"
import type { ProcessOptions } from "#test/support/scenario.ts"
import { watches } from "./fates.ts"
import { judge } from "./invariants/invariants.ts"
import { campaign } from "./node-campaign.ts"
import { outcome, play, preCacheStories } from "./pre-cache-stories.ts"

// Tiers that wait for their images, with faults everywhere: in the controller of ServiceImages, in that of pulls, in the
// agent of one node, and in what its runtime answers. No tier starts before its images were shown (S17).

const calm = await campaign("several misfortunes of tiers that wait for their images", {
  stories: preCacheStories,
  writers: ["rollout", "manager", "agent"],
  play,
  outcome,
  seeds: 5,
  part: 2,
})

for (const [title, { writes, calls, outcome }] of calm)
  test(`${title}: the trace is long enough to mean something, and nothing is left of it`, () => {
    expect(outcome).toMatchObject({ phase: "Complete", jobs: 0, underWay: 0 })
    expect(outcome.pullJobs).toBeUndefined()
    for (const writer of ["rollout", "manager", "agent"]) expect(writes[writer], writer).toBeGreaterThan(2)
    expect(calls).toBeGreaterThan(1)
  })

/** A silence is noticed after two and a half minutes. An event that comes late delays those behind it as well. */
const seesLateByMs = 180_000
const views: Record<string, (clock: Clock) => ProcessOptions> = {
  "what watches say comes a minute late": clock => ({ faults: [stale(isWatch, clock, 60_000)], seesLateByMs }),
  ...Object.fromEntries(
    ["imagepulljobs", "pods", "nodes", "deployments"].map(plural => [
      `the first watch of ${plural} says nothing`,
      () => ({ faults: [silence(nth(watches(plural), 1))], seesLateByMs }),
    ]),
  ),
}

for (const [name, view] of Object.entries(views))
  for (const [index, [title, { story, outcome: expected }]] of [...calm].entries()) {
    // In the short form each view meets one of the stories.
    if (process.env.AIM_RUNS === undefined && index !== Object.keys(views).indexOf(name)) continue
    test(`${title}: ends as it would have, though ${name}`, async () => {
      const run = await play(story, 1, { rollout: view })
      await run.world.settle("10m")
      judge(run.world.record)
      expect(await outcome(run)).toEqual(expected)
    })
  }
