import { z } from "zod"
import { imageReference } from "../image-reference.ts"

/** The fields a custom kind embeds in its spec to be managed by a ServiceImage. */
export const imageSpec = z.object({
  image: imageReference().describe("The image. The ServiceImage writes it."),
  failureHaltsUpdate: z
    .boolean()
    .describe("True: when this object fails, the rollout stops. Otherwise the failure is counted and ignored.")
    .default(false),
  manuallySpecifiedImage: z.boolean().describe("True: the ServiceImage leaves the image alone.").default(false),
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
