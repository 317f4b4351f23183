import type { Controller } from "#runtime/controller.ts"
import { createAlternateImageSourceController } from "./alternateimagesource/controller.ts"
import { createServiceImageController, type Surroundings } from "./serviceimage/controller.ts"

/** Every controller of `aim controller`, with what they reach beside the cluster. */
export const controllersWith = (surroundings: Surroundings): readonly Controller[] => [
  createServiceImageController(surroundings),
  createAlternateImageSourceController(surroundings),
]

/** The same without anything beside the cluster. The roles are generated from this list. */
export const controllers = controllersWith({})
