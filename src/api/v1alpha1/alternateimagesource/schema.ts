import { z } from "zod"
import { ageColumn, messageColumn, readyColumn, reasonColumn } from "../../columns.ts"
import {
  count,
  labelSelector,
  labels,
  listAtomic,
  listSet,
  plainText,
  rules,
  statusBase,
  timestamp,
  word,
} from "../../fields.ts"
import { defineKind, type ObjectOf } from "../../kind.ts"
import { namesOf } from "../../names.ts"
import { repository, repositoryMaxLength } from "../image-reference.ts"
import type { ConditionType, PullFailure, Reason } from "./reasons.ts"

/** More workloads of a namespace than a person would list by hand. */
const maxTargets = 64
const maxReplacements = 32
const maxRepositories = 16
/** Containers listed in the status; those with an incident or a switch come first. */
export const maxTargetsAvailable = 200
export const maxSwitches = 10
/** Over all containers, so that the largest status stays small. */
export const maxSwitchesInAll = 200
/** Characters of names, repositories, images and labels over all containers: 600 for each. */
export const maxCharactersInAll = 120_000
/** The longest name, tag and digest that a node would pull. */
const recordedImageMaxLength = repositoryMaxLength + ":".length + 128 + "@sha512:".length + 128

const kindWord = () =>
  z
    .string()
    .min(1)
    .max(63)
    .regex(/^[A-Za-z0-9]*$/)
    .meta({ hint: "write a kind, such as deployment, statefulset, daemonset, job, cronjob or pod" })

const targetType = z.object({
  group: z
    .string()
    .max(253)
    .regex(/^[A-Za-z0-9./-]*$/)
    .meta({ hint: "write an API group, such as apps" })
    .describe("The API group, such as apps; may be left out.")
    .default(""),
  kind: kindWord().describe(
    "The kind, in any case: deployment, statefulset, daemonset, replicaset, job, cronjob, pod, or a custom kind that owns them.",
  ),
})

const target = z
  .object({
    type: targetType.describe("Which kind of workload."),
    name: z
      .string()
      .min(1)
      .max(253)
      .regex(/^[a-z0-9.-]*$/)
      .meta({ hint: "write the name of a workload in the same namespace" })
      .describe("Its name.")
      .optional(),
    labelSelector: labelSelector().describe("Instead of a name: workloads with these labels.").optional(),
    container: z
      .string()
      .max(63)
      .regex(/^[a-z0-9-]*$/)
      .meta({ hint: "write the name of a container" })
      .describe("Only this container. Without it: each whose image matches.")
      .optional(),
  })
  .meta(
    rules({
      rule: "has(self.name) != has(self.labelSelector)",
      message: "write either name or labelSelector",
    }),
  )

