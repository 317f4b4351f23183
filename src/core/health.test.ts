import { expect, test } from "vitest"
import { type Health, healthCheck, healthProblem } from "./health.ts"

const problems: Record<string, string | undefined> = {
  "object.status.phase == 'Running'": undefined,
  "object.status.isReady": undefined, // only the object can tell
  "object.status.phase ==": "Unexpected token: EOF",
  "status.phase == 'Running'": "Unknown variable: status",
  "object.status.phase.isRunning()": "found no matching overload for 'dyn.isRunning()'",
  "'Running'": "it yields string, not true or false",
  "size(object.status.pods)": "it yields int, not true or false",
}
for (const [expression, problem] of Object.entries(problems))
  test(`${expression}: ${problem ?? "fine"}`, () => expect(healthProblem(expression)).toBe(problem))

const unknown: Health = { isUpToDate: false }
const well: Health = { isUpToDate: true }
const cases: Record<string, { health: string; object?: object; is: Health }> = {
  "it is as it should be": {
    health: "object.status.phase == 'Running'",
    object: { status: { phase: "Running" } },
    is: well,
  },
  "it is not": { health: "object.status.phase == 'Running'", object: { status: { phase: "Failed" } }, is: unknown },
  "no status": { health: "object.status.phase == 'Running'", is: unknown },
  "a field is missing": { health: "object.status.phase != 'Failed'", object: { status: {} }, is: unknown },
  "an element is missing": { health: "object.status.pods[0].ok", object: { status: { pods: [] } }, is: unknown },
  "a missing field that was asked for": { health: "!has(object.status.error)", object: { status: {} }, is: well },
  "a missing status that was asked for": { health: "!has(object.status)", is: well },
  "numbers are compared as numbers": {
    health: "object.status.ready == object.spec.size && object.status.ready > 2",
    object: { spec: { size: 3 }, status: { ready: 3 } },
    is: well,
  },
  "the status is about an older generation": {
    health: "object.status.ok",
    object: { status: { ok: true, observedGeneration: 1 } },
    is: unknown,
  },
  "an observedGeneration of nonsense": {
    health: "object.status.ok",
    object: { status: { ok: true, observedGeneration: "2" } },
    is: unknown,
  },
  "the status is about this generation": {
    health: "object.status.ok",
    object: { status: { ok: true, observedGeneration: 2 } },
    is: well,
  },
  "the whole object is read": { health: "object['status'].ok", object: { status: { ok: true } }, is: well },
  "what it yields is no answer": {
    health: "object.status.phase",
    object: { status: { phase: "Running" } },
    is: { isUpToDate: false, problem: "spec.target.health did not yield true or false" },
  },
  "a value is of the wrong type": {
    health: "object.status.ready > 2",
    object: { status: { ready: "3" } },
    is: { isUpToDate: false, problem: "no such overload: dyn<string> > int" },
  },
  "the expression is none": {
    health: "object.",
    object: { status: {} },
    is: { isUpToDate: false, problem: "Expected IDENTIFIER, got EOF" },
  },
}
for (const [name, { health, object, is }] of Object.entries(cases))
  test(name, () => expect(healthCheck(health)({ metadata: { generation: 2 }, ...object })).toEqual(is))

test("long lists in nested loops are refused before they cost anything, short ones and single loops are not", () => {
  const list = Array.from({ length: 100_000 }, (_, i) => i)
  const nested = healthCheck("object.status.list.all(x, object.status.list.all(y, x + y >= 0))")
  expect(nested({ metadata: {}, status: { list } } as never).problem).toContain("too long")
  expect(nested({ metadata: {}, status: { list: list.slice(0, 100) } } as never)).toEqual(well)
  expect(healthCheck("object.status.list.all(x, x >= 0)")({ metadata: {}, status: { list } } as never)).toEqual(well)
})

test("an object nested deeper than the stack is a problem of the object", () => {
  let deep: object = {}
  for (let i = 0; i < 100_000; i++) deep = { deep }
  expect(healthCheck("object.status.ok")({ metadata: {}, status: deep } as never)).toMatchObject({ isUpToDate: false })
})
