import { z } from "zod"
import { countOrPercent, labelSelector, labelValuePattern, listMap, listSet, rules } from "../../fields.ts"
import { namespaceName } from "../delivery-fields.ts"
import { group } from "../group.ts"
import { imageReference } from "../image-reference.ts"
import { analysis } from "./analysis.ts"
import { maxJudgedTiers, maxTiers } from "./bounds.ts"

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

export const step = z.object({
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
      "Whether pods stay while their image changes. It becomes the annotation autoimagemanager.io/update-strategy of each workload that is stamped. Custom kinds are updated by their own controllers. Unset: the workload's own annotation.",
    )
    .optional(),
  analysis: analysis
    .describe(
      "How each step is judged before the next one begins, and the last one before the tier is complete. Without it: by the health of its objects alone.",
    )
    .optional(),
})

/** What a user writes. */
export const spec = z
  .object({
    target: target.describe("Which objects are stamped."),
    defaultImage: imageReference().describe("The image of every tier that names none.").default(""),
    tiers: z
      .array(tier)
      .max(maxTiers)
      .meta({ ...listMap("upgradeTier"), hint: `write at most ${maxTiers} tiers` })
      .describe("Groups of objects that are upgraded together. Without tiers every object gets defaultImage at once.")
      .default([]),
    analysisNamespace: namespaceName()
      .describe(
        "The namespace on whose behalf tiers are judged: their MetricTemplates and Secrets are there, and what it may connect to is asked. Its author must be able to create Canaries and to patch Services there.",
      )
      .optional(),
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
      .describe("BeforeTier: a tier starts when its image is on the nodes on which the pods of its objects run.")
      .default("Never"),
    preCacheTimeoutSeconds: z
      .int()
      .min(1)
      .max(86_400)
      .meta({ hint: "write seconds, from 1 to 86400 (one day)" })
      .describe("How long preCache may take for the tiers of one priority, from their first request to a node.")
      .default(1800),
    preCacheMissing: z
      .enum(["Wait", "Proceed"])
      .describe(
        "What happens when preCacheTimeoutSeconds are over and a node still lacks an image: Wait halts until it is there, Proceed starts without it.",
      )
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
        rule: "self.target.apiVersion.startsWith('apps/') || self.tiers.all(tier, !has(tier.updateStrategy) || tier.updateStrategy != 'InPlaceOnly')",
        message:
          "custom kinds are updated by their own controllers, never in place: write updateStrategy InPlaceIfPossible or Recreate, or leave it out",
        fieldPath: ".tiers",
      },
      {
        rule: "(has(self.analysisNamespace) && self.analysisNamespace != '') || self.tiers.all(tier, !has(tier.analysis))",
        message:
          "a tier has an analysis, and a ServiceImage is in no namespace: write analysisNamespace, the namespace of its MetricTemplates and Secrets",
        fieldPath: ".analysisNamespace",
      },
      {
        rule: `self.tiers.filter(tier, has(tier.analysis)).size() <= ${maxJudgedTiers}`,
        message: `at most ${maxJudgedTiers} tiers can have an analysis: leave it out of those that come last`,
        fieldPath: ".tiers",
      },
    ),
  )