const spec = z.object({
  imageSourceReplacements: z
    .array(
      z.object({
        equivalentRepositories: z
          .array(repository())
          .min(1)
          .max(maxRepositories)
          .meta({ ...listSet, hint: "write at least two repositories that hold the same images" })
          .describe("Repositories that hold the same images under the same tags, the preferred one first."),
        targets: z
          .array(target)
          .max(maxTargets)
          .meta(listAtomic)
          .describe("Which workloads. Without it: every workload of the namespace whose image matches.")
          .optional(),
      }),
    )
    .max(maxReplacements)
    .meta({ ...listAtomic, hint: "write at least one set: imageSourceReplacements: [{equivalentRepositories: […]}]" })
    .describe("Sets of equivalent repositories, and the workloads they are for."),
  policy: z
    .object({
      apply: z
        .enum(["Pod", "Template"])
        .describe("Pod: repair the failing pods and leave their workload as it is. Template: change the workload too.")
        .default("Pod"),
      onAuthError: z
        .enum(["Ignore", "Switch"])
        .describe(
          "Whether refused credentials (401, 403) are a reason to switch. Switching may hide that they expired.",
        )
        .default("Ignore"),
      requireSameDigest: z
        .enum(["Always", "IfKnown", "Never"])
        .describe("Whether the other repository must have the same bits: IfKnown compares with what was seen running.")
        .default("IfKnown"),
      switchBack: z
        .enum(["Never", "WhenHealthy"])
        .describe("WhenHealthy: pods that have not started go back to the first repository once it serves again.")
        .default("Never"),
      confirmSeconds: z
        .int()
        .min(0)
        .max(3600)
        .meta({ hint: "write seconds, from 0 to 3600" })
        .describe(
          "How long a failure must last if aim cannot confirm it: the repository does not fail for aim as it did for the kubelet, or may not be asked. Rate limits count at once.",
        )
        .default(20),
      cooldownSeconds: z
        .int()
        .min(0)
        .max(86_400)
        .meta({ hint: "write seconds, from 0 to 86400" })
        .describe("How long a container stays where it was switched to before it may be switched again.")
        .default(60),
      templateShare: z
        .string()
        .max(4)
        .regex(/^([1-9][0-9]?|100)%$/)
        .meta({ hint: 'write a percentage from "1%" to "100%"' })
        .describe("With apply: Template, the share of a workload's pods that must fail before the workload is changed.")
        .default("50%"),
      overrideGitOps: z
        .boolean()
        .describe("With apply: Template, change a workload even if GitOps owns it.")
        .default(false),
      disabledRepositories: z
        .array(repository())
        .max(maxRepositories)
        .meta(listSet)
        .describe("Repositories that are still recognised, and never switched to.")
        .default([]),
    })
    .describe("How careful to be.")
    .prefault({}),
})

