import { z } from "zod"
import {
  count,
  labelValuePattern,
  listAtomic,
  plainText,
  rules,
  statusBase,
  text,
  timestamp,
  word,
} from "../../fields.ts"
import { imageReferenceMaxLength } from "../image-reference.ts"
import type { HookType } from "./analysis.ts"
import {
  maxGates,
  maxHistory,
  maxImages,
  maxMetrics,
  maxName,
  maxTrackedConfigs,
  maxUntrackedConfigs,
} from "./bounds.ts"
import type { ConditionType, GateState, MetricVerdict, Phase, Reason, RollingState, RunResult } from "./reasons.ts"

const pods = () => count(999_999)
const weight = () => count(100)

const recordedName = () =>
  z
    .string()
    .max(253)
    .regex(/^[a-z0-9.-]*$/)

const image = () =>
  z
    .string()
    .max(imageReferenceMaxLength)
    .regex(/^[!#-%'-;=?-[\]-~]*$/)

const cookie = (what: string) =>
  z
    .string()
    .max(320)
    .regex(/^[!#-%'-;=?-[\]-~]*$/)
    .describe(what)
    .optional()

const revision = z.object({
  hash: z
    .string()
    .max(63)
    .regex(new RegExp(labelValuePattern))
    .describe("The value of the hash label (`pod-template-hash`, `controller-revision-hash`) of its pods."),
  workload: recordedName().describe("The workload that has its pods.").optional(),
  images: z
    .array(image())
    .max(maxImages)
    .meta(listAtomic)
    .describe("The images of its containers, in their order.")
    .default([]),
})

const metric = z.object({
  name: text(maxName).describe("The metric."),
  verdict: word<MetricVerdict>(16).describe("What the last measurement says."),
  value: plainText(32).describe("What was measured.").optional(),
  message: plainText(160).describe("Why it is not good.").optional(),
  count: count(999_999).describe("How many measurements in a row said the same."),
  since: timestamp().describe("When the first of them was made."),
  at: timestamp().describe("When the last was made."),
})

/** A hook, or a word of requireApproval. */
type GateType = HookType | "approval"

const gate = z.object({
  type: (
    z
      .string()
      .max(24)
      .regex(/^[a-z]+(-[a-z]+)*$/) as unknown as z.ZodType<GateType, GateType>
  ).describe("The type of the hook, or `approval`."),
  name: text(maxName).describe("The name of the hook, or the word of requireApproval."),
  round: count(999_999).describe("Which time in the run: hooks before each weight are asked again.").default(0),
  state: word<GateState>(16).describe("Whether it waits or was passed."),
  since: timestamp().describe("When the run came to it."),
  at: timestamp().describe("When it was passed, or last refused.").optional(),
  attempts: count(999_999).describe("How many calls were made.").default(0),
  approvedBy: plainText(253).describe("The user that approved.").optional(),
  reason: word<Reason>(32).describe("Why, in one word.").optional(),
  message: plainText(160).describe("The same, in a sentence.").optional(),
})

const trackedConfigs = z.record(z.string(), plainText(16)).meta({
  maxProperties: maxTrackedConfigs,
  "x-kubernetes-map-type": "atomic",
  ...rules({
    rule: "self.all(key, key.size() <= 138 && (key.startsWith('configmap/') || key.startsWith('secret/')))",
    message: "a key is configmap/NAME or secret/NAME",
  }),
})

const snapshots = z
  .record(
    z.string(),
    z
      .string()
      .max(16)
      .regex(/^[0-9a-f]{16}$/),
  )
  .meta({
    maxProperties: maxTrackedConfigs,
    "x-kubernetes-map-type": "atomic",
    ...rules({ rule: "self.all(key, key.size() <= 128)", message: "a key is the name of a ConfigMap" }),
  })

const configsRead = z.object({
  workload: recordedName().describe(
    "What has its pods: the StatefulSet or DaemonSet, or the ReplicaSet by its name without the hash.",
  ),
  hash: z
    .string()
    .max(63)
    .regex(new RegExp(labelValuePattern))
    .describe("The value of the hash label of its pods; absent while it has none.")
    .optional(),
  snapshots: snapshots
    .describe("ConfigMaps that its new pods read as a snapshot, and what is added to their names for it.")
    .default({}),
})

const untracked = z.object({
  name: z
    .string()
    .max(138)
    .regex(/^[a-z0-9./-]*$/)
    .describe("`configmap/NAME` or `secret/NAME`."),
  reason: word<Reason>(32).describe("Why, in one word."),
})

const run = z.object({
  id: word<string>(32).describe("Names the run; approvals refer to it."),
  checksum: plainText(64).describe("Of template and tracked configuration; hooks get it, approvals refer to it."),
  configs: trackedConfigs
    .describe("Checksums of the ConfigMaps and Secrets that the new revision is proven with.")
    .optional(),
  startedAt: timestamp().describe("When it started."),
  source: revision.describe("The revision that runs."),
  target: revision.describe("The new revision."),
  sizes: z
    .object({
      full: pods().describe("How many pods the workload has, now or at the start, whichever is more."),
      source: pods().describe("How many the running revision is given."),
      target: pods().describe("How many the new revision is given."),
    })
    .describe("Pods of both revisions."),
  weight: weight().describe("How many percent of the requests the new revision gets by the route as it is."),
  weightSince: timestamp().describe("Since when the route says so; measurements do not reach further back."),
  mirrored: z.boolean().describe("Whether requests are copied to the new revision.").default(false),
  next: z
    .object({
      weight: weight().describe("The weight."),
      mirrored: z.boolean().describe("Whether requests are copied to the new revision.").default(false),
    })
    .describe("Where the requests go next: the checks have passed, and pods, gates or the gateway are waited for.")
    .optional(),
  iterations: count(100_001).describe("How many checks have passed, for Blue/Green and A/B.").default(0),
  failedChecks: count(2_147_483_647).describe("How many checks have failed.").default(0),
  checkedAt: timestamp().describe("When it was last judged.").optional(),
  progressAt: timestamp().describe("When it last got further; progressDeadlineSeconds count from here.").optional(),
  metrics: z
    .array(metric)
    .max(maxMetrics)
    .meta(listAtomic)
    .describe("The last verdict of each metric, in the order of the spec.")
    .default([]),
  gates: z
    .array(gate)
    .max(maxGates)
    .meta(listAtomic)
    .describe("Hooks and approvals that the run waits for or has passed; of those asked again, the last round.")
    .default([]),
  reason: word<Reason>(32).describe("What the run does or waits for, in one word."),
  message: text(512).describe("The same, in a sentence.").default(""),
})

const ended = z.object({
  id: word<string>(32).describe("The run."),
  source: revision.describe("The revision that ran before."),
  target: revision.describe("The revision that was judged."),
  result: word<RunResult>(16).describe("How it ended."),
  reason: word<Reason>(32).describe("Why, in one word."),
  message: plainText(160).describe("The same, in a sentence.").optional(),
  approvedBy: plainText(253).describe("The user that approved the promotion.").optional(),
  startedAt: timestamp().describe("When it started."),
  endedAt: timestamp().describe("When it ended."),
})

/** What the controller reports: Flagger's fields first. */
export const status = z.object({
  phase: word<Phase>(20).describe("Where the Canary is, in one word.").optional(),
  canaryWeight: weight()
    .describe("How many percent of the requests the new revision gets, by the route as it is.")
    .default(0),
  failedChecks: count(2_147_483_647).describe("Failed checks of the run.").default(0),
  iterations: count(100_001).describe("Passed checks of the run, for Blue/Green and A/B.").default(0),
  sessionAffinityCookie: cookie("The cookie of the run, as NAME=VALUE."),
  primarySessionAffinityCookie: cookie("The cookie of the running revision, as NAME=VALUE."),
  previousSessionAffinityCookie: cookie("The cookie of the last run; clients are made to drop it."),
  trackedConfigs: trackedConfigs
    .describe(
      "Checksums of the ConfigMaps and Secrets that the running revision was promoted with, by `configmap/NAME` and `secret/NAME`.",
    )
    .optional(),
  configs: z
    .array(configsRead)
    .max(2)
    .meta(listAtomic)
    .describe("What new pods read: of the running revision, and of the one that is judged.")
    .optional(),
  untrackedConfigs: z
    .array(untracked)
    .max(maxUntrackedConfigs)
    .meta(listAtomic)
    .describe("ConfigMaps and Secrets of the template of which a change is not noticed.")
    .optional(),
  lastAppliedSpec: plainText(64).describe("The checksum of the template that was seen last.").optional(),
  lastPromotedSpec: plainText(64).describe("The checksum of the template that was promoted last.").optional(),
  lastTransitionTime: timestamp().describe("When phase last changed.").optional(),
  rollingState: word<RollingState>(20)
    .describe("With provider oam: how the rollout stands, in the words of OAM.")
    .optional(),
  currentBatch: count(1000)
    .describe(
      "With provider oam, during a rollout: the weight that it is at or goes to, counted from 0; the last is the promotion.",
    )
    .optional(),
  ...statusBase<ConditionType, Reason>({ conditions: 3, message: 512 }),
  run: run.describe("The run that is under way, or the last one while its pods are still there.").optional(),
  history: z.array(ended).max(maxHistory).meta(listAtomic).describe("The last runs, the newest first.").default([]),
})
