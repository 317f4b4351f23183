import type { Explained } from "../explained.ts"
import { readRollouts } from "./reading.ts"

/** Its questions are also about the objects that it stamps, and about manifests: src/cli/commands/why.ts and plan.ts. */
export const explained: Explained = { reading: () => readRollouts() }
