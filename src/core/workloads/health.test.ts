import { expect, test } from "vitest"
import { type Health, healthCheck, healthProblem } from "./health.ts"

const problems: Record<string, string | undefined> = {
  "object.status.phase == 'Running'": undefined,
  "object.status.isReady": undefined, // only the object can show it
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

const listOf = (length: number) => Array.from({ length }, (_, i) => i)
const literal = (depth: number): string =>
  depth === 0 ? "true" : `[1,2,3,4,5,6,7,8,9,10].all(x${depth}, ${literal(depth - 1)})`

test("loops over what stands in the expression are refused, whatever the object", () => {
  expect(healthProblem(literal(3))).toBeUndefined()
  expect(healthProblem(literal(5))).toBe("it takes too many steps, whatever the object")
  expect(healthProblem(literal(8))).toBe("it takes too many steps, whatever the object")
  expect(healthProblem(`has(object.status) && ${literal(8)}`)).toBeUndefined() // only the object can show it
})

test("a list that is too long for the expression is a problem of the object; a shorter one is not", () => {
  const nested = healthCheck("object.status.list.all(x, object.status.list.all(y, x + y >= 0))")
  const asked = (list: number[]) => nested({ metadata: {}, status: { list } } as never)
  expect(asked(listOf(70))).toEqual(well)
  expect(asked(listOf(1000))).toEqual({
    isUpToDate: false,
    isTooCostly: true,
    problem: "spec.target.health cannot be asked: it takes too many steps",
  })
  const single = healthCheck("object.status.list.all(x, x >= 0)")
  expect(single({ metadata: {}, status: { list: listOf(5000) } } as never)).toEqual(well)
})

test("what an expression does not read costs nothing", () => {
  const status = { phase: "Running", list: listOf(100_000) }
  expect(healthCheck("object.status.phase == 'Running'")({ metadata: {}, status } as never)).toEqual(well)
})

test("an object nested deeper than the stack is a problem of the object", () => {
  let deep: object = {}
  for (let i = 0; i < 100_000; i++) deep = { deep }
  expect(healthCheck("object.status.ok")({ metadata: {}, status: deep } as never)).toMatchObject({ isUpToDate: false })
})
