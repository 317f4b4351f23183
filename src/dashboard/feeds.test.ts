import fc from "fast-check"
import { expect, test } from "vitest"
import type { Cells, FeedHead, Frame, Row } from "#web/wire.ts"
import { applyFrame, detailsFeed, type Feeds, listFeed, wholeOf } from "./feeds.ts"

const head: FeedHead = { isReady: true, scope: "All", namespaces: [], scopeMessage: "" }
const row = (name: string, state = "Ready"): Row => ({
  ...{ kind: "canaries", namespace: "", name, id: name, attention: "None", reason: "", message: "" },
  ...{ view: "plain", state: state as "Ready", cells: [] },
})
const list = listFeed("canaries")
const cells = (): Cells => ({
  ...{ kind: "Dicom", states: ["Gone", "UpToDate", "Waiting"], tiers: ["", "early"], namespaces: ["shop"] },
  ...{
    names: ["a", "b", "c", "d"],
    namespace: [0, 0, 0, 0],
    tier: [0, 0, 1, 1],
    state: [2, 2, 2, 2],
    counts: [0, 0, 4],
  },
})
const details = detailsFeed({ kind: "serviceimages", namespace: "", name: "dicom" })
const after = (...frames: Frame[]): Feeds => {
  const feeds: Feeds = new Map()
  for (const frame of frames) applyFrame(feeds, frame)
  return feeds
}
const whole: Frame = { type: "whole", feed: list, head, rows: [row("a"), row("b")] }

test("rows are replaced, added and removed", () => {
  const feeds = after(whole, { type: "change", feed: list, rows: [row("b", "Stalled"), row("c")], removed: ["a"] })
  expect([...feeds.get(list)!.rows.values()].map(({ name, state }) => `${name} ${state}`)).toEqual([
    "b Stalled",
    "c Ready",
  ])
})
test("a difference of an unknown feed is left alone", () =>
  expect(after({ type: "change", feed: list, rows: [row("a")] }).size).toBe(0))
test("a whole replaces what was there", () =>
  expect([...after(whole, { type: "whole", feed: list, head, rows: [] }).get(list)!.rows]).toEqual([]))
test("a feed that is gone is forgotten", () => expect(after(whole, { type: "gone", feed: list }).size).toBe(0))

test("places are given by their distances, and others stay", () => {
  const feeds = after(
    { type: "whole", feed: details, head, cells: cells() },
    {
      type: "change",
      feed: details,
      cells: {
        moved: [
          { state: 1, places: [0, 3] },
          { state: 0, places: [1] },
        ],
        counts: [1, 2, 1],
      },
    },
  )
  const { state, counts } = feeds.get(details)!.cells!
  expect({ state, counts }).toEqual({ state: [1, 0, 2, 1], counts: [1, 2, 1] })
  expect(feeds.get(details)!.order).toBe(1)
})
test("an added object and another tier change the order", () => {
  const added = { names: ["e"], namespace: [1], tier: [1], state: [1] }
  const feeds = after(
    { type: "whole", feed: details, head, cells: cells() },
    {
      type: "change",
      feed: details,
      cells: { namespaces: ["shop", "lab"], added, retiered: [[0, 1]], counts: [0, 1, 4] },
    },
  )
  const feed = feeds.get(details)!
  expect(feed.cells).toMatchObject({
    names: ["a", "b", "c", "d", "e"],
    tier: [1, 0, 1, 1, 1],
    namespaces: ["shop", "lab"],
  })
  expect(feed.order).toBe(2)
})
test("a tab that joins late sees what the others see", () =>
  fc.assert(
    fc.property(fc.array(fc.record({ name: fc.constantFrom("a", "b", "c", "d"), isGone: fc.boolean() })), changes => {
      const frames: Frame[] = changes.map(({ name, isGone }) =>
        isGone
          ? { type: "change", feed: list, removed: [name] }
          : { type: "change", feed: list, rows: [row(name, "Stalled")] },
      )
      const early = after(whole, ...frames).get(list)!
      const late = after(wholeOf(list, early)).get(list)!
      expect(late.rows).toEqual(early.rows)
    }),
  ))
