import { z } from "zod"
import { imageReference } from "../image-reference.ts"

/** The fields a custom kind embeds in its spec to be managed by a ServiceImage. */
export const imageSpec = z.object({
  image: imageReference().describe("The container image; written by the ServiceImage unless manuallySpecifiedImage."),
  failureHaltsUpdate: z.boolean().describe("A failure of this object stops the rollout.").default(false),
  manuallySpecifiedImage: z.boolean().describe("Hands off: the image is the user's own.").default(false),
})

/** The conditions a managed kind reports in status.conditions, beside status.observedGeneration. */
export const imageSpecConditions = {
  UpToDate: "Every pod of the object runs what its spec says.",
  Deployed: "The object was available at least once.",
} as const

export type ImageSpec = z.output<typeof imageSpec>
export type ImageSpecCondition = keyof typeof imageSpecConditions

/** The label that names an object's tier. */
export const upgradeTierLabel = "upgrade-tier"
