import { z } from "zod"
import { count, labels, listSet, rules } from "../fields.ts"
import type { PullFailure } from "./alternateimagesource/reasons.ts"
import { imageReferenceMaxLength, imageReferenceRule } from "./image-reference.ts"

/** What the kinds that bring images to nodes have in common. */

/** Images of one node, and of one list. More do not fit into one object with their status. */
export const maxImages = 256

/** Why a node cannot pull an image: the words of `core/image/pull-failure.ts`. */
export const pullFailureReasons = {
  Unreachable: "The registry cannot be reached, or answers with an error of its own (5xx).",
  TLS: "The registry's certificate cannot be trusted.",
  RateLimited: "The registry refuses more pulls for now (429). Fewer pulls are started at it for a while.",
  NotFound: "The registry does not have the image.",
  Denied: "The registry refuses the credentials (401, 403); name a Secret for it in `pullSecrets`.",
  SignatureRejected: "A signature check of the node's runtime failed.",
  NoPlatform: "The image is not there for the node's architecture.",
  DiskFull:
    "The pull would fill the node's disk over the kubelet's high threshold, above which images are removed; the message has the numbers.",
  Timeout: "The pull took longer than `pullPolicy.timeoutSeconds`, or the registry did not answer in time.",
  UnknownFailure: "The container runtime refused the pull with a message that aim does not know; it is quoted.",
} as const satisfies Record<PullFailure, string>

/** Of one node: so large that no image is larger, and so small that the sum over 8,000 nodes is exact. */
export const maxBytes = 2 ** 40

export const bytes = (maximum: number) => z.int().min(0).max(maximum).meta({ format: "int64" })

export const pullTimeoutSeconds = () =>
  z
    .int()
    .min(1)
    .max(86_400)
    .meta({ hint: "write seconds, from 1 to 86400" })
    .describe("How long one attempt may take.")
    .default(600)

export const backoffLimit = () =>
  z
    .int()
    .min(0)
    .max(100)
    .meta({ hint: "write how often a failed pull is tried again, from 0 to 100" })
    .describe("How often a failed pull is tried again on a node before the node counts as failed.")
    .default(3)

export const imagePullPolicy = () =>
  z
    .enum(["Always", "IfNotPresent"])
    .describe("Always: the registry is asked for the tag even where the node has an image of this name.")
    .default("IfNotPresent")

export const priority = () =>
  z
    .int()
    .min(-1000)
    .max(1000)
    .meta({ hint: "write a number from -1000 to 1000" })
    .describe("Among the pulls of one namespace, the higher goes first. Namespaces take turns.")
    .default(0)

export const sandboxConfig = () =>
  z
    .object({
      labels: labels()
        .meta({ maxProperties: 32 })
        .describe("Labels that the runtime is given with the pull.")
        .optional(),
      annotations: z
        .record(z.string(), z.string().max(1024))
        .meta({ maxProperties: 32 })
        .describe("Annotations that the runtime is given with the pull.")
        .optional(),
    })
    .describe(
      "What the runtime is given beside the image. Of several jobs for one repository on one node, that of the first counts, and none while these are of several namespaces.",
    )

/** An image to pull: unlike an image of a workload, it must be given. */
export const pulledImage = () =>
  z
    .string()
    .min(1)
    .max(imageReferenceMaxLength)
    .meta({ ...rules(imageReferenceRule), hint: "write an image, such as registry.example.com/team/app:v2" })

export const pullSecrets = () =>
  z
    .array(
      z
        .string()
        .min(1)
        .max(253)
        .regex(/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/)
        .meta({ hint: "write the name of a Secret in the same namespace" }),
    )
    .max(16)
    .meta({ ...listSet, hint: "write at most 16 names of Secrets" })
    .describe("Names of Secrets in the same namespace with credentials for the registry.")
    .default([])

const seconds = (what: string) =>
  count(2_147_483_647).meta({ hint: "write seconds, as a whole number" }).describe(what).optional()

const nodeName = () =>
  z
    .string()
    .min(1)
    .max(253)
    .regex(/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/)
    .meta({ hint: "write the name of a node" })

export { nodeName, seconds }
