import { maxInflight, type Reason } from "#api/v1alpha1/serviceimage/index.ts"
import type { Candidate } from "#core/fleet/fleet.ts"
import { countOf } from "#core/fleet/tiers.ts"
import { sameImage } from "#core/image/reference.ts"
import type { Strategy } from "#core/in-place/names.ts"
import { delayOf, gateOf, isDeclarable, type Rollout, type Turn, type TurnCheckName } from "./checks.ts"
import type { JudgedTier } from "./judge.ts"
import { Shares } from "./trust.ts"

/** One object gets an image, provided it has not changed since the decision. */
export type Stamp = Pick<Candidate, "key" | "member" | "to" | "pods"> & {
  do: "stamp"
  reason: Reason
  /** How its pods get the image, where its tier says that. */
  strategy?: Strategy
  /** Recorded on the object where tiers wait for their images: it shows that the tier has started. */
  tier?: string
}

/**
 * What the fence knows. An object may be written only at the version that was read before the intent to write it was
 * declared in the status: see docs/decisions/0007-the-fence.md.
 */
export type Fence = {
  electionID: string
  /** Objects whose intent is declared, with the version read before that. */
  declared: ReadonlyMap<string, string>
  /** The status was written a moment ago; until then neither spec nor leader had changed. */
  isFresh: boolean
  /** Objects that a write may still reach. They must be touched before they are judged or stamped. */
  unsure: ReadonlySet<string>
  /** Objects with a write of ours under way, which was declared before. */
  busy: ReadonlySet<string>
  /** Which namespaces accepted our last write, and which did not. */
  trust: ReadonlyMap<string, "Proven" | "Suspect">
  /**
   * Versions at which objects turned out to have changed. Nothing is tried with them before our cache shows the change.
   */
  outdated: ReadonlyMap<string, string>
  /** Our cache of the objects may be older than our taking over. */
  isBehind: boolean
}

/** How many are declared at once: half of what may be in flight, so that one batch is declared while another is written. */
const batch = maxInflight / 2

/** How far back a queue is searched for objects that may be written now. */
const deepest = 2000

export type Chosen = {
  stamps: Stamp[] // in order; stopping after any of them is safe
  /** What is declared once the status is written: objects, and the version each may be written at. */
  intents: ReadonlyMap<string, string>
  /** The status has to be written before the stamps. */
  declares: boolean
}

/**
 * Chooses which of the intended objects to stamp now. Many intents are declared at once and used up as pace and
 * concurrency allow: otherwise a careful rollout would write the status once per object.
 */
export function choose(intended: readonly Intent[], { declared, isFresh }: Fence): Chosen {
  const now = intended.filter(({ waitsFor }) => waitsFor === undefined)
  const isDeclared = ({ key, member }: Intent) => declared.get(key) === member.resourceVersion
  const writable = isFresh ? now.filter(isDeclared) : []
  if (now.length === 0 || writable.length > 0) {
    return { stamps: writable, intents: intended.length > 0 ? declared : new Map(), declares: false }
  }
  const intents = new Map(intended.map(({ key, member }) => [key, member.resourceVersion]))
  return { stamps: now, intents, declares: true }
}

/** A stamp that is declared, and what it waits for if it is not due yet. */
export type Intent = Stamp & Pick<Candidate, "cohort"> & { waitsFor: TurnCheckName | undefined }

export type Allowance = {
  rollout: Rollout
  /** The image of new objects, while their tier is not being rolled out. */
  newImage(tier: JudgedTier): string
  reason: Reason
  pods: number
  fence: Pick<Fence, "unsure" | "busy" | "outdated" | "trust">
}

/** What a plan intends, and what that leaves for the rest of each tier. */
export type Queue = { readonly intents: readonly Intent[]; readonly turns: readonly Turn[] }

/**
 * Objects without an image get one at once, whatever their priority: the target if their tier is being rolled out and
 * they are in its cohort, otherwise the last image that proved itself there. Objects with another image wait for their
 * turn. In a finished tier these are only new objects that were never deployed: they gate nothing and are stamped at
 * once.
 */
export function intend(tiers: readonly JudgedTier[], allowance: Allowance): Queue {
  const { rollout, newImage, reason, fence } = allowance
  const { unsure, busy, outdated } = fence
  const intents: Intent[] = []
  const turns: Turn[] = []
  const limit = Math.min(batch, maxInflight - unsure.size - busy.size)
  // Objects that cannot be taken now stand first in the queue.
  const more = unsure.size + busy.size + outdated.size
  const shares = new Shares(fence.trust, [...unsure, ...busy])
  const pick = (turn: Turn, candidates: (limit: number) => Candidate[], count: number): Candidate[] => {
    const picked: Candidate[] = []
    const near = candidates(count + more)
    const take = (candidate: Candidate) => {
      if (picked.length >= count || !isDeclarable(turn, candidate)) return
      shares.take(candidate.member.namespace)
      picked.push(candidate)
    }
    near.forEach(take)
    // Some objects at the front have to wait for others of their namespace. Further back there may be some that need
    // not.
    if (picked.length < count && near.length === count + more) candidates(deepest).slice(near.length).forEach(take)
    return picked
  }
  let podsLeft = allowance.pods
  for (const tier of tiers) {
    if (gateOf(tier, rollout, true)) continue
    const isOpen = gateOf(tier, rollout, false) === undefined
    const { maxConcurrent, view, step, updateStrategy } = tier
    const room =
      maxConcurrent === undefined ? Number.POSITIVE_INFINITY : countOf(maxConcurrent, view.total) - view.underWay
    const inTier = {
      ...(rollout.seen.serviceImage.spec.preCache === "BeforeTier" && { tier: tier.name }),
      ...(updateStrategy && { strategy: updateStrategy }),
    }
    const left = () => Math.max(0, limit - intents.length)
    const writing =
      busy.size === 0
        ? 0
        : [...view.blank(left() + more), ...view.stale(left() + more, step)].filter(({ key }) => busy.has(key)).length
    // Objects that are being written are not yet counted as under way.
    const turn: Turn = { tier, fence, shares, room: room - writing, pods: podsLeft }
    turns.push(turn)
    for (const candidate of pick(turn, view.blank, left())) {
      // A rollback has no target: a new object gets the image that the status names for it.
      const goesToTarget = reason === "Stamped" && isOpen && turn.room > 0 && candidate.cohort <= step
      const to = goesToTarget ? candidate.to : newImage(tier)
      // On the very first rollout both images are the same, and every object with the target is on its way.
      if (sameImage(to, candidate.to)) turn.room--
      intents.push({ ...candidate, ...inTier, do: "stamp", to, reason: "StampedNew", waitsFor: undefined })
    }
    if (!isOpen) continue
    for (const candidate of pick(turn, limit => view.stale(limit, step), left())) {
      const waitsFor = delayOf(turn, candidate)
      if (waitsFor === undefined) {
        turn.room--
        turn.pods -= candidate.pods
      }
      intents.push({ ...candidate, ...inTier, do: "stamp", reason, waitsFor })
    }
    podsLeft = turn.pods
  }
  return { intents, turns }
}
