import { expect, test } from "vitest"
import { KnownRequests, type Read } from "./read.ts"

const request = (over: Partial<Read> = {}): Read => ({
  name: "web-0-r1",
  pod: "web-0",
  podUid: undefined,
  isOurs: true,
  createdAt: 0,
  result: "Open",
  reason: "",
  message: "",
  ...over,
})

test("a request that was just made is known before the watch shows it", () => {
  const known = new KnownRequests()
  known.made(request())
  expect(known.look([])).toEqual([request()])
  expect(known.look([request({ reason: "Recreating" })])).toEqual([request({ reason: "Recreating" })])
})

test("the answer to a write does not hide what the watch has shown meanwhile", () => {
  const known = new KnownRequests()
  known.look([request({ result: "Succeeded" })])
  known.made(request())
  expect(known.look([request({ result: "Succeeded" })])).toEqual([request({ result: "Succeeded" })])
})

test("a request that is deleted before it is complete has failed, and a complete one keeps its result", () => {
  const known = new KnownRequests()
  known.look([request(), request({ name: "web-1-r1", result: "Succeeded" })])
  expect(known.look([]).map(({ result }) => result)).toEqual(["Failed", "Succeeded"])
})

test("a request of another restart is forgotten when it is deleted", () => {
  const known = new KnownRequests()
  known.look([request({ isOurs: false })])
  expect(known.look([])).toEqual([])
})
