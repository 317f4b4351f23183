import { namesOf } from "#api/names.ts"
import type { AlertProvider } from "#api/v1alpha1/alertprovider/index.ts"
import type { Controller } from "#runtime/controller.ts"
import { resourceOf } from "#runtime/resource.ts"
import type { Surroundings } from "../surroundings.ts"
import { usableController } from "../usable.ts"
import { judge } from "./judge.ts"

/** Says of each AlertProvider whether Canaries can send alerts to it. */
export const createAlertProviderController = (surroundings: Surroundings): Controller =>
  usableController<AlertProvider>(
    {
      name: "alertprovider",
      resource: resourceOf(namesOf("AlertProvider")),
      secretOf: ({ spec }) => spec.secretRef?.name,
      judge,
    },
    surroundings,
  )
