import type { View } from "#web/wire.ts"
import { canary } from "./canary/index.ts"
import type { KindView } from "./kind-view.ts"
import { plain } from "./plain/index.ts"
import { pull } from "./pull/index.ts"
import { recreate } from "./recreate/index.ts"
import { rollout } from "./rollout/index.ts"
import { source } from "./source/index.ts"
import { workload } from "./workload/index.ts"

/** Every view of the page, in one list. */
const views: Record<View, KindView> = { rollout, source, canary, workload, pull, recreate, plain }

/** A server that is newer than the page may name a view that the page does not know. */
export const viewOf = (view: View): KindView => views[view] ?? plain
