import { expect, test } from "vitest"
import { type FailureKind, KubeError } from "./errors.ts"
import { outcomeOf } from "./outcome.ts"

const cases: Partial<Record<FailureKind, string>> = {
  Conflict: "Outdated",
  NotFound: "Outdated",
  UnknownOutcome: "Unknown",
  Forbidden: "Refused",
  Invalid: "Refused",
  Refused: "Refused",
}
for (const [kind, is] of Object.entries(cases))
  test(`${kind} is ${is}`, async () => {
    const error = new KubeError(kind as FailureKind, "no")
    expect(await outcomeOf(Promise.reject(error))).toEqual({ is, error })
  })

for (const kind of ["Throttled", "Unreachable", "WritesRefused"] as const)
  test(`${kind} is trouble with the server, and thrown`, () =>
    expect(outcomeOf(Promise.reject(new KubeError(kind, "no")))).rejects.toThrow("no"))

test("an answer is what was written", async () =>
  expect(await outcomeOf(Promise.resolve("object"))).toEqual({ is: "Written", object: "object" }))
