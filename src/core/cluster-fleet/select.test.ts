import { describe, expect, test } from "vitest"
import { type PlacementDecisions, selectClusters } from "./select.ts"

const known = new Map(
  ["a", "b", "c", "d"].map(name => [name, { name, labels: { name, half: name < "c" ? "first" : "second" } }]),
)
const nothing = { clusters: [], clusterLabelSelectors: [] }
const half = (value: string) => ({ matchLabels: { half: value } })
const decided: PlacementDecisions = [
  { group: 1, clusters: ["c", "a"] },
  { group: 0, clusters: ["d", "gone"] },
]

const cases: Record<
  string,
  { given: Parameters<typeof selectClusters>[0]; decisions?: PlacementDecisions; gives: string[] | string }
> = {
  "names keep their order": { given: { ...nothing, clusters: ["d", "a"] }, gives: ["d", "a"] },
  "selectors are joined, by name, after the names": {
    given: { clusters: ["d"], clusterLabelSelectors: [half("second"), half("first")] },
    gives: ["d", "a", "b", "c"],
  },
  "an empty selector selects all": { given: { ...nothing, clusterLabelSelectors: [{}] }, gives: ["a", "b", "c", "d"] },
  "a Placement comes last, by group and name, without clusters that are gone": {
    given: { ...nothing, clusters: ["a"], placementRef: { name: "north" } },
    decisions: decided,
    gives: ["a", "d", "c"],
  },
  "a name that is not known": { given: { ...nothing, clusters: ["a", "x"] }, gives: "ClusterNotFound" },
  "a Placement that has not decided": {
    given: { ...nothing, placementRef: { name: "p" } },
    gives: "PlacementNotFound",
  },
  "a selector that finds none": {
    given: { ...nothing, clusterLabelSelectors: [half("third")] },
    gives: "NoClusters",
  },
}

describe("selection", () => {
  for (const [name, { given, decisions, gives }] of Object.entries(cases))
    test(name, () => {
      const found = selectClusters(given, known, decisions)
      expect(found.ok ? found.clusters : found.reason).toEqual(gives)
    })

  test("more than 5,000 clusters are refused", () => {
    const many = new Map(Array.from({ length: 5001 }, (_, at) => [`c${at}`, { name: `c${at}`, labels: {} }]))
    expect(selectClusters({ ...nothing, clusterLabelSelectors: [{}] }, many, undefined)).toMatchObject({
      reason: "TooManyClusters",
    })
  })
})
