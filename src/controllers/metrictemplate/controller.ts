import { namesOf } from "#api/names.ts"
import type { MetricTemplate } from "#api/v1alpha1/metrictemplate/index.ts"
import type { Controller } from "#runtime/controller.ts"
import { resourceOf } from "#runtime/resource.ts"
import type { Surroundings } from "../surroundings.ts"
import { usableController } from "../usable.ts"
import { judge } from "./judge.ts"

/** Says of each MetricTemplate whether Canaries can measure with it. */
export const createMetricTemplateController = (surroundings: Surroundings): Controller =>
  usableController<MetricTemplate>(
    {
      name: "metrictemplate",
      resource: resourceOf(namesOf("MetricTemplate")),
      secretOf: ({ spec }) => spec.provider.secretRef?.name,
      judge,
    },
    surroundings,
  )
