import type { z } from "zod"
import { ageColumn, messageColumn, readyColumn, reasonColumn } from "../../columns.ts"
import { defineKind, type ObjectOf } from "../../kind.ts"
import { namesOf } from "../../names.ts"
import { spec, type step } from "./spec.ts"
import { status } from "./status.ts"

export const ServiceImage = defineKind({
  ...namesOf("ServiceImage"),
  description: "A ServiceImage says which image a set of objects runs and rolls it out to them, tier by tier.",
  printerColumns: [
    readyColumn,
    { name: "State", type: "string", jsonPath: ".status.state" },
    { name: "Progress", type: "string", jsonPath: ".status.progress" },
    { name: "Priority", type: "integer", jsonPath: ".status.currentPriority" },
    { name: "Image", type: "string", jsonPath: ".status.image" },
    ageColumn,
    { name: "Kind", type: "string", jsonPath: ".spec.target.kind", priority: 1 },
    { ...reasonColumn, priority: 1 },
    messageColumn,
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
export type TierAnalysis = NonNullable<Tier["analysis"]>
export type OldEndpoints = NonNullable<ServiceImageStatus["oldEndpoints"]>
export type TierAnalysisStatus = NonNullable<TierStatus["analysis"]>
export type Failure = TierStatus["failures"][number]
export type Operation = NonNullable<ServiceImageStatus["operation"]>
export type HistoryEntry = ServiceImageStatus["history"][number]
export type Condition = ServiceImageStatus["conditions"][number]
/** What a user may write: fields with a default may be left out. */
export type ServiceImageSpecInput = z.input<typeof spec>
