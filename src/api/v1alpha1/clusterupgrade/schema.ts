import { z } from "zod"
import { ageColumn, messageColumn, reasonColumn } from "../../columns.ts"
import { count, listAtomic, plainText, statusBase, text, timestamp, word } from "../../fields.ts"
import { defineKind, type ObjectOf } from "../../kind.ts"
import { clusterName } from "../cluster-fields.ts"
import { maxClusters, maxUpgrades } from "../clustergroupupgrade/bounds.ts"
import { objectName } from "../delivery-fields.ts"
import { group, version } from "../group.ts"
import type { ClusterState, ConditionType, PrecacheCause, PrecacheState, Reason } from "./reasons.ts"

const spec = z.object({
  run: objectName().describe("The ClusterGroupUpgrade, in the same namespace."),
  operation: plainText(32).describe("The operation of the run."),
  cluster: clusterName().describe("The cluster."),
  batch: count(maxClusters).describe("The batch of the frozen plan, the first being 1; 0: it has everything already."),
  isCanary: z.boolean().describe("Whether it is a canary: a batch of its own.").default(false),
})

const precache = z.object({
  state: word<PrecacheState>(20).describe("Where pre-caching is."),
  since: timestamp().describe("When it came there."),
  attempt: count(1000).describe("Which attempt this is, the first being 1.").default(1),
  specHash: plainText(64).describe("Of what is pre-cached."),
  job: plainText(63).describe("The name of the job on the cluster.").optional(),
  /** The words of pull failures, and those of pre-caching. */
  cause: word<PrecacheCause | string>(32).describe("Why it has not succeeded.").optional(),
  message: text(512).describe("The same in a sentence, with a next step.").optional(),
  deadlineSeconds: count(2_147_483_647).describe("How long the job of this attempt may take.").default(0),
  succeededAt: timestamp().describe("When every node had every image.").optional(),
})

const status = z.object({
  ...statusBase<ConditionType, Reason>({ conditions: 1, message: 512 }),
  state: word<ClusterState>(16).describe("Where the cluster is.").default("NotStarted"),
  attempt: count(1000).describe("How often it was given a batch.").default(0),
  upgradeIndex: count(maxUpgrades).describe("Which of the upgrades it is at, the first being 0.").default(0),
  startedAt: timestamp().describe("When it first got an object of the run.").optional(),
  endedAt: timestamp().describe("When it was complete, failed or timed out.").optional(),
  appliedAt: timestamp().describe("When it last got objects of the run.").optional(),
  firstReadyAt: timestamp().describe("Since when every object of the upgrade is ready.").optional(),
  lastContact: timestamp().describe("When it was last reached.").optional(),
  unreachableSince: timestamp().describe("Since when it is not reached.").optional(),
  cause: word<Reason>(32).describe("Why it is not complete.").optional(),
  rollback: z
    .array(plainText(32))
    .max(128)
    .meta(listAtomic)
    .describe("The operation that each delivered object is asked to roll back; empty for those that stay.")
    .optional(),
  releasedAt: timestamp().describe("When the helper objects of the run were removed.").optional(),
  proof: text(256).describe("What showed that it is complete, such as 12 digests on 38 of 40 nodes.").optional(),
  precache: precache.describe("Pre-caching.").optional(),
})

// Not registered in src/api/names.ts before its controller is there: a definition without one must not be installed.
export const ClusterUpgrade = defineKind({
  group,
  version,
  kind: "ClusterUpgrade",
  plural: "clusterupgrades",
  scope: "Namespaced",
  shortNames: ["cu"],
  description:
    "A ClusterUpgrade is what is known of one cluster in a ClusterGroupUpgrade. Only the controller writes it.",
  printerColumns: [
    { name: "Cluster", type: "string", jsonPath: ".spec.cluster" },
    { name: "Batch", type: "integer", jsonPath: ".spec.batch" },
    { name: "State", type: "string", jsonPath: ".status.state" },
    { name: "Precache", type: "string", jsonPath: ".status.precache.state" },
    reasonColumn,
    ageColumn,
    messageColumn,
  ],
  spec,
  status,
})

export type ClusterUpgrade = ObjectOf<typeof ClusterUpgrade>
export type ClusterUpgradeSpec = ClusterUpgrade["spec"]
export type ClusterUpgradeStatus = NonNullable<ClusterUpgrade["status"]>
export type Precache = NonNullable<ClusterUpgradeStatus["precache"]>
export type Condition = ClusterUpgradeStatus["conditions"][number]
