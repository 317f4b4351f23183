import { z } from "zod"
import { ageColumn, messageColumn, readyColumn, reasonColumn } from "../../columns.ts"
import { countOrPercent, labels, listAtomic, listSet, rules, statusBase } from "../../fields.ts"
import { defineKind, type ObjectOf } from "../../kind.ts"
import { group, version } from "../group.ts"
import { maxImages, pulledImage } from "../pull-fields.ts"
import type { ConditionType, Reason } from "./reasons.ts"

const images = (what: string) =>
  z
    .array(pulledImage())
    .max(maxImages)
    .meta({ ...listSet, hint: `write at most ${maxImages} images, each once` })
    .describe(what)
    .default([])

const spec = z.object({
  overrides: z
    .object({ images: images("Instead of the images that the upgrades name.") })
    .describe("What is pre-cached instead of what is derived.")
    .prefault({}),
  additionalImages: images("Images beside them. No pattern excludes these."),
  excludePrecachePatterns: z
    .array(z.string().min(1).max(256))
    .max(64)
    .meta({ ...listAtomic, hint: "write at most 64 patterns" })
    .describe("RE2 expressions; a derived image with a match in its reference is left out.")
    .default([]),
  spaceRequired: z
    .string()
    .max(32)
    .meta(
      rules({
        rule: "self.matches('^[1-9][0-9]{0,5} ?(GiB|GB)$')",
        message: "write a size in GiB or GB, such as 35 GiB",
      }),
    )
    .describe("How much space a node must have, such as 35 GiB. Unset: what the layers need that a node lacks.")
    .optional(),
  nodeSelector: labels().meta({ maxProperties: 32 }).describe("Only nodes with these labels. Unset: all.").optional(),
  parallelism: countOrPercent({ minimum: 1, maximum: 5000 })
    .describe("On how many nodes of a cluster at once, as a number or a share of its nodes.")
    .default("10%"),
  timeoutMinutes: z
    .int()
    .min(1)
    .max(10_080)
    .meta({ hint: "write minutes, from 1 to 10080 (a week)" })
    .describe("How long one attempt may take on a cluster.")
    .default(240),
  maxAttempts: z
    .int()
    .min(1)
    .max(100)
    .meta({ hint: "write how often pre-caching may begin on a cluster, from 1 to 100" })
    .describe("How often pre-caching may begin on a cluster.")
    .default(3),
})

// Not registered in src/api/names.ts before its controller is there: a definition without one must not be installed.
export const PreCachingConfig = defineKind({
  group,
  version,
  kind: "PreCachingConfig",
  plural: "precachingconfigs",
  scope: "Namespaced",
  shortNames: ["pcc"],
  description: "A PreCachingConfig says which images ClusterGroupUpgrades bring to nodes beforehand, and how.",
  printerColumns: [readyColumn, reasonColumn, ageColumn, messageColumn],
  spec,
  status: z.object(statusBase<ConditionType, Reason>({ conditions: 1, message: 512 })),
})

export type PreCachingConfig = ObjectOf<typeof PreCachingConfig>
export type PreCachingConfigSpec = PreCachingConfig["spec"]
