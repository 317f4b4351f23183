import { describe, expect, test } from "vitest"
import type { RolloutRow, Row } from "#web/wire.ts"
import type { OverviewFilter } from "./address.ts"
import { needsSomebody, overviewRows, tally, titleOf } from "./overview.ts"

const row = (name: string, state: RolloutRow["state"], more: Partial<RolloutRow> = {}): Row => ({
  ...{ kind: "serviceimages", namespace: "", name, id: name, attention: "None", state, reason: "", message: "" },
  ...{
    view: "rollout",
    target: "Dicom",
    image: "registry.example.com/app:v3",
    progress: { done: 1, total: 4 },
    tiers: 1,
  },
  ...{ currentPriority: 0, awaitsApproval: false, operation: "" },
  ...more,
})
const rows = [
  row("calm", "Complete", { progress: { done: 4, total: 4 }, since: 30 }),
  row("going", "InProgress", { since: 20 }),
  row("stuck", "Halted", { attention: "Act", message: "all fail", progress: { done: 0, total: 4 }, since: 10 }),
  row("worse", "Degraded", { attention: "Look", progress: { done: 3, total: 4 }, since: 40 }),
]
const usual: OverviewFilter = { search: "", kinds: [], states: [], sort: "attention" }

describe("what is listed, in which order", () => {
  const cases: Record<string, { filter: Partial<OverviewFilter>; names: string[] }> = {
    "what needs a person first, what rests last": { filter: {}, names: ["stuck", "worse", "going", "calm"] },
    "by name": { filter: { sort: "name" }, names: ["calm", "going", "stuck", "worse"] },
    "by progress": { filter: { sort: "progress" }, names: ["stuck", "going", "worse", "calm"] },
    "by the last change": { filter: { sort: "age" }, names: ["worse", "calm", "going", "stuck"] },
    "words of any field, all of them": { filter: { search: "ALL  v3" }, names: ["stuck"] },
    states: { filter: { states: ["Complete", "Degraded"] }, names: ["worse", "calm"] },
    "another kind": { filter: { kinds: ["canaries"] }, names: [] },
  }
  for (const [name, { filter, names }] of Object.entries(cases))
    test(name, () => expect(overviewRows(rows, { ...usual, ...filter }).map(row => row.name)).toEqual(names))
})

test("values are counted", () =>
  expect(tally(["b", "a", "b", "c"])).toEqual([
    { value: "b", count: 2 },
    { value: "a", count: 1 },
    { value: "c", count: 1 },
  ]))

test("the title counts those that need a person", () => {
  expect(needsSomebody(rows)).toBe(1)
  expect(titleOf({ waiting: 0 })).toBe("AutoImageManager")
  expect(titleOf({ waiting: 3 })).toBe("(3) AutoImageManager")
  expect(titleOf({ waiting: 3, shown: rows[2]! })).toBe("(3) stuck Halted 0/4 · AutoImageManager")
})
