import type { z } from "zod"
import { ageColumn, messageColumn, readyColumn, reasonColumn } from "../../columns.ts"
import { defineKind, type ObjectOf } from "../../kind.ts"
import { group, version } from "../group.ts"
import { spec } from "./spec.ts"
import { status } from "./status.ts"

// Not registered in src/api/names.ts before its controller is there: a definition without one must not be installed.
export const ClusterGroupUpgrade = defineKind({
  group,
  version,
  kind: "ClusterGroupUpgrade",
  plural: "clustergroupupgrades",
  scope: "Namespaced",
  shortNames: ["cgu"],
  description: "A ClusterGroupUpgrade brings objects of ours to a fleet of clusters, batch by batch.",
  printerColumns: [
    readyColumn,
    { name: "State", type: "string", jsonPath: ".status.state" },
    { name: "Progress", type: "string", jsonPath: ".status.progress" },
    { name: "Batch", type: "integer", jsonPath: ".status.status.currentBatch" },
    ageColumn,
    { ...reasonColumn, priority: 1 },
    { name: "Next-Window", type: "date", jsonPath: ".status.nextWindow", priority: 1 },
    messageColumn,
  ],
  spec,
  status,
})

export type ClusterGroupUpgrade = ObjectOf<typeof ClusterGroupUpgrade>
export type ClusterGroupUpgradeSpec = ClusterGroupUpgrade["spec"]
export type ClusterGroupUpgradeSpecInput = z.input<typeof spec>
export type ClusterGroupUpgradeStatus = NonNullable<ClusterGroupUpgrade["status"]>
export type Upgrade = ClusterGroupUpgradeSpec["upgrades"][number]
export type UpgradeManifest = Upgrade["manifests"][number]
export type Windows = ClusterGroupUpgradeSpec["windows"]
export type Window = Windows["upgrade"][number]
export type Operation = NonNullable<ClusterGroupUpgradeStatus["operation"]>
export type Forecast = NonNullable<ClusterGroupUpgradeStatus["forecast"]>
export type Condition = ClusterGroupUpgradeStatus["conditions"][number]
