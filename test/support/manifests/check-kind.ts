import { expect, test } from "vitest"
import type { Kind } from "#api/kind.ts"
import { validate } from "#api/validate.ts"
import { silent, unbounded } from "./schema.ts"
import type { Case } from "./serviceimage.ts"

type Words = {
  reasons: Readonly<Record<string, string>>
  conditions: Readonly<Record<string, { reasons: readonly string[] }>>
}

/** What is tested of every kind's declaration: its cases, its bounds, its descriptions and its words. */
export function checkKind(kind: Kind, cases: Record<string, Case>, { reasons, conditions }: Words): void {
  for (const [name, { manifest, refused }] of Object.entries(cases))
    test(name, () => {
      const { errors, warnings, object } = validate(kind, manifest)
      expect(warnings).toEqual([])
      if (refused) expect(errors).toEqual([{ path: refused.path, message: expect.stringContaining(refused.words) }])
      else {
        expect(errors).toEqual([])
        // The type we read objects as and the schema the server applies come from one declaration, by two ways.
        expect(kind.spec.parse(object?.spec)).toEqual(object?.spec)
      }
    })

  test("every text, list, map and number has bounds", () => {
    expect(unbounded(kind.schema.properties!.spec!, "spec")).toEqual([])
    expect(unbounded(kind.schema.properties!.status!, "status")).toEqual([])
  })

  test("every field says what it is", () => {
    expect(silent(kind.schema.properties!.spec!, "spec")).toEqual([])
    expect(silent(kind.schema.properties!.status!, "status")).toEqual([])
  })

  test("conditions give only reasons that are explained", () => {
    for (const { reasons: given } of Object.values(conditions)) {
      expect(given.filter(reason => !Object.hasOwn(reasons, reason))).toEqual([])
      expect(new Set(given).size).toBe(given.length)
    }
  })
}
