import { type NodeImageFacts, readNodeImage } from "#core/pulls/node-facts.ts"
import type { WatchedCache } from "#runtime/cache/cache.ts"
import type { Wiring } from "#runtime/controller.ts"
import type { Pulls } from "../pulls.ts"
import { registryReporter } from "./report.ts"
import { nodeImages } from "./resources.ts"

/** What all nodes share. */
export type World = Pick<Wiring, "client"> & {
  pulls: Pulls
  nodeImages: WatchedCache<NodeImageFacts>
  reportRegistries: (pulls: Pulls) => void
}

/** Jobs that begin on a node at the same moment share one write. */
const gatherMs = 100

export function openWorld(wiring: Wiring, pulls: Pulls): World {
  const cache = wiring.watch<NodeImageFacts>(nodeImages, { project: readNodeImage })
  cache.subscribe(({ key, initial }) => wiring.enqueue(key, { background: initial }))
  pulls.wakeNode = name => wiring.enqueueAfter(name, gatherMs)
  return { client: wiring.client, pulls, nodeImages: cache, reportRegistries: registryReporter(wiring.metrics) }
}
