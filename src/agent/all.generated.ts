// Generated from src/api/names.ts and the folders of the kinds by npm run generate.
import type { Controller } from "#runtime/controller.ts"
import { createPullController } from "./pull/controller.ts"
import { createRecreateController } from "./recreate/controller.ts"
import type { Surroundings } from "./surroundings.ts"

/** What makes the controllers of this program: those of kinds in the order of the kinds, then the others by name. */
export const creators: readonly ((surroundings: Surroundings) => Controller)[] = [
  createPullController,
  createRecreateController,
]
