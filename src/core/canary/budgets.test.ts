import { describe, expect, test } from "vitest"
import type { Decision } from "./decision.ts"
import { decide } from "./run.ts"
import type { BudgetSeen, SetPod, Sight } from "./sight.ts"
import { aRun, canaryOf, minute, newSet, oldSet, running, second, startedAt, trial, workload } from "./test-sight.ts"

const told = ({ act, reason }: Decision) => [act?.do ?? "", reason]

/** Four pods of each revision, all ready, and `others` of another workload. */
const budgetOf = (
  spec: Pick<BudgetSeen, "minAvailable" | "maxUnavailable">,
  others = { there: 0, ready: 0 },
): BudgetSeen => ({
  name: "shop",
  ...spec,
  expected: 8 + others.there,
  all: { there: 8 + others.there, ready: 8 + others.ready },
  own: { old: { there: 4, ready: 4 }, new: { there: 4, ready: 4 } },
})

/** All requests go to the new revision, and its ReplicaSet is about to be handed over. */
function handingOver(...budgets: BudgetSeen[]): Sight {
  const sight = running(100, {
    status: { phase: "Finalising" },
    run: { target: { ...aRun.target }, sizes: { full: 4, source: 4, target: 4 }, weight: 0 },
  })
  return {
    ...sight,
    trial: { ...trial, size: 4, isPaused: true, isPauseSeen: true },
    services: { ...sight.services, source: { hash: "new", ready: { new: 4 } } },
    route: { split: { weight: 0, isMirrored: false }, isAccepted: true, why: "" },
    budgets: () => budgets,
  }
}

/** The run has failed, and its pods are about to go. */
const goingBack = (...budgets: BudgetSeen[]): Sight => ({
  ...running(0, { status: { phase: "Failed" }, run: { reason: "AnalysisFailed", message: "bad" } }),
  sets: [oldSet, { ...newSet, size: 4, ready: 4 }],
  trial: { ...trial, size: 4 },
  budgets: () => budgets,
})

const down = { there: 2, ready: 0 }
const moves = ["moveSet", "HandingOver"]
const waits = ["", "BudgetSpent"]

describe("a Deployment that is handed over: the pods of before go at once", () => {
  const cases: Record<string, [Parameters<typeof budgetOf>, string[]]> = {
    "those that stay are enough": [[{ minAvailable: 4 }], moves],
    "a share counts of the pods that are left": [[{ minAvailable: "100%" }], moves],
    "no pod may be down: none is": [[{ maxUnavailable: 0 }], moves],
    "pods of another workload are down": [[{ minAvailable: 5 }, down], waits],
    "as many as may be down are": [[{ maxUnavailable: 2 }, down], moves],
    "one more than may be down is": [[{ maxUnavailable: 1 }, down], waits],
    "a share rounds up": [[{ minAvailable: "70%" }, down], waits],
    "more than there will ever be is not waited for": [[{ minAvailable: 7 }, down], moves],
    "nothing is asked": [[{}, down], moves],
  }
  for (const [name, [given, expected]] of Object.entries(cases))
    test(name, () => expect(told(decide(handingOver(budgetOf(...given))))).toEqual(expected))

  test("without a budget", () => expect(told(decide(handingOver()))).toEqual(moves))

  test("the wait names the budget, looks again, and keeps the run where it is", () => {
    const decision = decide(handingOver(budgetOf({ minAvailable: 9 }), budgetOf({ minAvailable: 5 }, down)))
    const message = "PodDisruptionBudget shop wants 5 ready pods, and 4 would be left"
    expect(decision).toMatchObject({ phase: "Finalising", message, run: { reason: "BudgetSpent", message } })
    expect(decision.lookAgainAt).toBe(handingOver().now + 5 * second)
    expect(decision.isStalled).toBeFalsy()
  })
})

