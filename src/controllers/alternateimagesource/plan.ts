import type { AlternateImageSource } from "#api/v1alpha1/alternateimagesource/index.ts"
import { earliest, type Instant } from "#lib/instant.ts"
import { decide } from "./decide.ts"
import { crashEndsAt, type Decision, type Group, type Probe } from "./group.ts"
import type { Scene } from "./sources.ts"

/** Everything a decision is made from. */
export type Snapshot = {
  source: AlternateImageSource
  /** What the source looks after. Nothing is concluded from incomplete lists. */
  seen: { is: "Listing"; forbidden: readonly string[] } | { is: "TooMany" } | ({ is: "Watched" } & Scene)
  /** The server refused the last write, and when to try again. */
  refusal: Group["refusal"]
  /** The answer of a registry about an image of this group. */
  probe(group: Group, image: string): Probe | undefined
  now: Instant
}

export type Plan = {
  /** One for each container that cannot be pulled, or could not. */
  decisions: readonly Decision[]
  lookAgainAt?: Instant | undefined
}

/** How soon to look again at incomplete lists. Their completion wakes us too. */
const listingMs = 5000

/** Decides about every container that one AlternateImageSource looks after. */
export function plan(snapshot: Snapshot): Plan {
  const { seen, now } = snapshot
  if (seen.is === "Listing") return { decisions: [], lookAgainAt: now + listingMs }
  if (seen.is === "TooMany") return { decisions: [] }
  const decisions = seen.groups.map(group => decideOn(snapshot, group))
  const times = decisions.flatMap(({ lookAgainAt, group }) => [lookAgainAt, crashEndsAt(group, now)])
  return { decisions, lookAgainAt: earliest(...times) }
}

/** Decides about one container. */
export function decideOn({ source, refusal, probe, now }: Omit<Snapshot, "seen">, group: Group): Decision {
  const before = source.status?.targetsAvailable.find(
    entry => entry.uid === group.workload.uid && entry.container === group.container,
  )
  const { policy } = source.spec
  return decide({ ...group, refusal }, { policy, before, probe: image => probe(group, image), now })
}
