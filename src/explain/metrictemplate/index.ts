import { namesOf } from "#api/names.ts"
import { reasons } from "#api/v1alpha1/metrictemplate/reasons.ts"
import { resourceOf } from "#runtime/resource.ts"
import type { Explained } from "../explained.ts"
import { explanationOf, ownList } from "../plain.ts"

/** Explained by its conditions. */
export const explained: Explained = {
  reading: ({ namespace }) => ({ own: ownList(resourceOf(namesOf("MetricTemplate")), namespace) }),
  explainer: () => async object => explanationOf(object, reasons),
}
