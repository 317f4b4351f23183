import { maxInflight, type Reason } from "#api/v1alpha1/serviceimage/index.ts"
import type { Candidate } from "#core/fleet/fleet.ts"
import { countOf } from "#core/fleet/tiers.ts"
import { sameImage } from "#core/image/reference.ts"
import type { JudgedTier } from "./judge.ts"
import { shareOut } from "./trust.ts"

/** One object gets an image, provided it still is what the decision was made from. */
export type Stamp = Pick<Candidate, "key" | "member" | "to" | "pods"> & { do: "stamp"; reason: Reason }

/**
 * What our protocol with other leaders knows. An object may be written only at the version that was read before the
 * intent to write it was put into the status: see docs/decisions/0007-the-fence.md.
 */
export type Fence = {
  electionID: string
  /** Objects whose intent is declared, with the version read before that. */
  declared: ReadonlyMap<string, string>
  /** The status was written a moment ago, so that neither spec nor leader can have changed long since. */
  isFresh: boolean
  /** Objects that a write may still be on its way to: not to be judged or stamped before they were touched. */
  unsure: ReadonlySet<string>
  /** Objects that a write of ours is under way to, declared before. */
  busy: ReadonlySet<string>
  /** Which namespaces took our last write, and which did not. */
  trust: ReadonlyMap<string, "Proven" | "Suspect">
  /** Versions at which objects were found changed: nothing is to be tried with them before our copy shows the change. */
  outdated: ReadonlyMap<string, string>
  /** Our copy of the objects may be older than our taking over. */
  isBehind: boolean
}

/** How many are declared at once: half of what may be in flight, so that one batch is declared while another is written. */
const batch = maxInflight / 2

/** How far back in a queue those are looked for that may be written now. */
const deepest = 2000

export type Chosen = {
  stamps: Stamp[] // in order; stopping after any of them is safe
  /** What is declared once the status is written: objects, and the version each may be written at. */
  intents: ReadonlyMap<string, string>
  /** The status has to be written before the stamps. */
  declares: boolean
}

/**
 * From those that are to be stamped some time soon, whom to stamp now. Intents are declared many at once and used up
 * as pace and concurrency allow: else a careful rollout would write the status once per object.
 */
export function choose(intended: readonly Intent[], { declared, isFresh }: Fence): Chosen {
  const now = intended.filter(intent => intent.isDue)
  const isDeclared = ({ key, member }: Intent) => declared.get(key) === member.resourceVersion
  const writable = isFresh ? now.filter(isDeclared) : []
  if (now.length === 0 || writable.length > 0) {
    return { stamps: writable, intents: intended.length > 0 ? declared : new Map(), declares: false }
  }
  const intents = new Map(intended.map(({ key, member }) => [key, member.resourceVersion]))
  return { stamps: now, intents, declares: true }
}

type Intent = Stamp & { isDue: boolean }

export type Allowance = {
  /** Tiers whose objects with another image are stamped, with the image they get and the reason. */
  isOpen(tier: JudgedTier): boolean
  newImage(tier: JudgedTier): string
  reason: Reason
  pods: number
  fence: Pick<Fence, "unsure" | "busy" | "outdated" | "trust">
}

/**
 * Objects without an image get one at once, whatever their priority: the target if their tier is being rolled out and
 * they are in its cohort, else the last image that proved itself there. Objects with another image follow in their
 * turn; in a finished tier these are only new ones that were never deployed, which gate nothing and can go at once.
 */
export function intend(tiers: readonly JudgedTier[], allowance: Allowance): Intent[] {
  const { isOpen, newImage, reason, fence } = allowance
  const { unsure, busy, outdated } = fence
  const intended: Intent[] = []
  const limit = Math.min(batch, maxInflight - unsure.size - busy.size)
  // Those that cannot be taken now stand first in the queue.
  const more = unsure.size + busy.size + outdated.size
  const isTaken = ({ key, member }: Candidate) =>
    unsure.has(key) || busy.has(key) || outdated.get(key) === member.resourceVersion
  const shares = shareOut(fence.trust, [...unsure, ...busy])
  const pick = (candidates: (limit: number) => Candidate[], count: number): Candidate[] => {
    const picked: Candidate[] = []
    const near = candidates(count + more)
    const take = (candidate: Candidate) => {
      if (picked.length < count && !isTaken(candidate) && shares.take(candidate.member.namespace))
        picked.push(candidate)
    }
    near.forEach(take)
    // Some that stand first have to wait for others of their namespace: further back there may be those that need not.
    if (picked.length < count && near.length === count + more) candidates(deepest).slice(near.length).forEach(take)
    return picked
  }
  let podsLeft = allowance.pods
  for (const tier of tiers) {
    const open = isOpen(tier)
    const { maxConcurrent, view, step } = tier
    let room =
      maxConcurrent === undefined ? Number.POSITIVE_INFINITY : countOf(maxConcurrent, view.total) - view.underWay
    const left = () => Math.max(0, limit - intended.length)
    // What is being written is not yet counted as under way.
    const near = [...view.blank(left() + more), ...view.stale(left() + more, step)]
    room -= near.filter(({ key }) => busy.has(key)).length
    for (const candidate of pick(view.blank, left())) {
      const goesToTarget = open && room > 0 && candidate.cohort <= step
      const to = goesToTarget ? candidate.to : newImage(tier)
      // On the very first rollout the two are the same, and whatever has the target is on its way.
      if (sameImage(to, candidate.to)) room--
      intended.push({ ...candidate, do: "stamp", to, reason: "StampedNew", isDue: true })
    }
    if (!open) continue
    for (const candidate of pick(limit => view.stale(limit, step), left())) {
      // Costs nothing: it disturbs nobody. Else the bucket must have something in it; a large object may overdraw it.
      const isDue = room > 0 && (candidate.pods === 0 || podsLeft >= 1)
      if (isDue) {
        room--
        podsLeft -= candidate.pods
      }
      intended.push({ ...candidate, do: "stamp", reason, isDue })
    }
  }
  return intended
}
