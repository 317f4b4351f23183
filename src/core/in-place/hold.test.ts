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
      gives: { updateStrategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 2, maxSurge: null } } },
    },
  }
  for (const [kind, { spec, free, gives }] of Object.entries(cases))
    test(kind, () => {
      const { isInForce, released } = holdKinds[kind as keyof typeof cases]
      expect([isInForce(spec), isInForce(free)]).toEqual([true, false])
      expect(released({ by: "in-place", generation: 3, original }, spec)).toEqual(gives)
    })
})

test("OnDelete that its owner has written while a StatefulSet was held comes back", () =>
  expect(
    holdKinds.StatefulSet.released(
      { by: "in-place", generation: 3, original: { type: "OnDelete", rollingUpdate: null } },
      {},
    ),
  ).toEqual({ updateStrategy: { type: "OnDelete", rollingUpdate: null } }))

describe("the server accepts what is given back, whatever the annotation says", () => {
  const usual = { type: "RollingUpdate", rollingUpdate: null }
  const blocks: Record<string, object | null> = {
    '{"maxUnavailable":"25%"}': { maxUnavailable: "25%", maxSurge: null },
    '{"maxUnavailable":"100%","maxSurge":"0%"}': { maxUnavailable: "100%", maxSurge: "0%" },
    '{"maxUnavailable":0,"maxSurge":2}': { maxUnavailable: 0, maxSurge: 2 },
    '{"maxUnavailable":"1"}': null,
    '{"maxUnavailable":"150%"}': null,
    '{"maxUnavailable":-1}': null,
    '{"maxUnavailable":1.5}': null,
    '{"maxUnavailable":0}': null,
    '{"maxUnavailable":"00%","maxSurge":0}': null,
    // The server fills in a maxUnavailable of one.
    '{"maxSurge":2}': null,
    '{"maxUnavailable":1,"maxSurge":1}': null,
    '{"maxUnavailable":{}}': null,
  }
  for (const [block, rollingUpdate] of Object.entries(blocks)) {
    const spec = { updateStrategy: { type: "OnDelete", rollingUpdate: JSON.parse(block) } }
    test(`a DaemonSet with ${block}`, () => {
      const hold = held({ type: "Nonsense", rollingUpdate: JSON.parse(block) })
      expect(holdKinds.DaemonSet.released(hold, spec)).toEqual({ updateStrategy: { ...usual, rollingUpdate } })
    })
    test(`a DaemonSet whose original is lost, with ${block} in its spec`, () =>
      expect(holdKinds.DaemonSet.released(undefined, spec)).toEqual({ updateStrategy: { ...usual, rollingUpdate } }))
  }
  for (const [written, partition] of [
    [2, 2],
    [0, 0],
    [-1, null],
    ["1", null],
    [undefined, null],
  ] as const)
    test(`a StatefulSet with partition ${JSON.stringify(written)}`, () =>
      expect(
        holdKinds.StatefulSet.released(held({ type: "RollingUpdate", rollingUpdate: { partition: written } }), {}),
      ).toEqual({ updateStrategy: { rollingUpdate: { partition } } }))
})
