import { z } from "zod"
import { countOrPercent, foreign, listAtomic, rules } from "../../fields.ts"
import { httpAddress, interval, sharedRef, texts, thresholdRange } from "../delivery-fields.ts"
import { builtInNames } from "./analysis.ts"
import { maxMetrics, maxName, maxWebhooks } from "./bounds.ts"

/** The plan of a rollout in the words of OAM. Batches become weights, and its metrics are judged like those of the analysis. */

const maxBatches = 100
const maxPods = 100_000

const podCount = () =>
  z
    .int()
    .min(1)
    .max(maxPods)
    .meta({ format: "int32", hint: `write a whole number from 1 to ${maxPods}` })

const metric = z
  .object({
    name: z.string().min(1).max(maxName).describe("As in analysis.metrics."),
    interval: interval().describe("How far back a measurement looks.").default("1m"),
    metricsRange: thresholdRange().optional(),
    templateRef: sharedRef("a MetricTemplate").describe("The MetricTemplate with the query.").optional(),
  })
  .meta(
    rules({
      rule: `self.name in [${builtInNames}] || has(self.templateRef)`,
      message: "only request-success-rate and request-duration are built in: write templateRef: {name: METRICTEMPLATE}",
      fieldPath: ".templateRef",
    }),
  )

/** When OAM calls a hook, and the hook of ours that is called then. */
export const planHooks = {
  "initialize-rollout": "confirm-rollout",
  "pre-batch-rollout": "confirm-traffic-increase",
  "post-batch-rollout": "rollout",
  "finalize-rollout": "post-rollout",
} as const

const webhook = z.object({
  type: z
    .enum(Object.keys(planHooks) as [keyof typeof planHooks, ...(keyof typeof planHooks)[]])
    .describe(
      "initialize-rollout: the run waits for a yes. pre-batch-rollout: each batch waits for a yes. post-batch-rollout: a no is a failed check. finalize-rollout: told about the end.",
    ),
  name: z.string().min(1).max(maxName).describe("A name."),
  url: httpAddress().describe("Where it is sent."),
  method: z.enum(["POST"]).describe("How it is sent.").default("POST"),
  expectedStatus: z
    .array(z.int().min(200).max(299).meta({ format: "int32", hint: "an answer from 200 to 299 is a yes" }))
    .max(16)
    .meta(listAtomic)
    .describe("Has no effect: any answer from 200 to 299 is a yes.")
    .optional(),
  metadata: texts({ keys: 64, characters: 8192 }).describe("Keys and values that are sent with it.").optional(),
})

const batch = z
  .object({
    replicas: countOrPercent({ minimum: 1, maximum: maxPods }).describe(
      "How many pods this batch brings to the new revision, as a number or as a share of all. In the last batch a share counts for nothing: it brings the rest.",
    ),
    podList: z.array(z.string().max(253)).max(1000).meta(listAtomic).describe("Has no effect.").optional(),
    maxUnavailable: countOrPercent({ minimum: 0, maximum: maxPods })
      .describe("Has no effect: pods go when others have come.")
      .optional(),
    instanceInterval: z
      .int()
      .min(0)
      .max(2_147_483_647)
      .meta({ format: "int32", hint: "write seconds, as a whole number" })
      .describe("Has no effect: analysis.interval is how long a batch lasts.")
      .optional(),
    batchRolloutWebhooks: z
      .array(foreign())
      .max(maxWebhooks)
      .meta(listAtomic)
      .describe("Refused, unless it is empty.")
      .optional(),
    canaryMetric: z
      .array(foreign())
      .max(maxMetrics)
      .meta(listAtomic)
      .describe("Refused, unless it is empty.")
      .optional(),
  })
  .meta(
    rules(
      {
        rule: "!has(self.batchRolloutWebhooks) || self.batchRolloutWebhooks.size() == 0",
        message: "all batches have the same hooks: write them in rolloutPlan.rolloutWebhooks",
        fieldPath: ".batchRolloutWebhooks",
      },
      {
        rule: "!has(self.canaryMetric) || self.canaryMetric.size() == 0",
        message: "all batches are judged by the same metrics: write them in rolloutPlan.canaryMetric",
        fieldPath: ".canaryMetric",
      },
    ),
  )

const batchCount =
  "(has(self.rolloutBatches) ? self.rolloutBatches.size() : has(self.numBatches) ? self.numBatches : 1)"

export const rolloutPlan = z
  .object({
    rolloutStrategy: z
      .enum(["IncreaseFirst", "DecreaseFirst"])
      .describe("Pods of the new revision come first, whatever it says.")
      .optional(),
    targetSize: podCount()
      .describe("How many pods the component has. Without it: as many as the workload before.")
      .optional(),
    numBatches: z
      .int()
      .min(1)
      .max(maxBatches)
      .meta({ format: "int32", hint: `write a whole number from 1 to ${maxBatches}` })
      .describe("How many batches of the same size there are. Without it and rolloutBatches: 1.")
      .optional(),
    rolloutBatches: z
      .array(batch)
      .min(1)
      .max(maxBatches)
      .meta({ ...listAtomic, hint: `write from 1 to ${maxBatches} batches, or leave rolloutBatches out` })
      .describe("The batches, one after the other. Each is judged before the next one begins.")
      .optional(),
    batchPartition: z
      .int()
      .min(0)
      .max(maxBatches - 1)
      .meta({ format: "int32", hint: "write the last batch that may begin, counted from 0" })
      .describe("The last batch that may begin, counted from 0. Without it: all.")
      .optional(),
    paused: z.boolean().describe("The same as suspend.").default(false),
    rolloutWebhooks: z
      .array(webhook)
      .max(maxWebhooks)
      .meta(listAtomic)
      .describe("What is called and asked, beside analysis.webhooks.")
      .default([]),
    canaryMetric: z
      .array(metric)
      .max(maxMetrics)
      .meta(listAtomic)
      .describe("What is measured, beside analysis.metrics.")
      .default([]),
  })
  .meta(
    rules(
      {
        rule: "!has(self.numBatches) || !has(self.rolloutBatches) || self.numBatches == self.rolloutBatches.size()",
        message: "numBatches is not the number of rolloutBatches: leave one of them out",
        fieldPath: ".numBatches",
      },
      {
        rule: `!has(self.batchPartition) || self.batchPartition < ${batchCount}`,
        message: "there is no such batch: write a number below that of the batches, since the first one is 0",
        fieldPath: ".batchPartition",
      },
    ),
  )
