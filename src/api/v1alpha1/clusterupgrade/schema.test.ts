import { expect, test } from "vitest"
import { validate } from "#api/validate.ts"
import { checkKind } from "#test/support/manifests/check-kind.ts"
import { clusterUpgradeCases } from "#test/support/manifests/cluster-fleet.ts"
import { ClusterUpgrade, conditions, precacheCauses, precacheStates, reasons, states } from "./index.ts"

checkKind(ClusterUpgrade, clusterUpgradeCases, { conditions, reasons })

test("every word of the vocabulary fits the status", () => {
  const { manifest } = clusterUpgradeCases["what the controller writes"]!
  const problems = (status: object) => validate(ClusterUpgrade, { ...(manifest as object), status }).errors
  for (const state of Object.keys(states)) expect(problems({ state })).toEqual([])
  const precache = { since: "2026-01-01T00:00:00Z", specHash: "one" }
  for (const state of Object.keys(precacheStates))
    for (const cause of Object.keys(precacheCauses))
      expect(problems({ precache: { ...precache, state, cause } })).toEqual([])
})
