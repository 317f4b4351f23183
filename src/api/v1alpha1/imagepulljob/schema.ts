import { z } from "zod"
import { ageColumn, readyColumn, reasonColumn } from "../../columns.ts"
import { count, listAtomic, plainText, rules, statusBase, text, timestamp, word } from "../../fields.ts"
import { defineKind, type ObjectOf } from "../../kind.ts"
import { namesOf } from "../../names.ts"
import { bytes, pulledImage } from "../pull-fields.ts"
import { jobFields, jobRules } from "../pull-job-fields.ts"
import type { ConditionType, Reason } from "./reasons.ts"

/** So that the status of a job over thousands of nodes stays small. */
export const maxFailedNodes = 10

const spec = z
  .object({
    image: pulledImage().describe("The image, with a tag or a digest."),
    ...jobFields,
  })
  .meta(rules(...jobRules))

const failedNode = z.object({
  name: z
    .string()
    .max(253)
    .regex(/^[a-z0-9.-]*$/)
    .describe("The node."),
  reason: word<Reason>(32).describe("Why, in one word."),
  message: text(256).describe("The same, in a sentence.").default(""),
})

const status = z.object({
  ...statusBase<ConditionType, Reason>({ conditions: 2, message: 512 }),
  startTime: timestamp().describe("When the job was first looked at.").optional(),
  completionTime: timestamp().describe("When it ended.").optional(),
  desired: count(100_000).describe("How many nodes are selected.").default(0),
  active: count(100_000).describe("How many are pulling.").default(0),
  succeeded: count(100_000).describe("How many have the image.").default(0),
  failed: count(100_000).describe("How many failed.").default(0),
  transfer: z
    .object({
      doneBytes: bytes(Number.MAX_SAFE_INTEGER).describe("Bytes that were fetched."),
      totalBytes: bytes(Number.MAX_SAFE_INTEGER)
        .describe("Bytes of all layers whose transfer has begun; absent where one is not known.")
        .optional(),
      nodes: count(100_000).describe("Nodes that report bytes. A short pull reports none."),
      sharedNodes: count(100_000)
        .describe("Those of them whose bytes are of this pull and of others of the node, together.")
        .default(0),
    })
    .describe("What the nodes that pull have fetched so far, on containerd. Nodes that have the image are not in it.")
    .optional(),
  failedNodes: z
    .array(failedNode)
    .max(maxFailedNodes)
    .meta(listAtomic)
    .describe("Some of the nodes that failed, and why; behind them, nodes that have failed and try again.")
    .default([]),
  message: text(512).describe("How it stands, in a sentence.").default(""),
  summary: plainText(64).describe("Nodes that have the image, of those selected.").default(""),
})

export const ImagePullJob = defineKind({
  ...namesOf("ImagePullJob"),
  description: "An ImagePullJob brings an image to nodes before a pod needs it.",
  printerColumns: [
    readyColumn,
    reasonColumn,
    { name: "Total", type: "integer", jsonPath: ".status.desired" },
    { name: "Active", type: "integer", jsonPath: ".status.active" },
    { name: "Succeed", type: "integer", jsonPath: ".status.succeeded" },
    { name: "Failed", type: "integer", jsonPath: ".status.failed" },
    ageColumn,
    { name: "Message", type: "string", jsonPath: ".status.message", priority: 1 },
  ],
  spec,
  status,
})

export type ImagePullJob = ObjectOf<typeof ImagePullJob>
export type ImagePullJobSpec = ImagePullJob["spec"]
export type ImagePullJobStatus = NonNullable<ImagePullJob["status"]>
export type FailedNode = ImagePullJobStatus["failedNodes"][number]
export type Condition = ImagePullJobStatus["conditions"][number]
