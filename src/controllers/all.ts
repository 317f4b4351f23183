import type { Controller } from "#runtime/controller.ts"
import { serviceImageController } from "./serviceimage/controller.ts"

/** Every controller of `aim controller`. Their roles are generated from this list too. */
export const controllers: readonly Controller[] = [serviceImageController]
