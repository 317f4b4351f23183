import type { MetricFactory } from "#runtime/metrics.ts"
import type { Pulls } from "../pulls.ts"
import { nodeImageMetrics } from "./metrics.ts"

/**
 * What the manager reports of NodeImages, whose status is the agent's: how many pulls are under way at each
 * registry. A registry without any has no series.
 */
export function registryReporter(factory: MetricFactory | undefined): (pulls: Pulls) => void {
  const gauge = factory?.gauge({ name: "registry_pulls_in_flight", ...nodeImageMetrics.registry_pulls_in_flight })
  const known = new Set<string>()
  return ({ board }) => {
    if (!gauge) return
    const gone = new Set(known)
    for (const [registry, inFlight] of board.budget.hosts()) {
      known.add(registry)
      gone.delete(registry)
      gauge.set({ registry }, inFlight)
    }
    for (const registry of gone) {
      known.delete(registry)
      gauge.remove({ registry })
    }
  }
}
