import type { Controller } from "#runtime/controller.ts"
import { creators } from "./all.generated.ts"
import type { Surroundings } from "./surroundings.ts"

/** Every controller of `aim controller`, with what they reach beside the cluster. */
export const controllersWith = (surroundings: Surroundings): readonly Controller[] =>
  creators.map(create => create(surroundings))

/** The same without anything beside the cluster. The roles are generated from this list. */
export const controllers = controllersWith({})
