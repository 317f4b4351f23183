import { expect, test } from "vitest"
import { sizeFor } from "./size.ts"

test("a share of the requests has the same share of pods, and at least one", () => {
  const size = (weight: number, full: number, least = 0) => sizeFor({ strategy: "Weighted", weight, full, least })
  expect([0, 1, 10, 11, 50, 100].map(weight => size(weight, 10))).toEqual([1, 1, 1, 2, 5, 10])
  expect(size(7, 100)).toBe(7)
  expect(size(50, 1)).toBe(1)
  expect(size(50, 4, 10)).toBe(4)
  expect(size(50, 20, 30)).toBe(15)
})

test("where every matching request can come, all pods are there", () => {
  for (const strategy of ["BlueGreen", "HeaderOrCookie"] as const)
    expect(sizeFor({ strategy, weight: 0, full: 6 })).toBe(6)
})

test("the user's own number is taken, but never at full traffic", () => {
  expect(sizeFor({ strategy: "Weighted", weight: 50, full: 10, canaryReplicas: 2 })).toBe(2)
  expect(sizeFor({ strategy: "BlueGreen", weight: 0, full: 10, canaryReplicas: 2 })).toBe(2)
  expect(sizeFor({ strategy: "Weighted", weight: 100, full: 10, canaryReplicas: 2 })).toBe(10)
  expect(sizeFor({ strategy: "Weighted", weight: 50, full: 10, canaryReplicas: 20 })).toBe(10)
})

test("a workload without pods stays without", () => {
  expect(sizeFor({ strategy: "Weighted", weight: 50, full: 0 })).toBe(0)
})
