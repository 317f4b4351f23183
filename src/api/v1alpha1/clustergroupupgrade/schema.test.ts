import { expect, test } from "vitest"
import { validate } from "#api/validate.ts"
import { checkKind } from "#test/support/manifests/check-kind.ts"
import { clusterGroupUpgradeCases } from "#test/support/manifests/cluster-fleet.ts"
import { largest } from "#test/support/manifests/largest.ts"
import { ClusterGroupUpgrade, type ClusterGroupUpgradeStatus, conditions, phases, reasons } from "./index.ts"

checkKind(ClusterGroupUpgrade, clusterGroupUpgradeCases, { conditions, reasons })

test("the largest status that is legal stays below 256 kB", () => {
  const status = largest(ClusterGroupUpgrade.schema.properties!.status!) as ClusterGroupUpgradeStatus
  // 200 clusters over all batches.
  status.remediationPlan = status.remediationPlan.map((batch, index) =>
    index === 0 ? batch : { ...batch, clusters: [] },
  )
  const { manifest } = clusterGroupUpgradeCases["the smallest manifest"]!
  expect(validate(ClusterGroupUpgrade, { ...(manifest as object), status }).errors).toEqual([])
  expect(Buffer.byteLength(JSON.stringify(status))).toBeLessThan(256_000)
})

test("every word of the vocabulary fits the status", () => {
  const { manifest } = clusterGroupUpgradeCases["the smallest manifest"]!
  const time = "2026-01-01T00:00:00Z"
  for (const phase of Object.keys(phases)) {
    const status = { operation: { id: "g1", phase, startedAt: time } }
    expect(validate(ClusterGroupUpgrade, { ...(manifest as object), status }).errors).toEqual([])
  }
})
