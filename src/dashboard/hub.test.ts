import { expect, test } from "vitest"
import type { FeedHead, Frame, Page } from "#web/wire.ts"
import { Hub, type Notice } from "./hub.ts"

const head: FeedHead = { isReady: true, scope: "All", namespaces: [], scopeMessage: "" }
const overview: Page = { page: "overview" }
const dicom: Page = { page: "details", kind: "serviceimages", namespace: "", name: "dicom" }
const hello: Frame = { type: "hello", stream: "s", time: 0, speed: 1 }
const whole = (feed: string): Frame => ({ type: "whole", feed, head })

/** A hub with what it asked the server for, and what each tab was sent: the feeds of its frames. */
function opened() {
  const asked: string[] = []
  const hub = new Hub(pages =>
    asked.push(pages.map(page => (page.page === "overview" ? "overview" : page.name)).join("+")),
  )
  const tab = () => {
    const sent: string[] = []
    const word = (notice: Notice) =>
      notice.type !== "frame" ? notice.type : "feed" in notice.frame ? notice.frame.feed : notice.frame.type
    return { sent, id: hub.join(notice => sent.push(word(notice))) }
  }
  return { hub, asked, tab }
}

test("the server is asked once for what several tabs show", () => {
  const { hub, asked, tab } = opened()
  const [one, two] = [tab(), tab()]
  hub.show(one.id, [overview])
  hub.show(two.id, [overview])
  hub.show(two.id, [overview, dicom])
  hub.leave(two.id)
  expect(asked).toEqual(["overview", "overview+dicom", "overview"])
})
test("a tab that joins sees at once what is known", () => {
  const { hub, tab } = opened()
  const one = tab()
  hub.show(one.id, [overview])
  hub.take(hello)
  hub.take(whole("list/canaries"))
  const two = tab()
  hub.show(two.id, [overview])
  expect(two.sent).toEqual(["tick", "list/canaries"])
})
test("a tab gets only what it shows", () => {
  const { hub, tab } = opened()
  const [one, two] = [tab(), tab()]
  hub.show(one.id, [overview])
  hub.show(two.id, [dicom])
  hub.take(whole("list/canaries"))
  hub.take(whole("details/serviceimages//dicom"))
  expect([one.sent, two.sent]).toEqual([["list/canaries"], ["details/serviceimages//dicom"]])
})
test("after a new connection everything is asked for again, and nothing old is shown", () => {
  const { hub, asked, tab } = opened()
  const one = tab()
  hub.show(one.id, [overview])
  hub.take(hello)
  hub.take(whole("list/canaries"))
  hub.take(hello)
  const two = tab()
  hub.show(two.id, [overview])
  expect(asked).toEqual(["overview", "overview", "overview"])
  expect(two.sent).toEqual(["tick"])
})
