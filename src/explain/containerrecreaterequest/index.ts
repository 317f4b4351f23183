import { namesOf } from "#api/names.ts"
import { reasons } from "#api/v1alpha1/containerrecreaterequest/reasons.ts"
import { resourceOf } from "#runtime/resource.ts"
import type { Explained } from "../explained.ts"
import { explanationOf, ownList } from "../plain.ts"

/** A request explains itself by its status: what only the node knows is written there by the agent. */
export const explained: Explained = {
  reading: ({ namespace }) => ({ own: ownList(resourceOf(namesOf("ContainerRecreateRequest")), namespace) }),
  explainer: () => async object => explanationOf(object, reasons),
}
