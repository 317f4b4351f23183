import { expect, test } from "vitest"
import { nextTurn, type Sides, type Turn } from "./turn.ts"

const both = { old: 3, new: 3 }
const sides = (source: string, target: string, weight: number, more: Partial<Sides> = {}): Sides => ({
  source: { hash: source, ready: both },
  target: { hash: target, ready: both },
  weight,
  isAccepted: true,
  ...more,
})
const route = (weight: number): Turn => ({ do: "route", weight, isMirrored: false })

// Only the Service of a side without requests turns, its endpoints are awaited, and then the weight changes.
test.each<[string, Sides, Turn]>([
  [
    "all requests go to the new one: the other Service turns",
    sides("old", "new", 100),
    { do: "turn", side: "source", hash: "new" },
  ],
  ["it waits for what serves the route", sides("old", "new", 100, { isAccepted: false }), { wait: "RouteNotAccepted" }],
  [
    "it has no endpoints yet",
    sides("new", "new", 100, { source: { hash: "new", ready: { old: 3 } } }),
    { wait: "NotReady" },
  ],
  ["it has: the requests come back", sides("new", "new", 100), route(0)],
  [
    "what serves the route has not taken it over",
    sides("new", "new", 0, { isAccepted: false }),
    { wait: "RouteNotAccepted" },
  ],
  ["done", sides("new", "new", 0), "done"],
  ["no request goes to the side that turns", sides("old", "old", 0), { do: "turn", side: "target", hash: "new" }],
  ["neither side is the goal", sides("old", "older", 20), route(0)],
  ["the target is, and is ready", sides("old", "new", 20), route(100)],
  [
    "the target is, and is not",
    sides("old", "new", 20, { target: { hash: "new", ready: { new: 2 } } }),
    { wait: "NotReady" },
  ],
])("%s", (_, given, expected) => expect(nextTurn(given, "new", 3)).toEqual(expected))
