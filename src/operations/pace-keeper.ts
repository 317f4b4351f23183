import { countOf } from "#core/fleet/tiers.ts"
import type { Clock } from "#runtime/clock.ts"
import { addSample, type Outlook, outlook, type Sample } from "./rate.ts"
import { isGoing, type Rollout, type TierProgress } from "./rollout.ts"

/** Remembers the progress of each tier, for its rate. A new operation starts over. */
export function paceKeeper(clock: Pick<Clock, "now">) {
  const kept = new Map<string, Map<string, Sample[]>>()
  const keyOf = ({ operation }: Rollout, { tier }: TierProgress) => `${operation?.id}/${tier}`
  return {
    note(rollout: Rollout) {
      const before = kept.get(rollout.name)
      const next = new Map<string, Sample[]>()
      for (const tier of rollout.tiers) {
        const key = keyOf(rollout, tier)
        // Time in which a tier was idle does not count for its rate.
        const samples = isGoing(tier) ? (before?.get(key) ?? []) : []
        next.set(key, addSample(samples, { at: clock.now(), done: tier.upToDate }))
      }
      kept.set(rollout.name, next)
    },
    forget: (name: string) => kept.delete(name),
    outlooks:
      (rollout: Rollout) =>
      (tier: TierProgress): Outlook => {
        const aim = tier.step ? countOf(`${tier.step.percent}%`, tier.total) : tier.total
        const samples = kept.get(rollout.name)?.get(keyOf(rollout, tier)) ?? []
        return outlook(samples, { left: aim - tier.upToDate, now: clock.now() })
      },
  }
}

export type PaceKeeper = ReturnType<typeof paceKeeper>
