import { z } from "zod"
import { listAtomic, rules } from "../../fields.ts"
import {
  calls,
  duration,
  httpAddress,
  interval,
  secretRef,
  sharedRef,
  texts,
  thresholdRange,
} from "../delivery-fields.ts"
import { maxTierMetrics, maxTierWebhooks } from "./bounds.ts"

/** What a ServiceImage says about the judgement of a step. */

const metric = z
  .object({
    name: z.string().min(1).max(63).meta({ hint: "write a name" }).describe("A name for messages."),
    interval: interval()
      .describe("How far back a measurement looks. It never looks back before the step was up to date.")
      .default("1m"),
    thresholdRange: thresholdRange().meta({ hint: "write thresholdRange: {max: 1}, or min" }),
    templateRef: sharedRef("a MetricTemplate", "analysisNamespace")
      .describe("The MetricTemplate with the query.")
      .meta({ hint: "write templateRef: {name: METRICTEMPLATE}" }),
    templateVariables: texts({ keys: 16, characters: 256 })
      .describe("Values for {{ variables.NAME }} in the query.")
      .optional(),
  })
  .meta(
    rules({
      rule: "has(self.thresholdRange.min) || has(self.thresholdRange.max)",
      message: "a range without min and max finds nothing bad: write thresholdRange: {max: 1}, or min",
      fieldPath: ".thresholdRange",
    }),
  )

const webhook = z.object({
  name: z.string().min(1).max(63).meta({ hint: "write a name" }).describe("A name for messages."),
  url: httpAddress().describe("Where it is sent, by POST. An answer other than 2xx is a failed check."),
  ...calls(),
  metadata: texts({ keys: 16, characters: 1024 }).describe("Keys and values that are sent with it.").optional(),
  secretRef: secretRef()
    .describe("A Secret of analysisNamespace with the key `key`: calls are signed with it.")
    .optional(),
})

export const analysis = z
  .object({
    interval: duration().describe("How often a step is judged, from when it is up to date. The least is 10s."),
    threshold: z
      .int()
      .min(1)
      .max(1_000_000)
      .meta({ format: "int32", hint: "write how many failed checks halt the rollout, at least 1" })
      .describe("How many failed checks halt the rollout; they are counted over all steps of the tier."),
    metrics: z
      .array(metric)
      .max(maxTierMetrics)
      .meta({ ...listAtomic, hint: `write at most ${maxTierMetrics} metrics` })
      .describe("What is measured.")
      .default([]),
    webhooks: z
      .array(webhook)
      .max(maxTierWebhooks)
      .meta({ ...listAtomic, hint: `write at most ${maxTierWebhooks} webhooks` })
      .describe("What is asked.")
      .default([]),
  })
  .meta(
    rules({
      rule: "self.metrics.size() + self.webhooks.size() > 0",
      message: "an analysis that asks nothing finds nothing: write metrics, webhooks or both",
      fieldPath: ".metrics",
    }),
  )