const image = () =>
  z
    .string()
    .max(recordedImageMaxLength)
    .regex(/^[!#-%'-;=?-[\]-~]*$/)

const recordedRepository = () =>
  z
    .string()
    .max(repositoryMaxLength)
    .regex(/^[!#-%'-;=?-[\]-~]*$/)

const recordedName = () =>
  z
    .string()
    .max(253)
    .regex(/^[a-z0-9.-]*$/)

const switched = z.object({
  oldImage: image().describe("What could not be pulled."),
  newImage: image().describe("What is pulled instead."),
  time: timestamp().describe("When."),
  reason: word<PullFailure | "SwitchedBack">(24).describe("Why.").optional(),
  pods: count(99_999).describe("How many pods it concerned at that moment.").optional(),
})

const incident = z.object({
  since: timestamp().describe("When the first pull failed."),
  reason: word<Reason>(24).describe("Why it failed, or what aim waits for."),
  image: image().describe("The image its workload names."),
  failing: recordedRepository().describe("The repository of that image, as it is written there."),
  working: recordedRepository().describe("Where new pods pull from while the incident lasts.").optional(),
  pin: z
    .string()
    .max(135)
    .regex(/^[a-z0-9:]*$/)
    .describe("With requireSameDigest: Always, the digest that is written behind the image there.")
    .optional(),
  bad: z
    .array(recordedRepository())
    .max(maxRepositories)
    .meta(listAtomic)
    .describe("Repositories that could not serve the image in this incident; not tried again before it is over.")
    .default([]),
  attempts: count(999).describe("How often no repository could serve the image.").default(0),
  tryAgainAt: timestamp().describe("Repositories are not asked again before this.").optional(),
  healthySince: timestamp()
    .describe("With switchBack: since when the failing repository answers well again.")
    .optional(),
  matchLabels: labels()
    .meta({ maxProperties: 8 })
    .describe("Labels by which the workload's pods are known at creation.")
    .optional(),
})

const targetAvailable = z.object({
  container: z
    .string()
    .max(63)
    .regex(/^[a-z0-9-]*$/)
    .describe("The container."),
  currentRepository: recordedRepository().describe("Where its image comes from."),
  name: recordedName().describe("The workload."),
  type: z
    .object({
      group: recordedName().describe("The API group.").default(""),
      kind: z
        .string()
        .max(63)
        .regex(/^[a-z0-9]*$/)
        .describe("The kind, in lower case."),
    })
    .describe("What the workload is."),
  uid: z
    .string()
    .max(64)
    .regex(/^[A-Za-z0-9-]*$/)
    .describe("Which one: a new workload of the same name starts without history."),
  switches: z
    .array(switched)
    .max(maxSwitches)
    .meta(listAtomic)
    .describe("The last switches, the oldest first.")
    .optional(),
  incident: incident.describe("A failure that is not over.").optional(),
})

/** The characters of one container that count towards the bound over all containers. */
const charactersOfTarget = [
  "target.container.size() + target.currentRepository.size() + target.name.size()",
  "target.type.group.size() + target.type.kind.size()",
  "(has(target.switches) ? target.switches.map(each, each.oldImage.size() + each.newImage.size()).sum() : 0)",
  "(has(target.incident) ? target.incident.image.size() + target.incident.failing.size() : 0)",
  "(has(target.incident) && has(target.incident.working) ? target.incident.working.size() : 0)",
  "(has(target.incident) && has(target.incident.pin) ? target.incident.pin.size() : 0)",
  "(has(target.incident) ? target.incident.bad.map(each, each.size()).sum() : 0)",
  "(has(target.incident) && has(target.incident.matchLabels) ? target.incident.matchLabels.map(key, key.size() + target.incident.matchLabels[key].size()).sum() : 0)",
].join(" + ")

const status = z.object({
  ...statusBase<ConditionType, Reason>({ conditions: 4, message: 256 }),
  targetsAvailable: z
    .array(targetAvailable)
    .max(maxTargetsAvailable)
    .meta({
      ...listAtomic,
      ...rules(
        {
          rule: `self.map(target, has(target.switches) ? target.switches.size() : 0).sum() <= ${maxSwitchesInAll}`,
          message: `a status lists at most ${maxSwitchesInAll} switches`,
        },
        {
          rule: `self.map(target, ${charactersOfTarget}).sum() <= ${maxCharactersInAll}`,
          message: `a status holds at most ${maxCharactersInAll} characters of names, repositories, images and labels`,
        },
      ),
    })
    .describe("Containers that this object looks after; where there are too many, those with a failure come first.")
    .default([]),
  targets: count(99_999).describe("How many containers it looks after.").default(0),
  switched: count(99_999).describe("How many of them run from elsewhere now.").default(0),
  incidents: count(99_999).describe("How many cannot be pulled from where their workload says.").default(0),
  summary: plainText(64).describe("Switched and incidents, as text for people.").default(""),
})

export const AlternateImageSource = defineKind({
  ...namesOf("AlternateImageSource"),
  description:
    "An AlternateImageSource says which repositories hold the same images. When one fails, containers are pulled from the next.",
  printerColumns: [
    readyColumn,
    reasonColumn,
    { name: "Targets", type: "integer", jsonPath: ".status.targets" },
    { name: "Switched", type: "integer", jsonPath: ".status.switched" },
    { name: "Incidents", type: "integer", jsonPath: ".status.incidents" },
    ageColumn,
    messageColumn,
  ],
  spec,
  status,
})

export type AlternateImageSource = ObjectOf<typeof AlternateImageSource>
export type AlternateImageSourceSpec = AlternateImageSource["spec"]
export type AlternateImageSourceStatus = NonNullable<AlternateImageSource["status"]>
export type Replacement = AlternateImageSourceSpec["imageSourceReplacements"][number]
export type Target = NonNullable<Replacement["targets"]>[number]
export type Policy = AlternateImageSourceSpec["policy"]
export type TargetAvailable = AlternateImageSourceStatus["targetsAvailable"][number]
export type Incident = NonNullable<TargetAvailable["incident"]>
export type Switch = NonNullable<TargetAvailable["switches"]>[number]
export type Condition = AlternateImageSourceStatus["conditions"][number]
