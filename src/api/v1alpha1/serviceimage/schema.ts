import { z } from "zod"
import {
  condition,
  count,
  countOrPercent,
  generation,
  labelSelector,
  labelValuePattern,
  listAtomic,
  listMap,
  listSet,
  plainText,
  rules,
  text,
  timestamp,
  word,
} from "../../fields.ts"
import { defineKind, type ObjectOf } from "../../kind.ts"
import { namesOf } from "../../names.ts"
import { group } from "../group.ts"
import { imageReference, imageReferenceMaxLength } from "../image-reference.ts"
import type { ConditionType, FailureReason, FailureScope, Phase, Reason, State } from "./reasons.ts"

/** More than any fleet we know has; the bounds of the status follow from it. */
export const maxTiers = 64
/** How many writes may be under way at once: the batch of the fencing protocol. */
export const maxInflight = 200
export const maxHistory = 10
export const maxExamplesPerTier = 10
/** How much of a quoted message is kept, and how many are kept over all tiers: one per class of failure. */
export const maxFailureMessage = 160
export const maxFailureMessages = 4
/** Over all tiers: ten examples in each of 64 tiers would fill most of the largest status. */
export const maxExamples = 20
/** Characters of tier names and images over the whole history; the oldest entries lose theirs first. */
export const maxHistoryImageCharacters = 11_264
const maxObjects = 9_999_999

/** Names that every JavaScript object inherits. No kind keeps an image in such a field. */
export const unsafeNames: readonly string[] = ["__proto__", "constructor", "prototype"]

/** Kubernetes' own groups except apps: their kinds have no CustomResourceDefinition that shows what to stamp. */
export const builtInGroups: readonly string[] = [
  ...["autoscaling", "batch", "extensions", "policy"],
  ...[
    "admissionregistration", "apiextensions", "apiregistration", "authentication", "authorization", "certificates",
    "coordination", "discovery", "events", "flowcontrol.apiserver", "internal.apiserver", "networking", "node",
    "rbac.authorization", "resource", "scheduling", "storage", "storagemigration",
  ].map(name => `${name}.k8s.io`), // biome-ignore format: a list of words
]

const tierName = () =>
  z
    .string()
    .max(63)
    .meta(
      rules({
        rule: `self.matches('${labelValuePattern}')`,
        message:
          "a tier is named by a label value: letters, digits, '-', '_' and '.', beginning and ending with a letter or digit",
      }),
    )

const recordedTier = () => z.string().max(63).regex(new RegExp(labelValuePattern))

