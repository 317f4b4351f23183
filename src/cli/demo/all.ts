import { canary } from "./canary.ts"
import { inPlace } from "./in-place.ts"
import { prePull } from "./pre-pull.ts"
import { registryOutage } from "./registry-outage.ts"
import { restart } from "./restart.ts"
import type { Story } from "./story.ts"
import { traffic } from "./traffic.ts"
import { upgrade } from "./upgrade.ts"

/** Every story of `aim demo`; the first is the default. */
export const stories: readonly Story[] = [upgrade, canary, registryOutage, restart, prePull, inPlace, traffic]
