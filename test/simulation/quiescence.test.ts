import { expect, test } from "vitest"
import { type Fault, isWatch } from "#cluster-sim/faults/faults.ts"
import { createServiceImageController } from "#controllers/serviceimage/controller.ts"
import { play, stories } from "./stories.ts"

/** Breaks all open watches on request. */
function cuttable(): { fault: Fault; cut(): void; readonly opened: number } {
  let cutting = new AbortController()
  let opened = 0
  return {
    get opened() {
      return opened
    },
    cut() {
      const before = cutting
      cutting = new AbortController()
      before.abort(new Error("the connection broke"))
    },
    fault: next => ({
      ...next,
      send(request) {
        if (!isWatch(request)) return next.send(request)
        opened++
        return next.send({ ...request, signal: AbortSignal.any([request.signal, cutting.signal]) })
      },
    }),
  }
}

test("S8 a fleet in order is left alone, over a hundred resyncs and ten reconnects", async () => {
  const watches = cuttable()
  const [story] = Object.values(stories)
  const world = await play(story!, 1, world =>
    world.run([createServiceImageController()], { leaderElect: true, faults: [watches.fault] }),
  )
  const [lookedAt, opened] = [world.history.length, watches.opened]
  while (watches.opened - opened < 100) await world.advance("10m")
  for (let turn = 0; turn < 10; turn++) {
    watches.cut()
    await world.advance("2m")
  }
  const written = world.history.slice(lookedAt).filter(({ place }) => !place.includes("leases"))
  expect(written.map(({ place, object }) => `${place} ${object.metadata.name}`)).toEqual([])
})