/** A status must accept whatever a spec once admitted, so only the length is checked. */
const recordedImage = () =>
  z
    .string()
    .max(imageReferenceMaxLength)
    .regex(/^[!#-%'-;=?-[\]-~]*$/)

const target = z
  .object({
    apiVersion: z
      .string()
      .max(253)
      .meta({
        ...rules({
          rule: "self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/v[0-9]+((alpha|beta)[0-9]+)?$')",
          message: "write GROUP/VERSION, such as services.example.com/v1alpha1 or apps/v1",
        }),
        hint: "write GROUP/VERSION, such as services.example.com/v1alpha1 or apps/v1",
      })
      .describe("Group and version of the stamped kind. The version may change later, the group may not."),
    kind: z
      .string()
      .max(63)
      .meta({
        ...rules({
          rule: "self.matches('^[A-Z][A-Za-z0-9]*$')",
          message: "write the kind as in a manifest, such as Dicom or Deployment",
        }),
        hint: "write the kind as in a manifest, such as Dicom or Deployment",
      })
      .describe(
        "A custom kind that follows the ImageSpec contract, or Deployment, StatefulSet or DaemonSet. It cannot change later.",
      ),
    selector: labelSelector().describe("Only objects with these labels. Without it: all of the kind.").optional(),
    namespaceSelector: labelSelector()
      .describe("Only objects in namespaces with these labels. Without it: in all namespaces.")
      .optional(),
    image: z
      .object({
        paths: z
          .array(
            z
              .string()
              .max(256)
              .meta(
                rules(
                  {
                    rule: "self.matches('^spec([.][A-Za-z_][A-Za-z0-9_-]*)+$')",
                    message: "write a path of field names below spec, such as spec.image or spec.sidecar.image",
                  },
                  {
                    rule: `!self.matches('[.](${unsafeNames.join("|")})([.]|$)')`,
                    message: `${unsafeNames.join(", ")} cannot be part of a path: write the field that holds the image, such as spec.image`,
                  },
                ),
              ),
          )
          .min(1)
          .max(16)
          .meta({ ...listSet, hint: "write at least one path, such as spec.image" })
          .describe("For custom kinds: the fields that hold the image. All are stamped.")
          .optional(),
        container: z
          .string()
          .max(63)
          .meta(
            rules({
              rule: "self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
              message: "write the name of a container: lower-case letters, digits and '-'",
            }),
          )
          .describe(
            "For Deployment, StatefulSet and DaemonSet: the container (or init container) whose image is stamped.",
          )
          .optional(),
      })
      .meta(
        rules({
          rule: "has(self.paths) != has(self.container)",
          message: "write either paths (custom kinds) or container (workloads)",
        }),
      )
      .describe("Where the image is in the object.")
      .default({ paths: ["spec.image"] }),
    health: z
      .string()
      .max(2048)
      .meta(
        rules({
          // Without closing parentheses in between, each loop is inside the one before it.
          rule: "!self.matches('([.](all|exists|exists_one|filter|map) *[(][^()]*){4}')",
          message: "at most three loops (all, exists, exists_one, filter, map) may be nested",
        }),
      )
      .describe(
        "For kinds that do not follow the contract: a CEL expression over `object` that is true when the object is up to date, such as `object.status.phase == 'Running'`.",
      )
      .default(""),
  })
  .meta({
    ...rules(
      {
        rule: "self.kind == oldSelf.kind && self.apiVersion.split('/')[0] == oldSelf.apiVersion.split('/')[0]",
        message: "the target's kind and group cannot change; write another ServiceImage for the other kind",
      },
      {
        rule: `self.apiVersion.split('/')[0] != '${group}'`,
        message: `objects of ${group} cannot be stamped: write a custom kind of yours, or Deployment, StatefulSet or DaemonSet of apps/v1`,
      },
      {
        rule: `!(self.apiVersion.split('/')[0] in [${builtInGroups.map(each => `'${each}'`).join(", ")}])`,
        message:
          "of Kubernetes' own kinds, only Deployment, StatefulSet and DaemonSet of apps/v1 can be stamped; any other must be a custom kind",
      },
      {
        rule: "!self.apiVersion.startsWith('apps/') || self.kind in ['Deployment', 'StatefulSet', 'DaemonSet']",
        message: "of the group apps, only Deployment, StatefulSet and DaemonSet can be stamped",
      },
      {
        rule: "!self.apiVersion.startsWith('apps/') || has(self.image.container)",
        message: "a workload's image belongs to a container: write image: {container: NAME}",
      },
      {
        rule: "self.apiVersion.startsWith('apps/') || has(self.image.paths) || !has(self.image.container)",
        message: "container is for Deployment, StatefulSet and DaemonSet: write image: {paths: [spec.image]}",
      },
    ),
    hint: "write which objects are stamped, such as target: {apiVersion: services.example.com/v1alpha1, kind: Dicom}",
  })

const step = z.object({
  percent: z
    .int()
    .min(1)
    .max(100)
    .meta({ hint: "write a whole number from 1 to 100" })
    .describe(
      "The share of the tier's objects that have the image after this step. Steps are nested: 1 % is part of 25 %.",
    ),
  soakSeconds: z
    .int()
    .min(0)
    .max(2_592_000)
    .meta({ hint: "write seconds, from 0 to 2592000 (30 days)" })
    .describe("How long the step must have been up to date before the next one begins.")
    .default(0),
})

const tier = z.object({
  upgradeTier: tierName()
    .describe(
      'Value of the label `upgrade-tier` of the objects in this tier. "" takes every object whose label names no other tier.',
    )
    .default(""),
  image: imageReference().describe("The image of this tier. Empty: defaultImage.").default(""),
  priority: z
    .int32()
    .meta({ format: "int32", hint: "write a whole number from -2147483648 to 2147483647" })
    .describe("Higher goes first; tiers of equal priority run together.")
    .default(0),
  steps: z
    .array(step)
    .max(20)
    .meta({
      ...listMap("percent"),
      ...rules({
        rule: "self.map(step, step.percent).isSorted()",
        message: "steps rise: write the smallest percent first",
      }),
    })
    .describe(
      "Growing shares of the tier, updated one after the other. A last step below 100 is followed by an implicit 100. Without steps: all at once.",
    )
    .optional(),
  maxConcurrent: countOrPercent({ minimum: 1, maximum: 1_000_000 })
    .describe(
      "How many objects may be stamped and not yet done at once; a percentage rounds down, to at least 1. Unset: all.",
    )
    .optional(),
  progressDeadlineSeconds: z
    .int()
    .min(1)
    .max(604_800)
    .meta({ hint: "write seconds, from 1 to 604800 (7 days)" })
    .describe(
      "How long one object may take to become up to date before it counts as failed: after its stamp, or after it regressed.",
    )
    .default(600),
  settleSeconds: z
    .int()
    .min(0)
    .max(86_400)
    .meta({ hint: "write seconds, from 0 (at once) to 86400 (one day)" })
    .describe(
      "How long a stamped object must have been up to date without a break before it counts as done. A workload's minReadySeconds count towards it. 0: at once.",
    )
    .default(10),
  failureBudget: countOrPercent({ minimum: 0, maximum: 1_000_000 })
    .describe("More ignored failures than this halt the rollout; a percentage rounds up. Unset: no limit.")
    .optional(),
  requireApproval: z.boolean().describe("Wait for `aim approve` before the tier starts.").default(false),
  updateStrategy: z
    .enum(["InPlaceIfPossible", "InPlaceOnly", "Recreate"])
    .describe(
      "For plain workloads: whether pods keep running while their image changes. Unset: the workload's own strategy.",
    )
    .optional(),
})

const spec = z
  .object({
    target: target.describe("Which objects are stamped."),
    defaultImage: imageReference().describe("The image of every tier that names none.").default(""),
    tiers: z
      .array(tier)
      .max(maxTiers)
      .meta({ ...listMap("upgradeTier"), hint: `write at most ${maxTiers} tiers` })
      .describe("Groups of objects that are upgraded together. Without tiers every object gets defaultImage at once.")
      .default([]),
    paused: z.boolean().describe("Stop stamping, keep reporting.").default(false),
    pace: z
      .object({
        podsPerSecond: z
          .int()
          .min(0)
          .max(100_000)
          .meta({ hint: "write a whole number from 0 (no limit) to 100000" })
          .describe("Pods disturbed per second over the whole rollout. 0: no limit.")
          .default(10),
      })
      .describe("How fast the rollout may go.")
      .prefault({}),
    onFailure: z
      .enum(["Halt", "Rollback"])
      .describe("What a failed rollout does: Halt stops it, Rollback undoes what it changed, in reverse order.")
      .default("Halt"),
    resolveDigest: z
      .enum(["Never", "AtStart"])
      .describe("AtStart: tags are resolved once when the rollout starts, so that every tier gets the same bits.")
      .default("Never"),
    preCache: z
      .enum(["Never", "BeforeTier"])
      .describe("BeforeTier: images reach the nodes before a tier starts.")
      .default("Never"),
    preCacheTimeoutSeconds: z
      .int()
      .min(1)
      .max(86_400)
      .meta({ hint: "write seconds, from 1 to 86400 (one day)" })
      .describe("How long preCache may take.")
      .default(1800),
    preCacheMissing: z
      .enum(["Wait", "Proceed"])
      .describe("What happens when preCacheTimeoutSeconds are over and a node still lacks an image.")
      .default("Wait"),
    serialize: z
      .enum(["Allow", "Warn", "Enforce"])
      .describe("What happens to a change of target or images while an operation is in progress.")
      .default("Warn"),
  })
  .meta(
    rules(
      {
        rule: "self.tiers.size() > 0 || self.defaultImage != ''",
        message: "without tiers, defaultImage is required: write defaultImage: REPOSITORY:TAG",
        fieldPath: ".defaultImage",
      },
      {
        rule: "self.defaultImage != '' || self.tiers.all(tier, tier.image != '')",
        message: "a tier has no image: write image in each tier, or defaultImage for the tiers without one",
        fieldPath: ".tiers",
      },
      {
        // Objects of no tier then form a tier of their own, and the status has room for 64.
        rule: `self.tiers.size() < ${maxTiers} || self.defaultImage == '' || self.tiers.exists(tier, tier.upgradeTier == '')`,
        message: `${maxTiers} tiers leave no room for objects of no tier: give one of them upgradeTier ""`,
        fieldPath: ".tiers",
      },
      {
        rule: "self.target.apiVersion.startsWith('apps/') || self.tiers.all(tier, !has(tier.updateStrategy))",
        message: "updateStrategy is for Deployment, StatefulSet and DaemonSet: leave it out for custom kinds",
        fieldPath: ".tiers",
      },
    ),
  )

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

const status = z.object({
  observedGeneration: generation().describe("The metadata.generation this status is about.").default(0),
  conditions: z
    .array(condition<ConditionType, Reason>(text(256)))
    .max(9)
    .meta(listMap("type"))
    .describe("The answers to the questions below.")
    .default([]),
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
      ),
    })
    .describe("Each tier.")
    .default([]),
  unmatched: count(maxObjects).describe("Objects of the target that belong to no tier and are left alone.").default(0),
  lostPods: count(maxObjects)
    .describe("Pods on nodes that no longer answer. They may still run another image than their object's.")
    .default(0),
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

export const ServiceImage = defineKind({
  ...namesOf("ServiceImage"),
  description: "A ServiceImage says which image a set of objects runs and rolls it out to them, tier by tier.",
  printerColumns: [
    { name: "Ready", type: "string", jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
    { name: "State", type: "string", jsonPath: ".status.state" },
    { name: "Progress", type: "string", jsonPath: ".status.progress" },
    { name: "Priority", type: "integer", jsonPath: ".status.currentPriority" },
    { name: "Image", type: "string", jsonPath: ".status.image" },
    { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp" },
    { name: "Kind", type: "string", jsonPath: ".spec.target.kind", priority: 1 },
    { name: "Reason", type: "string", jsonPath: '.status.conditions[?(@.type=="Ready")].reason', priority: 1 },
    { name: "Message", type: "string", jsonPath: '.status.conditions[?(@.type=="Ready")].message', priority: 1 },
  ],
  spec,
  status,
})

export type ServiceImage = ObjectOf<typeof ServiceImage>
export type ServiceImageSpec = ServiceImage["spec"]
export type ServiceImageStatus = NonNullable<ServiceImage["status"]>
export type Target = ServiceImageSpec["target"]
export type Tier = ServiceImageSpec["tiers"][number]
export type Step = z.output<typeof step>
export type TierStatus = ServiceImageStatus["tierStatus"][number]
export type Failure = TierStatus["failures"][number]
export type Operation = NonNullable<ServiceImageStatus["operation"]>
export type HistoryEntry = ServiceImageStatus["history"][number]
export type Condition = ServiceImageStatus["conditions"][number]
/** What a user may write: fields with a default may be left out. */
export type ServiceImageSpecInput = z.input<typeof spec>
