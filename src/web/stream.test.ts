import { EventEmitter } from "node:events"
import type { ServerResponse } from "node:http"
import { expect, test } from "vitest"
import { virtualClock } from "#runtime/clock.ts"
import type { Panel } from "./panel.ts"
import { Stream } from "./stream.ts"

/** A browser that may stop reading, and a panel that shows a number. */
function world() {
  const clock = virtualClock(0)
  const written: { type: string; feed?: string; head?: unknown }[] = []
  let isReading = true
  const response = Object.assign(new EventEmitter(), {
    write(text: string) {
      written.push(
        ...text
          .trimEnd()
          .split("\n")
          .map(line => JSON.parse(line)),
      )
      return isReading
    },
    end: () => {},
  })
  let value = 0
  let touch = () => {}
  const panel: Panel = {
    feed: "list/x",
    frame: () => ({ type: "change", feed: "list/x", removed: [String(value)] }),
    close: () => {},
  }
  const stream = new Stream(response as unknown as ServerResponse, {
    clock,
    tick: () => ({ time: clock.now(), speed: 1 }),
    panelsOf(_, touched) {
      touch = () => touched(panel.feed)
      return [panel]
    },
  })
  stream.show([{ page: "overview" }])
  return {
    clock,
    frames: () => written.filter(({ type }) => type === "change"),
    change() {
      value += 1
      touch()
    },
    read(is: boolean) {
      isReading = is
      if (is) response.emit("drain")
    },
  }
}

test("the first change goes at once, and then at most five frames a second, each with the newest state", async () => {
  const { clock, frames, change } = world()
  await clock.advance(0)
  expect(frames()).toHaveLength(1)
  for (let i = 0; i < 100; i++) {
    change()
    await clock.advance(10)
  }
  await clock.advance(200)
  expect(frames().length).toBeLessThanOrEqual(7)
  expect(frames().at(-1)).toMatchObject({ removed: ["100"] })
})

test("a reader that stops gets nothing queued, and the newest state when it reads again", async () => {
  const { clock, frames, change, read } = world()
  read(false)
  change()
  await clock.advance(200)
  const before = frames().length
  for (let i = 0; i < 50; i++) {
    change()
    await clock.advance(200)
  }
  expect(frames()).toHaveLength(before)
  read(true)
  await clock.advance(200)
  expect(frames()).toHaveLength(before + 1)
  expect(frames().at(-1)).toMatchObject({ removed: ["51"] })
})
