import { z } from "zod"
import { ageColumn, messageColumn, readyColumn, reasonColumn } from "../../columns.ts"
import { count, listAtomic, listSet, rules, statusBase, text, timestamp } from "../../fields.ts"
import { defineKind, type ObjectOf } from "../../kind.ts"
import { namesOf } from "../../names.ts"
import { imageReferenceMaxLength } from "../image-reference.ts"
import { maxImages, pulledImage } from "../pull-fields.ts"
import { jobFields, jobRules } from "../pull-job-fields.ts"
import type { ConditionType, Reason } from "./reasons.ts"

export const maxFailedImages = 10

const spec = z
  .object({
    images: z
      .array(pulledImage())
      .min(1)
      .max(maxImages)
      .meta({ ...listSet, hint: `write from 1 to ${maxImages} images, each once` })
      .describe("The images, each with a tag or a digest."),
    ...jobFields,
  })
  .meta(rules(...jobRules))

const failedImage = z.object({
  name: z
    .string()
    .max(imageReferenceMaxLength)
    .regex(/^[!#-%'-;=?-[\]-~]*$/)
    .describe("The image."),
  imagePullJob: z
    .string()
    .max(253)
    .regex(/^[a-z0-9.-]*$/)
    .describe("The job that pulls it."),
  message: text(256).describe("Why it is not on every node.").default(""),
})

const status = z.object({
  ...statusBase<ConditionType, Reason>({ conditions: 2, message: 512 }),
  startTime: timestamp().describe("When the job was first looked at.").optional(),
  completionTime: timestamp().describe("When it ended.").optional(),
  desired: count(maxImages).describe("How many images there are.").default(0),
  active: count(maxImages).describe("How many of their jobs are at work.").default(0),
  completed: count(maxImages).describe("How many of their jobs have ended.").default(0),
  succeeded: count(maxImages).describe("How many images are on every selected node.").default(0),
  failedImageStatuses: z
    .array(failedImage)
    .max(maxFailedImages)
    .meta(listAtomic)
    .describe("Some of the images that are not on every node, and why.")
    .default([]),
})

export const ImageListPullJob = defineKind({
  ...namesOf("ImageListPullJob"),
  description: "An ImageListPullJob brings several images to nodes: one ImagePullJob for each.",
  printerColumns: [
    readyColumn,
    reasonColumn,
    { name: "Total", type: "integer", jsonPath: ".status.desired" },
    { name: "Succeeded", type: "integer", jsonPath: ".status.succeeded" },
    { name: "Completed", type: "integer", jsonPath: ".status.completed" },
    ageColumn,
    messageColumn,
  ],
  spec,
  status,
})

export type ImageListPullJob = ObjectOf<typeof ImageListPullJob>
export type ImageListPullJobSpec = ImageListPullJob["spec"]
export type ImageListPullJobStatus = NonNullable<ImageListPullJob["status"]>
export type Condition = ImageListPullJobStatus["conditions"][number]
