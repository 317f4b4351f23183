import { expect, test } from "vitest"
import type { ServiceImage } from "#api/v1alpha1/serviceimage/index.ts"
import { endpointsDueAt, knownEndpoints } from "./endpoints.ts"
import { second, start } from "./test-snapshot.ts"

const at = (seconds: number) => new Date(start + seconds * second).toISOString().replace(".000", "")
const found = (seconds: number, pods = 1) => ({ checkedAt: at(seconds), pods, message: "a Service leads" })
const [minute, hour] = [60, 3600]

test.each<[string, Parameters<typeof endpointsDueAt>[1], now: number, due: number | undefined]>([
  ["a moment after it is complete", undefined, 0, 5],
  ["still, where a process starts soon after", undefined, 40, 5],
  ["not where it has been complete for long", undefined, minute, undefined],
  ["not again where all is well", found(5, 0), 5, undefined],
  ["again after a minute where something was found", found(5), 5, 5 + minute],
  ["then after twice the time", found(10 * minute), 10 * minute, 20 * minute],
  ["at most an hour later", found(3 * hour), 3 * hour, 4 * hour],
  ["not for ever", found(5 * hour), 5 * hour, undefined],
])("endpoints are looked at %s", (_, known, now, due) => {
  const dueAt = endpointsDueAt(at(0), known, start + now * second)
  expect(dueAt).toBe(due === undefined ? undefined : start + due * second)
})

test("what was found counts for the completion that it is about, and for no other operation", () => {
  const status = (more: object) =>
    ({
      status: { completedAt: at(100), operation: { id: "g1", phase: "Complete" }, ...more },
    }) as unknown as ServiceImage
  const [g1, g2] = [{ id: "g1" }, { id: "g2" }]
  const kept = found(200)
  expect(knownEndpoints(status({ oldEndpoints: kept }), g1, undefined)).toEqual(kept)
  expect(knownEndpoints(status({ oldEndpoints: found(50) }), g1, undefined)).toBeUndefined()
  expect(knownEndpoints(status({ oldEndpoints: kept }), g2, undefined)).toBeUndefined()
  const answered = { ...found(300, 0), completedAt: at(100) }
  expect(knownEndpoints(status({ oldEndpoints: kept }), g1, answered)).toEqual(found(300, 0))
  expect(knownEndpoints(status({}), g1, { ...answered, completedAt: at(0) })).toBeUndefined()
  const reopened = status({ operation: { id: "g1", phase: "InProgress" }, oldEndpoints: kept })
  expect(knownEndpoints(reopened, g1, answered)).toBeUndefined()
})
