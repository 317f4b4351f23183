import { z } from "zod"
import {
  condition,
  count,
  labelValuePattern,
  listAtomic,
  listMap,
  plainText,
  rules,
  statusBase,
  timestamp,
  word,
} from "../../fields.ts"
import { imageReferenceMaxLength } from "../image-reference.ts"
import {
  maxAnalysisMessage,
  maxEndpointsMessage,
  maxExamples,
  maxExamplesPerTier,
  maxFailureMessage,
  maxFailureMessages,
  maxHistory,
  maxHistoryImageCharacters,
  maxInflight,
  maxJudgedTiers,
  maxObjects,
  maxTiers,
} from "./bounds.ts"
import type { ConditionType, FailureReason, FailureScope, Phase, Reason, State } from "./reasons.ts"

const recordedTier = () => z.string().max(63).regex(new RegExp(labelValuePattern))

/** A status must accept whatever a spec once admitted, so only the length is checked. */
const recordedImage = () =>
  z
    .string()
    .max(imageReferenceMaxLength)
    .regex(/^[!#-%'-;=?-[\]-~]*$/)

const objectKey = () =>
  z
    .string()
    .max(317)
    .regex(/^[a-z0-9.-]*(\/[a-z0-9.-]*)?$/)

const imagesByTier = () =>
  z.record(z.string().max(63), recordedImage()).meta({
    maxProperties: maxTiers,
    "x-kubernetes-map-type": "atomic",
    ...rules({
      rule: `self.all(tier, tier.size() <= 63 && tier.matches('${labelValuePattern}'))`,
      message: "a tier is named by a label value of at most 63 characters",
    }),
  })

const oldEndpoints = z.object({
  checkedAt: timestamp().describe("When the EndpointSlices were read."),
  pods: count(maxObjects).describe("How many pods with another version get requests of a Service."),
  message: plainText(maxEndpointsMessage).describe("Which Service leads to which of them."),
})

const failure = z.object({
  reason: word<FailureReason>(24).describe("The class of failure."),
  scope: word<FailureScope>(8).describe("All: every counted object of the step fails like this. Partial: some do."),
  count: count(maxObjects).describe("How many objects fail like this."),
  message: plainText(maxFailureMessage)
    .describe(
      "The message of the server, a pod or another writer about the first example, shortened; given once per reason, in the first tier that has it.",
    )
    .optional(),
  examples: z
    .array(objectKey())
    .max(maxExamplesPerTier)
    .meta(listAtomic)
    .describe("Some of them, as namespace/name.")
    .default([]),
})

const tierStatus = z
  .object({
    upgradeTier: recordedTier().describe("The tier.").default(""),
    newDeploymentImage: recordedImage()
      .describe(
        "The image new objects of this tier get: the last completed one; on the very first rollout, the one being rolled out.",
      )
      .default(""),
    conditions: z
      .array(condition<"Complete" | "InProgress", Reason>(plainText(128)))
      .max(2)
      .meta(listMap("type"))
      .describe("Complete and InProgress of this tier.")
      .default([]),
    total: count(maxObjects).describe("Objects that count.").default(0),
    updated: count(maxObjects).describe("Of these: have the image in their spec.").default(0),
    upToDate: count(maxObjects).describe("Of these: run it with every pod.").default(0),
    newcomers: count(maxObjects)
      .describe("Objects created since the operation started that do not count yet: they were never available.")
      .default(0),
    unmanaged: count(maxObjects).describe("Objects left alone because they say manuallySpecifiedImage.").default(0),
    ignoredFailures: count(maxObjects).describe("Objects that failed without stopping the rollout.").default(0),
    regressed: count(maxObjects).describe("Objects that were up to date and are no longer healthy.").default(0),
    step: z
      .object({
        percent: z.int().min(1).max(100).describe("The share being rolled out."),
        upToDateAt: timestamp().describe("When all of it was up to date; the soak runs from here.").optional(),
      })
      .describe("The current step of the tier.")
      .optional(),
    analysis: z
      .object({
        of: word<string>(16).describe("The analysis that was counted for: another one in the spec begins anew."),
        percent: z.int().min(1).max(100).describe("The step that was judged last."),
        checkedAt: timestamp().describe("When it was judged last; the next time is an interval later."),
        verdict: word<"Good" | Extract<Reason, "BadMetric" | "HookSaidNo" | "NoData" | "MetricError">>(16).describe(
          "What was found then: Good, or why the step waits.",
        ),
        message: plainText(maxAnalysisMessage).describe("The values, or which metric or hook was against it."),
        failedChecks: count(1_000_000).describe("Failed checks of the tier in this operation."),
        errors: count(1_000_000).describe("How often in a row something could not be asked.").optional(),
        noDataSince: timestamp().describe("Since when a query has found nothing.").optional(),
        needsPerson: z.boolean().describe("It could not be asked, and that does not pass by itself.").optional(),
      })
      .describe("What the analysis of the tier has found.")
      .optional(),
    failures: z
      .array(failure)
      .max(3)
      .meta({
        ...listMap("reason"),
      })
      .describe("The most frequent failures.")
      .default([]),
  })
  .meta(
    rules({
      rule: `self.failures.map(failure, failure.examples.size()).sum() <= ${maxExamplesPerTier}`,
      message: `a tier names at most ${maxExamplesPerTier} examples`,
    }),
  )

const operation = z.object({
  id: word<string>(32).describe("Names the operation; approvals refer to it."),
  startedAt: timestamp().describe("When it started. Objects that existed then are counted."),
  images: imagesByTier().describe("The image of each tier, as it is stamped.").default({}),
  phase: word<Phase>(16).describe("The state of the operation, in one word."),
  total: count(maxObjects).describe("Objects that counted, when it was last reported or when it ended.").default(0),
  upToDate: count(maxObjects).describe("Of these: up to date.").default(0),
  failed: count(maxObjects).describe("Of these: failed, ignored or not.").default(0),
  cause: plainText(128).describe("Why it was rolled back.").optional(),
  endedAt: timestamp().describe("When it was first complete, or when it was rolled back or superseded.").optional(),
})

/** What the controller reports. */
export const status = z.object({
  ...statusBase<ConditionType, Reason>({ conditions: 9, message: 256 }),
  state: word<State>(16).describe("The state of the rollout, in one word.").optional(),
  image: plainText(imageReferenceMaxLength + 8)
    .describe("The image of the current priority, and how many other images there are, such as web:v2 +1.")
    .optional(),
  progress: plainText(32).describe("Objects up to date, of objects that count, such as 412/1000.").default(""),
  currentPriority: z
    .int32()
    .meta({ format: "int32" })
    .describe("The priority being rolled out; when complete, the lowest.")
    .default(0),
  tierStatus: z
    .array(tierStatus)
    .max(maxTiers)
    .meta({
      ...listMap("upgradeTier"),
      ...rules(
        {
          rule: `self.map(tier, tier.failures.map(failure, failure.examples.size()).sum()).sum() <= ${maxExamples}`,
          message: `a status names at most ${maxExamples} examples`,
        },
        {
          rule: `self.map(tier, tier.failures.filter(failure, has(failure.message)).size()).sum() <= ${maxFailureMessages}`,
          message: `a status quotes at most ${maxFailureMessages} messages`,
        },
        {
          rule: `self.filter(tier, has(tier.analysis)).size() <= ${maxJudgedTiers}`,
          message: `a status keeps the analysis of at most ${maxJudgedTiers} tiers`,
        },
      ),
    })
    .describe("Each tier.")
    .default([]),
  unmatched: count(maxObjects).describe("Objects of the target that belong to no tier and are left alone.").default(0),
  lostPods: count(maxObjects)
    .describe("Pods on nodes that no longer answer. They may still run another image than their object's.")
    .default(0),
  oldEndpoints: oldEndpoints
    .describe(
      "Services that lead to pods with another version although the rollout is complete; absent where none were found.",
    )
    .optional(),
  pullJobs: count(99_999)
    .describe("ImagePullJobs that bring images to nodes before their tier; they go with the tier.")
    .optional(),
  operation: operation.describe("The current operation, or the last one.").optional(),
  history: z
    .array(operation)
    .max(maxHistory)
    .meta({
      ...listAtomic,
      ...rules({
        rule: `self.map(entry, entry.images.map(tier, tier.size() + entry.images[tier].size()).sum()).sum() <= ${maxHistoryImageCharacters}`,
        message: `the history holds at most ${maxHistoryImageCharacters} characters of images`,
      }),
    })
    .describe("Earlier operations, the newest first.")
    .default([]),
  electionID: plainText(63)
    .describe("The process that may write; writes of any other process are refused.")
    .default(""),
  inflight: z
    .array(objectKey())
    .max(maxInflight)
    // One writer writes the whole list; for a set, the server would record an owner of each entry.
    .meta(listAtomic)
    .describe(
      "Objects with a write under way, as namespace/name; a new leader makes sure of these before it concludes anything.",
    )
    .default([]),
  startedAt: timestamp().describe("When the current or last operation started.").optional(),
  completedAt: timestamp().describe("When Complete last became true.").optional(),
  priorityStartedAt: timestamp().describe("When currentPriority last changed.").optional(),
})
