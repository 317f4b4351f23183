import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { type Arranged, type Move, nextMove, type Wanted } from "./arrange.ts"

const all = { source: 100, target: 100 }
const arranged = (of: { source?: string; target?: string; weight?: number; is?: "mirrored" | "unseen" }): Arranged => {
  const side = (text: string) => {
    const [ready = 0, size = 0] = text.split("/").map(Number)
    return { ready, size }
  }
  return {
    source: side(of.source ?? "4/4"),
    target: side(of.target ?? "0/0"),
    route: { weight: of.weight ?? 0, isMirrored: of.is === "mirrored", isAccepted: of.is !== "unseen" },
  }
}
const want = (weight: number, targetSize: number, isMirrored = false): Wanted => ({ weight, targetSize, isMirrored })

describe("a share rises", () => {
  test.each<[string, Arranged, Move]>([
    ["the target is made first", arranged({}), { do: "scale", targetSize: 2 }],
    ["not before its pods are ready", arranged({ target: "1/2" }), { wait: "TargetNotReady" }],
    ["then the route", arranged({ target: "2/2" }), { do: "route", weight: 50, isMirrored: false }],
    [
      "and it is done when the route is seen",
      arranged({ target: "2/2", weight: 50, is: "unseen" }),
      { wait: "RouteNotAccepted" },
    ],
    ["done", arranged({ target: "2/2", weight: 50 }), "done"],
    ["a pod that is lost later is awaited", arranged({ target: "1/2", weight: 50 }), { wait: "TargetNotReady" }],
  ])("%s", (_, from, move) => expect(nextMove(from, want(50, 2), all)).toEqual(move))

  test("part of the pods is enough where the user says so", () => {
    expect(nextMove(arranged({ target: "1/2" }), want(50, 2), { source: 100, target: 50 })).toMatchObject({
      do: "route",
    })
  })

  test("a target that is tested without requests has its pods, too", () => {
    expect(nextMove(arranged({ target: "3/4" }), want(0, 4), all)).toEqual({ wait: "TargetNotReady" })
    expect(nextMove(arranged({ target: "4/4" }), want(0, 4), all)).toBe("done")
  })

  test("copies of requests go to pods that are ready as well", () => {
    expect(nextMove(arranged({ target: "0/4" }), want(0, 4, true), all)).toEqual({ wait: "TargetNotReady" })
    expect(nextMove(arranged({ target: "4/4" }), want(0, 4, true), all)).toMatchObject({
      do: "route",
      isMirrored: true,
    })
  })
})

describe("a share falls", () => {
  test.each<[string, Arranged, Move]>([
    ["the route first", arranged({ target: "2/2", weight: 50 }), { do: "route", weight: 0, isMirrored: false }],
    ["the target stays until that is seen", arranged({ target: "2/2", is: "unseen" }), { wait: "RouteNotAccepted" }],
    ["then it is taken away", arranged({ target: "2/2" }), { do: "scale", targetSize: 0 }],
    ["done", arranged({}), "done"],
    [
      "not to a source that is not ready",
      arranged({ source: "1/4", target: "2/2", weight: 50 }),
      { wait: "SourceNotReady" },
    ],
    [
      "but to any pod where the target has none",
      arranged({ source: "1/4", target: "0/2", weight: 50 }),
      { do: "route", weight: 0, isMirrored: false },
    ],
    [
      "nothing moves while neither has one",
      arranged({ source: "0/4", target: "0/2", weight: 50 }),
      { wait: "SourceNotReady" },
    ],
    [
      "copies end whatever the source does",
      arranged({ source: "0/4", target: "2/2", is: "mirrored" }),
      { do: "route", weight: 0, isMirrored: false },
    ],
  ])("%s", (_, from, move) => expect(nextMove(from, want(0, 0), all)).toEqual(move))
})

const state = fc.record({
  source: fc.nat(5),
  target: fc.nat(5),
  isAccepted: fc.boolean(),
})
const wish = fc.constantFrom(want(0, 0), want(0, 3, true), want(10, 1), want(50, 2), want(100, 4))

test("from any wish to any other, with pods that come and go, no request goes where no pod is ready", () => {
  fc.assert(
    fc.property(
      fc.array(wish, { minLength: 2, maxLength: 4 }),
      fc.array(state, { maxLength: 60 }),
      (wishes, troubles) => {
        let now = arranged({})
        for (const wanted of wishes) {
          for (const trouble of troubles) {
            const move = nextMove(now, wanted, all)
            if (move === "done") break
            now = troubled(moved(now, move), trouble)
          }
          // The trouble ends: what is wanted is reached in a few moves.
          for (let moves = 0; nextMove(now, wanted, all) !== "done"; moves++) {
            expect(moves, JSON.stringify({ now, wanted })).toBeLessThan(8)
            now = healed(moved(healed(now), nextMove(healed(now), wanted, all)))
          }
        }
      },
    ),
  )
})

/** Makes the move, and refuses one that would lose requests. */
function moved(now: Arranged, move: Move): Arranged {
  if (move === "done" || "wait" in move) return now
  if (move.do === "scale") {
    if (move.targetSize < now.target.size) expect(now.route).toMatchObject({ isAccepted: true })
    if (move.targetSize === 0) expect(now.route).toMatchObject({ weight: 0, isMirrored: false })
    return { ...now, target: { size: move.targetSize, ready: Math.min(now.target.ready, move.targetSize) } }
  }
  if (move.weight > now.route.weight || (move.isMirrored && !now.route.isMirrored))
    expect(now.target.ready).toBeGreaterThan(0)
  if (move.weight < now.route.weight) expect(now.source.ready).toBeGreaterThan(0)
  return { ...now, route: { weight: move.weight, isMirrored: move.isMirrored, isAccepted: false } }
}

const troubled = (
  now: Arranged,
  { source, target, isAccepted }: { source: number; target: number; isAccepted: boolean },
) => ({
  source: { ...now.source, ready: Math.min(source, now.source.size) },
  target: { ...now.target, ready: Math.min(target, now.target.size) },
  route: { ...now.route, isAccepted: now.route.isAccepted || isAccepted },
})

const healed = (now: Arranged): Arranged => ({
  source: { ...now.source, ready: now.source.size },
  target: { ...now.target, ready: now.target.size },
  route: { ...now.route, isAccepted: true },
})