describe("a run that goes back", () => {
  const cases: Record<string, [Parameters<typeof budgetOf>, string[]]> = {
    "the running revision is enough": [[{ minAvailable: 4 }], ["deleteTrial", "RollingBack"]],
    "pods of another workload are down": [[{ minAvailable: 5 }, down], waits],
  }
  for (const [name, [given, expected]] of Object.entries(cases))
    test(name, () => expect(told(decide(goingBack(budgetOf(...given))))).toEqual(expected))

  test("the reason of its end stays in the run", () => {
    const { run, phase, message } = decide(goingBack(budgetOf({ minAvailable: 5 }, down)))
    expect([phase, run?.reason]).toEqual(["Failed", "AnalysisFailed"])
    expect(message).toBe("bad; PodDisruptionBudget shop wants 5 ready pods, and 4 would be left")
  })

  test("pods that are not ready go at any time", () => {
    const budget = budgetOf({ minAvailable: 5 }, down)
    const idle = { ...budget, all: { there: 10, ready: 4 }, own: { ...budget.own, new: { there: 4, ready: 0 } } }
    expect(told(decide(goingBack(idle)))).toEqual(["deleteTrial", "RollingBack"])
  })

  test("a Canary that is being deleted waits for progressDeadlineSeconds, and not longer", () => {
    const at = (forMs: number) => {
      const sight = goingBack(budgetOf({ minAvailable: 5 }, down))
      const { canary } = sight
      const metadata = { ...canary.metadata, deletionTimestamp: startedAt }
      const status = { ...canary.status!, phase: "Terminating" as const }
      return decide({ ...sight, canary: { ...canary, metadata, status }, now: sight.now + forMs })
    }
    expect(told(at(0))).toEqual(waits)
    expect(told(at(10 * minute))).toEqual(["deleteTrial", "Terminating"])
  })
})

describe("a StatefulSet: its partition falls as far as there is room", () => {
  const podAt = (ordinal: number): SetPod => ({
    name: `web-${ordinal}`,
    hash: "old",
    ordinal,
    isReady: true,
    isGoing: false,
  })
  /** Forty pods, of which four at once become pods of the new revision. */
  function falling(spec: Pick<BudgetSeen, "minAvailable" | "maxUnavailable">, { forMs = 0, reason = "Started" } = {}) {
    const full = 40
    const targetRef = { apiVersion: "apps/v1", kind: "StatefulSet" as const, name: "web" }
    const sight = running(0, { spec: { targetRef }, forMs })
    const run = {
      ...aRun,
      target: { ...aRun.target, hash: "" },
      reason: reason as typeof aRun.reason,
      sizes: { full, source: full, target: 0 },
    }
    const all = { there: full, ready: full }
    const { trial: _, ...rest } = sight
    return decide({
      ...rest,
      canary: canaryOf({ targetRef }, { phase: "Progressing", run }),
      workload: { ...workload, size: full },
      sets: [{ ...oldSet, size: full, ready: full }],
      set: {
        pods: Array.from({ length: full }, (_each, ordinal) => podAt(ordinal)),
        maxUnavailable: 1,
        partition: 2147483647,
        start: 0,
        isSettled: true,
      },
      services: { ...sight.services, source: { hash: "old", ready: { old: full } } },
      budgets: () => [{ name: "shop", ...spec, expected: full, all, own: { old: all } }],
    })
  }

  test.each([
    [{}, 36],
    [{ maxUnavailable: 4 }, 36],
    [{ maxUnavailable: 3 }, 37],
    [{ minAvailable: 39 }, 39],
    [{ maxUnavailable: "5%" }, 38],
  ])("%j: to %i", (spec, at) => expect(falling(spec).act).toEqual({ do: "partition", at }))

  test("no room is waited for until the deadline", () => {
    expect(told(falling({ maxUnavailable: 0 }))).toEqual(waits)
    expect(told(falling({ maxUnavailable: 0 }, { forMs: 9 * minute, reason: "BudgetSpent" }))).toEqual(waits)
    const over = falling({ maxUnavailable: 0 }, { forMs: 10 * minute, reason: "BudgetSpent" })
    expect([over.phase, over.reason]).toEqual(["Failed", "DeadlineExceeded"])
    expect(over.message).toBe("PodDisruptionBudget shop wants 40 ready pods, and 39 would be left")
  })
})
