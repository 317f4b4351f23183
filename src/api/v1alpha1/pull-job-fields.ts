import { z } from "zod"
import { countOrPercent, labelSelector, listSet, rules } from "../fields.ts"
import {
  backoffLimit,
  imagePullPolicy,
  nodeName,
  priority,
  pullSecrets,
  pullTimeoutSeconds,
  sandboxConfig,
  seconds,
} from "./pull-fields.ts"

/** What an ImagePullJob and an ImageListPullJob have in common: everything but what is pulled. */

const { matchLabels, matchExpressions } = labelSelector().shape

/** Nodes by name or by labels. */
const nodeSelector = () =>
  z
    .object({
      names: z
        .array(nodeName())
        .min(1)
        .max(5000)
        .meta({ ...listSet, hint: "write at least one name of a node" })
        .describe("Exactly these nodes.")
        .optional(),
      matchLabels,
      matchExpressions,
    })
    .meta(
      rules({
        rule: "!has(self.names) || (!has(self.matchLabels) && !has(self.matchExpressions))",
        message: "write either names or labels",
      }),
    )

const completionPolicy = z
  .object({
    type: z
      .enum(["Always", "Never"])
      .describe("Always: it ends when every node has the image or failed. Never: it goes on for nodes that join later.")
      .default("Always"),
    activeDeadlineSeconds: seconds(
      "The job ends after this long. What is on the nodes stays; a longer deadline lets it go on.",
    ),
    ttlSecondsAfterFinished: seconds("The job is deleted this long after its end."),
  })
  .meta(
    rules(
      {
        rule: "self.type != 'Never' || !has(self.ttlSecondsAfterFinished)",
        message: "a job of type Never does not end: leave ttlSecondsAfterFinished out, or write type: Always",
        fieldPath: ".ttlSecondsAfterFinished",
      },
      {
        rule: "self.type != 'Never' || !has(self.activeDeadlineSeconds)",
        message: "a job of type Never does not end: leave activeDeadlineSeconds out, or write type: Always",
        fieldPath: ".activeDeadlineSeconds",
      },
    ),
  )

export const jobFields = {
  pullSecrets: pullSecrets(),
  selector: nodeSelector()
    .describe("Which nodes, by name or labels. Its author needs the right to create NodeImages.")
    .optional(),
  podSelector: labelSelector().describe("The nodes on which pods of this namespace with these labels run.").optional(),
  parallelism: countOrPercent({ minimum: 0, maximum: 100_000 })
    .describe("On how many nodes at once, as a number or a share of the nodes. 0 pauses the job.")
    .default(1),
  pullPolicy: z
    .object({ timeoutSeconds: pullTimeoutSeconds(), backoffLimit: backoffLimit() })
    .describe("How long and how often a node tries.")
    .prefault({}),
  completionPolicy: completionPolicy.describe("When the job ends.").prefault({}),
  imagePullPolicy: imagePullPolicy(),
  priority: priority(),
  sandboxConfig: sandboxConfig().optional(),
}

/** Rules over several of these fields. */
export const jobRules = [
  {
    rule: "!has(self.selector) || !has(self.podSelector)",
    message: "write either selector or podSelector",
    fieldPath: ".podSelector",
  },
  {
    rule: "!has(self.completionPolicy.activeDeadlineSeconds) || self.completionPolicy.activeDeadlineSeconds >= self.pullPolicy.timeoutSeconds",
    message: "the job would end before one pull may: write at least pullPolicy.timeoutSeconds",
    fieldPath: ".completionPolicy.activeDeadlineSeconds",
  },
]
