import { expect, test } from "vitest"
import { type Fault, isWatch } from "#cluster-sim/faults/faults.ts"
import { controllersWith } from "#controllers/all.ts"
import { createServiceImageController } from "#controllers/serviceimage/controller.ts"
import { heldMark } from "#core/in-place/names.ts"
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

test("no event is read twice: the controllers of one process watch a resource with the same selector", async () => {
  const selectors = new Map<string, Set<string>>()
  const record: Fault = next => ({
    ...next,
    send(request) {
      const { pathname, searchParams } = new URL(request.path, "http://localhost")
      const selector = [searchParams.get("fieldSelector"), searchParams.get("labelSelector")].join(" ")
      // Few workloads are held at once, so their own watch costs less than the events of all (decision 66).
      if (isWatch(request) && !selector.includes(heldMark))
        selectors.set(pathname, (selectors.get(pathname) ?? new Set()).add(selector))
      return next.send(request)
    },
  })
  const [story] = Object.values(stories)
  await play(story!, 1, world => world.run(controllersWith({}), { leaderElect: true, faults: [record] }))
  expect(selectors.has("/api/v1/pods")).toBe(true)
  expect([...selectors].filter(([, { size }]) => size > 1)).toEqual([])
})
