import { z } from "zod"
import { count, listAtomic, listMap, plainText, rules, statusBase, text, timestamp, word } from "../../fields.ts"
import { clusterName } from "../cluster-fields.ts"
import type { ClusterState, PrecacheState } from "../clusterupgrade/reasons.ts"
import { imageReferenceMaxLength } from "../image-reference.ts"
import { bytes } from "../pull-fields.ts"
import { maxCause, maxClusters, maxHistory, maxInflight, maxListed, maxListedImages, maxUpgrades } from "./bounds.ts"
import type { ConditionType, Phase, Reason } from "./reasons.ts"

const clusters = () => count(maxClusters)

const operation = z.object({
  id: plainText(32).describe("Approvals and rollbacks name it."),
  revision: plainText(253).describe("The ControllerRevision that holds the frozen plan.").optional(),
  plan: plainText(64).describe("The hash of the upgrades that it delivers.").default(""),
  phase: word<Phase>(16).describe("Where it is."),
  startedAt: timestamp().describe("When it was planned."),
  enabledAt: timestamp().describe("When the first batch could begin.").optional(),
  endedAt: timestamp().describe("When it ended.").optional(),
  cause: plainText(maxCause).describe("Why it was stopped or goes back.").optional(),
  total: clusters().describe("How many clusters it has.").default(0),
  completed: clusters().describe("How many are complete.").default(0),
  failed: clusters().describe("How many failed or timed out.").default(0),
  rolledBack: clusters().describe("How many went back.").default(0),
})

const progress = z.object({
  name: clusterName().describe("The cluster."),
  state: word<ClusterState>(16).describe("Where it is."),
  upgradeIndex: count(maxUpgrades).describe("Which of the upgrades it is at, the first being 0.").default(0),
  firstReadyAt: timestamp().describe("Since when every object of that upgrade is ready.").optional(),
})

const troubled = z.object({
  name: clusterName().describe("The cluster."),
  state: word<ClusterState>(16).describe("Where it is."),
  cause: plainText(maxCause).describe("Why it is not complete.").default(""),
})

const precached = z.object({
  name: clusterName().describe("The cluster."),
  state: word<PrecacheState>(20).describe("Where pre-caching is."),
  cause: plainText(maxCause).describe("Why it has not succeeded.").optional(),
})

const forecast = z.object({
  fits: z.boolean().describe("Whether what is left fits into the window, with the time that a rollback would take."),
  message: text(256).describe("The numbers, in words."),
  secondsPerCluster: count(31_536_000).describe("How long a cluster takes, by those that are complete.").optional(),
  secondsLeft: count(2_147_483_647).describe("How long the rest takes.").optional(),
  bytes: bytes(Number.MAX_SAFE_INTEGER).describe("What a node has to pull at most, each layer once.").optional(),
  bytesPerSecond: bytes(1e12).describe("How fast nodes pulled so far.").optional(),
})

const counts = z.object({
  NotStarted: clusters().describe("Clusters that have not begun.").default(0),
  InProgress: clusters().describe("Clusters that are being upgraded.").default(0),
  Completed: clusters().describe("Clusters that are complete.").default(0),
  Failed: clusters().describe("Clusters that failed.").default(0),
  TimedOut: clusters().describe("Clusters whose time was over.").default(0),
  RolledBack: clusters().describe("Clusters that went back.").default(0),
  Unreachable: clusters().describe("Clusters of these that are not reached now.").default(0),
})

export const status = z.object({
  ...statusBase<ConditionType, Reason>({ conditions: 10, message: 512 }),
  state: plainText(32).describe("Where the run is, in a word or two.").default(""),
  progress: plainText(32).describe("Clusters that are complete, of all, such as 12/40.").default(""),
  computedMaxConcurrency: clusters().describe("How many clusters a batch has.").default(0),
  remediationPlan: z
    .array(
      z.object({
        batch: count(maxClusters).describe("Its number, the first being 1."),
        clusters: z.array(clusterName()).max(maxListed).meta(listAtomic).describe("Some of its clusters.").default([]),
        more: clusters().describe("How many clusters it has beside these.").default(0),
      }),
    )
    .max(8)
    .meta({
      ...listAtomic,
      ...rules({
        rule: `self.map(each, each.clusters.size()).sum() <= ${maxListed}`,
        message: `the plan names at most ${maxListed} clusters`,
      }),
    })
    .describe("The current batch and those that follow, as far as there is room: 200 clusters in all.")
    .default([]),
  batches: clusters().describe("How many batches there are.").default(0),
  status: z
    .object({
      startedAt: timestamp().describe("When the run started.").optional(),
      completedAt: timestamp().describe("When it ended.").optional(),
      currentBatch: clusters().describe("The batch being upgraded, the first being 1.").default(0),
      currentBatchStartedAt: timestamp().describe("When it began.").optional(),
      workedBeforeBatchSeconds: count(2_147_483_647)
        .describe("How long the run had worked when the current batch began.")
        .default(0),
      currentBatchRemediationProgress: z
        .array(progress)
        .max(maxListed)
        .meta(listMap("name"))
        .describe("Clusters of the current batch, those in trouble first.")
        .default([]),
    })
    .describe("The run, as the original reports it.")
    .prefault({}),
  clusters: z
    .array(troubled)
    .max(maxListed)
    .meta(listMap("name"))
    .describe("Clusters in trouble, and why. The truth about each is its ClusterUpgrade.")
    .default([]),
  moreClusters: clusters().describe("How many clusters are in trouble beside these.").default(0),
  counts: counts.describe("Clusters by state.").prefault({}),
  precaching: z
    .object({
      spec: z
        .object({
          hash: plainText(64).describe("Of what is pre-cached."),
          images: z
            .array(plainText(imageReferenceMaxLength))
            .max(maxListedImages)
            .meta(listAtomic)
            .describe("Some of the images.")
            .default([]),
          count: count(256).describe("How many images there are.").default(0),
          spaceRequired: plainText(32).describe("How much space a node must have.").optional(),
        })
        .describe("What is pre-cached.")
        .optional(),
      status: z
        .array(precached)
        .max(maxListed)
        .meta(listMap("name"))
        .describe("Clusters that are being pre-cached, those in trouble first.")
        .default([]),
      succeeded: clusters().describe("Clusters that have every image.").default(0),
      ended: clusters().describe("Clusters on which pre-caching has ended, well or not.").default(0),
      total: clusters().describe("Clusters that are to be pre-cached.").default(0),
    })
    .describe("Pre-caching, as the original reports it.")
    .optional(),
  operation: operation.describe("The current operation, or the last one.").optional(),
  history: z
    .array(operation)
    .max(maxHistory)
    .meta(listAtomic)
    .describe("Earlier operations, the newest first.")
    .default([]),
  workedSeconds: count(2_147_483_647)
    .describe("How long the run has worked. Blocked, paused, unapproved and closed hours do not count.")
    .default(0),
  workedAt: timestamp().describe("Since when further time counts, if it does.").optional(),
  nextWindow: timestamp().describe("When the next window opens, while none is open.").optional(),
  forecast: forecast.describe("Whether what is left fits into the window.").optional(),
  electionID: plainText(63)
    .describe("The process that may write; writes of any other process are refused.")
    .default(""),
  inflight: z
    .array(clusterName())
    .max(maxInflight)
    .meta(listAtomic)
    .describe("Clusters with a write under way; a new leader makes sure of these before it concludes anything.")
    .default([]),
})
