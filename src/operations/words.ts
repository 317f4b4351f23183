import { printable } from "#lib/text.ts"
import { defaultTier, type Rollout, rolloutOf, type Seen, type TierProgress } from "./rollout.ts"

/** No controller has observed the last generation, so the status is about an older one. */
export const isUnobserved = ({ metadata, status }: Seen) =>
  (status?.observedGeneration ?? 0) < (metadata.generation ?? 0)

export function unobservedSentence({ metadata, status }: Seen, program: string): string {
  const { name, generation = 0 } = metadata
  const seen = status?.observedGeneration ?? 0
  const last = seen === 0 ? "" : `; the last one observed is ${seen}`
  return `no controller has observed generation ${generation} of si/${name} yet${last}: try again in a moment, or check whether ${program} controller runs`
}

/** Named as in the controller's messages. */
export const tierTitle = (name: string) => (name === "" ? `the ${defaultTier}` : `tier ${name}`)

/** As typed: `""` in a shell is an empty word, and literal quotes mean the same. */
export const tierWord = (name: string) => (name === "" ? '""' : name)
export const tierNamed = (word: string) => (word === '""' ? "" : word)

export const inWords = (names: readonly string[]) =>
  names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`

export const objects = (count: number) => `${count} ${count === 1 ? "object" : "objects"}`

/** `operation g4 is in progress, 412/1000 up to date` */
export function operationSentence(object: Seen): string {
  const { id, phase } = object.status!.operation!
  const verbs: Partial<Record<typeof phase, string>> = {
    InProgress: "is in progress",
    Halted: "is halted",
    RollingBack: "is being rolled back",
    RolledBack: "was rolled back",
    Complete: "is complete",
  }
  return `operation ${id} ${verbs[phase] ?? `is ${phase}`}, ${countOf(rolloutOf(object))} up to date`
}

/** Stamped and not yet up to date: these finish in any case. */
export const underWay = ({ tiers }: Rollout) => tiers.filter(tier => tier.updated > tier.upToDate)

/** `2 objects of tier early and 1 object of the default tier` */
export const underWayWords = (tiers: readonly TierProgress[]) =>
  inWords(tiers.map(tier => `${objects(tier.updated - tier.upToDate)} of ${tierTitle(tier.tier)}`))

/** What happens next: the tiers of the highest unfinished priority, then the others. */
export function courseWords({ tiers }: Rollout, { spec }: Seen, program: string): string {
  const unfinished = tiers.filter(tier => tier.state !== "Complete")
  return courseOf(unfinished, spec, program)
}

export function courseOf(tiers: readonly TierProgress[], spec: Seen["spec"], program: string): string {
  const first = tiers.filter(({ priority }) => priority === tiers[0]?.priority)
  const later = tiers.filter(tier => !first.includes(tier))
  const pods = spec.pace?.podsPerSecond ?? 0
  const pace = pods > 0 ? `, at most ${pods} ${pods === 1 ? "pod" : "pods"} a second` : ""
  const held = first.filter(tier => needsApproval(tier.tier, spec))
  const approval =
    held.length > 0
      ? ` ${capital(inWords(held.map(({ tier }) => tierTitle(tier))))} may wait for ${program} approve.`
      : ""
  const then = later.length > 0 ? `, then ${inWords(later.map(withCount))}` : ""
  return `${capital(inWords(first.map(withCount)))} ${first.length === 1 ? "goes" : "go"} first${then}${pace}.${approval}`
}

const withCount = ({ tier, total }: TierProgress) => `${tierTitle(tier)} (${objects(total)})`

export const needsApproval = (tier: string, spec: Seen["spec"]) =>
  spec.tiers?.some(({ upgradeTier = "", requireApproval }) => upgradeTier === tier && requireApproval) ?? false

export const capital = (text: string) => text.charAt(0).toUpperCase() + text.slice(1)

export const countOf = ({ upToDate, total }: { upToDate: number; total: number }) => `${upToDate}/${total}`

/** One rollout in one line: for logs, pipes and the progress of `aim wait`. */
export function progressLine(rollout: Rollout): string {
  const { name, state, reason, message, currentPriority, tiers } = rollout
  const counts = state === "NotSeenYet" ? "" : ` ${countOf(rollout)} ${goalOf(rollout)}`
  const priority = tiers.length > 1 && state === "InProgress" ? `, priority ${currentPriority}` : ""
  const why = [reason && reason !== state ? reason : "", printable(message)].filter(Boolean).join(": ")
  return `si/${name} ${state}${counts}${priority}${why ? ` (${why})` : ""}`
}

/** During a rollback, done means that an object runs its former image. */
export const isGoingBack = ({ state }: Rollout) => state === "RollingBack" || state === "RolledBack"
export const goalOf = (rollout: Rollout) => (isGoingBack(rollout) ? "as before" : "up to date")
