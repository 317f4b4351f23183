import fc from "fast-check"
import { describe, expect, test } from "vitest"
import type { Cells } from "#web/wire.ts"
import { arrange, cellAt, cornerOf, idOf, layOut, pitchFor, placeOf, walk } from "./map.ts"

const cells: Cells = {
  ...{ kind: "Dicom", states: ["Gone", "UpToDate", "Failed"], tiers: ["", "early"], namespaces: ["shop", "lab"] },
  ...{ names: ["a", "b", "c", "d", "e"], namespace: [0, 1, 0, 1, 0], tier: [0, 1, 0, 1, 0], state: [1, 2, 0, 1, 2] },
  counts: [1, 2, 2],
}
const all = { states: [], namespace: "", name: "" }
const shown = (filter: Partial<Parameters<typeof arrange>[2]>) => {
  const { places, groups } = arrange(cells, ["early", ""], { ...all, ...filter })
  return {
    names: [...places].map(place => cells.names[place]).join(""),
    groups: groups.map(({ tier, start, end }) => [tier, start, end]),
  }
}

describe("what is on the map", () => {
  const cases: Record<string, { filter: Parameters<typeof shown>[0]; names: string }> = {
    "everything that exists, tier by tier": { filter: {}, names: "bdae" },
    "one state": { filter: { states: ["Failed"] }, names: "be" },
    "the default tier": { filter: { tier: "" }, names: "ae" },
    "a tier that does not exist": { filter: { tier: "late" }, names: "" },
    "one namespace": { filter: { namespace: "lab" }, names: "bd" },
    "a namespace that does not exist": { filter: { namespace: "la" }, names: "" },
    "part of a name": { filter: { name: "E" }, names: "e" },
  }
  for (const [name, { filter, names }] of Object.entries(cases))
    test(name, () => expect(shown(filter).names).toBe(names))
  test("in groups", () =>
    expect(shown({}).groups).toEqual([
      ["early", 0, 2],
      ["", 2, 4],
    ]))
})

test("an object is found by its name, with and without a namespace", () => {
  expect(placeOf(cells, "lab/d")).toBe(3)
  expect(placeOf(cells, "shop/d")).toBe(-1)
  expect(idOf(cells, 3)).toBe("lab/d")
  expect(placeOf({ ...cells, namespaces: [""], namespace: [0, 0, 0, 0, 0] }, "d")).toBe(3)
})

/** Groups of these sizes, `columns` wide. */
const grid = (sizes: number[], columns: number) => {
  let start = 0
  const groups = sizes.map((size, at) => {
    const group = { tier: String(at), start, end: start + size }
    start += size
    return group
  })
  const count = start
  return layOut({ places: new Uint32Array(count), groups }, columns * pitchFor(count))
}

describe("keys walk the map", () => {
  // 0 1 2 3 4      10 11 12
  // 5 6 7 8 9
  const layout = grid([7, 3], 5)
  const cases: [string, number, string, number][] = [
    ["to the right", 0, "ArrowRight", 1],
    ["to the right, into the next tier", 6, "ArrowRight", 7],
    ["to the left, at the start", 0, "ArrowLeft", 0],
    ["down", 1, "ArrowDown", 6],
    ["down, where the last row is shorter", 4, "ArrowDown", 6],
    ["down into the next tier", 6, "ArrowDown", 8],
    ["down at the end", 9, "ArrowDown", 9],
    ["up into the tier before", 9, "ArrowUp", 6],
    ["up at the start", 3, "ArrowUp", 3],
    ["to the end of the row", 1, "End", 4],
    ["to the start of the row", 6, "Home", 5],
    ["a page down", 0, "PageDown", 9],
  ]
  for (const [name, from, key, to] of cases) test(name, () => expect(walk(layout, from, key)).toBe(to))
  test("to the very end", () => expect(walk(layout, 1, "End", true)).toBe(9))
  test("other keys are not taken", () => expect(walk(layout, 1, "a")).toBeUndefined())
  test("an empty map has nowhere to go", () => expect(walk(grid([], 5), 0, "ArrowDown")).toBeUndefined())
})

test("every cell is found at each of its corners, and no two cells meet", () =>
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 1, max: 90 }), { minLength: 1, maxLength: 4 }),
      fc.integer({ min: 1, max: 30 }),
      (sizes, columns) => {
        const layout = grid(sizes, columns)
        for (let index = 0; index < sizes.reduce((sum, size) => sum + size, 0); index++) {
          const { x, y } = cornerOf(layout, index)
          expect(cellAt(layout, x, y)).toBe(index)
          expect(cellAt(layout, x + layout.side - 1, y + layout.side - 1)).toBe(index)
          expect(y + layout.side).toBeLessThanOrEqual(layout.height)
        }
      },
    ),
    { numRuns: 50 },
  ))
test("ten thousand cells fit a screen", () => expect(grid([10_000], 140).height).toBeLessThan(800))
