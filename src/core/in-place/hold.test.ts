import { describe, expect, test } from "vitest"
import { holdKinds } from "./hold.ts"
import { parseHold, setHoldOf } from "./marks.ts"
import { everyOrdinal } from "./names.ts"

const held = (strategy: object) => parseHold(setHoldOf(JSON.stringify(strategy), "3").join(""))

describe("the hold of a set has what to give back", () => {
  for (const rollingUpdate of [null, { partition: 0 }, { maxUnavailable: "25%" }, { maxUnavailable: 0, maxSurge: 1 }])
    test(JSON.stringify(rollingUpdate), () =>
      expect(held({ type: "RollingUpdate", rollingUpdate })).toEqual({
        by: "in-place",
        generation: 3,
        original: { type: "RollingUpdate", rollingUpdate },
      }),
    )

  test("an original that cannot be read is absent, and the hold is a hold", () =>
    expect(held({ type: 1 })).toEqual({ by: "in-place", generation: 3 }))
})

describe("what gives a workload back", () => {
  const original = { type: "RollingUpdate", rollingUpdate: { partition: 0, maxUnavailable: 2 } }
  const cases = {
    Deployment: { spec: { paused: true }, free: { paused: false }, gives: { paused: null } },
    StatefulSet: {
      spec: {
        updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: everyOrdinal, maxUnavailable: 2 } },
      },
      free: { updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 3 } } },
      gives: { updateStrategy: { rollingUpdate: { partition: 0 } } },
    },
    DaemonSet: {
      spec: { updateStrategy: { type: "OnDelete" } },
      free: { updateStrategy: { type: "RollingUpdate" } },
      gives: { updateStrategy: original },
    },
  }
  for (const [kind, { spec, free, gives }] of Object.entries(cases))
    test(kind, () => {
      const { isInForce, released } = holdKinds[kind as keyof typeof cases]
      expect([isInForce(spec), isInForce(free)]).toEqual([true, false])
      expect(released({ by: "in-place", generation: 3, original })).toEqual(gives)
    })
})

test("OnDelete that its owner has written while a StatefulSet was held comes back", () =>
  expect(
    holdKinds.StatefulSet.released({
      by: "in-place",
      generation: 3,
      original: { type: "OnDelete", rollingUpdate: null },
    }),
  ).toEqual({ updateStrategy: { type: "OnDelete", rollingUpdate: null } }))
