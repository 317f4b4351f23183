import { expect, test } from "vitest"
import { answer, type Fault } from "#cluster-sim/faults/faults.ts"
import { nodeFaults } from "./call-faults.ts"
import { judge } from "./invariants/invariants.ts"
import { atCall, campaign } from "./node-campaign.ts"
import { struckNode } from "./pull-floor.ts"
import { outcome, type PullStory, play, pullStories } from "./pull-stories.ts"

// Pulls with faults everywhere: in the manager, in the agent of one node, and in what its runtime answers. S16 to S18
// and S25 hold in each run.

const calm = await campaign("several misfortunes of pulls", {
  stories: pullStories,
  writers: ["manager", "agent"],
  play,
  outcome,
  seeds: 10,
})

for (const [title, story] of calm)
  test(`${title}: the trace is long enough to mean something, and everything is there at its end`, () => {
    expect(story).toMatchObject({ outcome: { missing: [], sealed: false, underWay: 0 } })
    expect(story.writes.manager).toBeGreaterThan(8)
    expect(story.writes.agent).toBeGreaterThan(1)
    expect(story.calls).toBeGreaterThan(3)
  })

test("a NodeImage that may not be written for a while ends no job, and the job says so meanwhile", async () => {
  const [story] = Object.values(pullStories)
  const refuses: Fault = next => {
    let isOver = false
    const refused = answer(({ method, path }) => method === "PUT" && /nodeimages/.test(path) && !isOver, 403, {
      reason: "Forbidden",
      message: "the role is being changed",
    })
    let count = 0
    return {
      ...next,
      send(request) {
        if (request.method === "PUT" && /nodeimages/.test(request.path) && ++count > 8) isOver = true
        return refused(next).send(request)
      },
    }
  }
  const run = await play(story!, 1, { manager: () => ({ faults: [refuses] }) })
  judge(run.world.record)
  expect(await outcome(run, story!)).toEqual([...calm.values()][0]!.outcome)
  const said = run.world.history.flatMap(({ object }) =>
    object.kind === "ImagePullJob" ? (object.status?.conditions ?? []) : [],
  )
  expect(said).toContainEqual(
    expect.objectContaining({
      type: "Stalled",
      status: "True",
      reason: "Refused",
      message: expect.stringContaining("the role is being changed"),
    }),
  )
})

test("a runtime that is away uses up no attempt", async () => {
  const once: PullStory = {
    has: { [struckNode]: ["registry.example.com/app:v1"] },
    async tell({ floor, job, until }) {
      const [image] = this.has[struckNode]!
      floor.publish(image!, { takesMs: 1000 })
      await job("app", {
        image,
        selector: { names: [struckNode] },
        pullPolicy: { timeoutSeconds: 60, backoffLimit: 0 },
      })
      await until("app", "Completed")
    },
  }
  const calls = 5
  for (const [name, make] of Object.entries(nodeFaults))
    for (let n = 1; n <= calls; n++) {
      const run = await play(once, 1, atCall(make, n)).catch((error: Error) => {
        throw new Error(`${name}, at call ${n}: ${error.message}`, { cause: error })
      })
      expect(await outcome(run, once)).toMatchObject({ missing: [], jobs: [["app", "Completed", { succeeded: 1 }]] })
    }
})
