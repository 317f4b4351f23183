// Generated from src/api/names.ts and the folders of the kinds by npm run generate.
import type { Controller } from "#runtime/controller.ts"
import { createServiceImageController } from "./serviceimage/controller.ts"
import { createAlternateImageSourceController } from "./alternateimagesource/controller.ts"
import { createContainerRecreateRequestController } from "./containerrecreaterequest/controller.ts"
import { createNodeImageController } from "./nodeimage/controller.ts"
import { createImagePullJobController } from "./imagepulljob/controller.ts"
import { createImageListPullJobController } from "./imagelistpulljob/controller.ts"
import { createCanaryController } from "./canary/controller.ts"
import { createMetricTemplateController } from "./metrictemplate/controller.ts"
import { createAlertProviderController } from "./alertprovider/controller.ts"
import { createInPlaceController } from "./in-place/controller.ts"
import type { Surroundings } from "./surroundings.ts"

/** What makes the controllers of this program: those of kinds in the order of the kinds, then the others by name. */
export const creators: readonly ((surroundings: Surroundings) => Controller)[] = [
  createServiceImageController,
  createAlternateImageSourceController,
  createContainerRecreateRequestController,
  createNodeImageController,
  createImagePullJobController,
  createImageListPullJobController,
  createCanaryController,
  createMetricTemplateController,
  createAlertProviderController,
  createInPlaceController,
]
