import { describe, expect, test } from "vitest"
import { decide } from "./run.ts"
import type { Sight } from "./sight.ts"
import { running, second, start, trial } from "./test-sight.ts"

const change = (sight: Sight, fields: Partial<Sight>): Sight => ({ ...sight, ...fields })

describe("a wait is worth a report when it takes longer than a moment", () => {
  const waiting = (forMs: number, fields: Partial<Sight> = {}) =>
    decide(
      change(running(0, { forMs }), {
        services: { ...running(0).services, target: { hash: "new", ready: {} } },
        ...fields,
      }),
    )

  test("at first it is as it was reported, and looked at again", () => {
    expect(waiting(second)).toMatchObject({ isBrief: true, reason: "Measuring", lookAgainAt: start + 5 * second })
  })

  test("then it is reported", () => {
    expect(waiting(5 * second)).toMatchObject({ reason: "WaitingForReady" })
    expect(waiting(5 * second).isBrief).toBeUndefined()
  })

  test("what is wrong with a pod is reported at once", () => {
    const trouble = { reason: "Unschedulable", message: "no node has room", isFatal: false } as const
    expect(waiting(second, { trouble })).toMatchObject({ reason: "Unschedulable", message: "no node has room" })
    expect(waiting(second, { trouble }).isBrief).toBeUndefined()
  })

  test("the weight of a step is reported at once, and that of all requests with the phase", () => {
    expect(decide(running(0)).isBrief).toBeUndefined()
    const full = {
      trial: { ...trial, size: 4 },
      services: { ...running(0).services, target: { hash: "new", ready: { new: 4 } } },
    }
    expect(decide(change(running(40, { status: { phase: "Promoting" } }), full))).toMatchObject({
      act: { do: "route", weight: 100 },
      isBrief: true,
    })
  })
})
