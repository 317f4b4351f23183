import type { Decision } from "#core/canary/decision.ts"
import { decide } from "#core/canary/run.ts"
import type { Seen } from "./observe.ts"

export type Plan = Decision

/** The decision of `core/canary`. What changes the phase is reported before the first write that belongs to it. */
export function plan({ sight, isListed, decision: decided }: Seen): Plan {
  const { phase, run } = sight.canary.status ?? {}
  if (!isListed)
    return { phase, run, asks: { hooks: [] }, reason: "Observing", message: "reading what surrounds the Canary" }
  const decision = decided ?? decide(sight)
  if (decision.phase === phase || decision.act === undefined) return decision
  const { act: _, ...rest } = decision
  return rest
}
