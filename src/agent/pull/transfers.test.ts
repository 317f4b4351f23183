import { expect, test } from "vitest"
import { percentOf, Transfers } from "./transfers.ts"

const layer = (name: string, doneBytes: number, totalBytes = 100) => ({ name, doneBytes, totalBytes })
const pulls = (...ids: string[]) => new Set(ids)

test("the layers of a pull that is alone are its own, and one that is no longer listed is done", () => {
  const transfers = new Transfers()
  transfers.note([layer("a", 10), layer("b", 20)], pulls("web"))
  expect(transfers.of("web")).toEqual({ doneBytes: 30, totalBytes: 200, pulls: 1 })
  transfers.note([layer("b", 50), layer("c", 0)], pulls("web"))
  expect(transfers.of("web")).toEqual({ doneBytes: 150, totalBytes: 300, pulls: 1 })
  transfers.note([], pulls("web"))
  expect(transfers.of("web")).toEqual({ doneBytes: 300, totalBytes: 300, pulls: 1 })
})

test("a layer that was listed before the second pull began is not of the second", () => {
  const transfers = new Transfers()
  transfers.note([layer("a", 10)], pulls("web"))
  transfers.note([layer("a", 60)], pulls("web", "db"))
  expect(transfers.of("web")).toEqual({ doneBytes: 60, totalBytes: 100, pulls: 1 })
  expect(transfers.of("db")).toBeUndefined()
})

test("a layer that appears beside two pulls is counted for both together, until one of them is over", () => {
  const transfers = new Transfers()
  transfers.note([layer("a", 10)], pulls("web"))
  transfers.note([layer("a", 60), layer("b", 5), layer("c", 5)], pulls("web", "db"))
  expect(transfers.of("web")).toEqual({ doneBytes: 70, totalBytes: 300, pulls: 2 })
  expect(transfers.of("db")).toEqual({ doneBytes: 10, totalBytes: 200, pulls: 2 })
  // b was done before the first pull ended: it may have been for either. c is still fetched, so it is for the second.
  transfers.note([layer("c", 40)], pulls("db"))
  expect(transfers.of("db")).toEqual({ doneBytes: 40, totalBytes: 100, pulls: 1 })
  expect(transfers.of("web")).toBeUndefined()
})

test("a layer that goes on after the pull for which it began is for the pull that is left", () => {
  const transfers = new Transfers()
  transfers.note([layer("a", 10)], pulls("web"))
  transfers.note([layer("a", 50)], pulls("db"))
  expect(transfers.of("db")).toEqual({ doneBytes: 50, totalBytes: 100, pulls: 1 })
})

test("no total, and no percentage, where the size of a layer is not known", () => {
  const transfers = new Transfers()
  transfers.note([layer("a", 10), layer("b", 20, 0)], pulls("web"))
  expect(transfers.of("web")).toEqual({ doneBytes: 30, pulls: 1 })
  expect(percentOf(transfers.of("web")!)).toBeUndefined()
})

test("a percentage is there only of bytes that are those of the pull alone", () => {
  expect(percentOf({ doneBytes: 55, totalBytes: 110, pulls: 1 })).toBe(50)
  expect(percentOf({ doneBytes: 55, totalBytes: 110, pulls: 2 })).toBeUndefined()
})
