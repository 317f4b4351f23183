import { namesOf } from "#api/names.ts"
import type { Canary } from "#api/v1alpha1/canary/index.ts"
import { reasons } from "#api/v1alpha1/canary/reasons.ts"
import { resourceOf } from "#runtime/resource.ts"
import type { Explained } from "../explained.ts"
import { explanationOf, ownList } from "../plain.ts"
import { sentencesOf } from "./sentences.ts"

/** A Canary explains itself by its status: what metrics and hooks answered is written there and nowhere else. */
export const explained: Explained = {
  reading: ({ namespace }) => ({ own: ownList(resourceOf(namesOf("Canary")), namespace) }),
  explainer: () => async object => ({
    ...explanationOf(object, reasons),
    details: sentencesOf(object as unknown as Canary),
  }),
}
