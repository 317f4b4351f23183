import type { Explained } from "../explained.ts"
import { readSources } from "./reading.ts"

/** Its questions are also about pods: src/cli/why-sources.ts and plan-sources.ts. */
export const explained: Explained = { reading: readSources }
