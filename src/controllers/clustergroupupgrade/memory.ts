import type { Instant } from "#lib/instant.ts"
import type { View } from "./snapshot.ts"

/**
 * What only this process knows of a run. Losing it costs looks, and deliveries that change nothing: the ClusterUpgrades
 * hold what matters, and the status holds what the fence needs.
 */
export type Memory = {
  views: Map<string, View>
  /** Clusters that a write may still reach. */
  doubts: Set<string>
  unknowns: Map<string, number>
  sent: Set<string>
  reportedAt: Instant | undefined
  /** Ends the attention to a cluster that is worked on. */
  watched: Map<string, () => void>
}

export const newMemory = (): Memory => ({
  views: new Map(),
  doubts: new Set(),
  unknowns: new Map(),
  sent: new Set(),
  reportedAt: undefined,
  watched: new Map(),
})
