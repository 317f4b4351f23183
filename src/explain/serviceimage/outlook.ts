import type { Reason, TierAnalysis } from "#api/v1alpha1/serviceimage/index.ts"
import { intervalOf } from "#controllers/serviceimage/analysis.ts"
import { describeTier, type JudgedTier } from "#controllers/serviceimage/judge.ts"
import type { Member } from "#core/fleet/member.ts"
import { countOf } from "#core/fleet/tiers.ts"
import { isHoldable, keepsPods } from "#core/in-place/own-hold.ts"
import type { Instant } from "#lib/instant.ts"
import { remember } from "#lib/remember.ts"
import type { Survey, Surveyed } from "./survey.ts"

/** The rest of a rollout, in order. */
export type Outlook = {
  stages: Stage[]
  /**
   * What pace, settling and soaks take together. The time until objects are healthy and people approve comes on top.
   */
  msAtLeast: number
}

export type Stage = {
  priority: number
  tiers: TierOutlook[]
  /** The time for their pods at the pace of the rollout; 0 without a pace. */
  paceMs: number
  /** Soaks, and where steps are judged at least one interval for each of them. */
  soakMs: number
  /** What settling adds: for the last stamped object, for each step, and for the turns that maxConcurrent makes. */
  settleMs: number
  /** Tiers that a person has to approve. */
  approvals: string[]
  isActive: boolean
  /** For the active one: what each of its tiers waits for. */
  waits: { tier: string; reason: Reason; message: string }[]
}

export type TierOutlook = {
  name: string
  image: string
  objects: number
  pods: number
  underWay: number
  inPlace: number
  how: How
  /** What each of its steps is judged by: the names of metrics and hooks. */
  judged?: { by: string[]; interval: string; threshold: number }
}

/** How the objects of a tier get their image; Own: their own controllers know. */
type How = "InPlace" | "Partly" | "Recreate" | "Own"

export type Warning = { reason: Reason; count: number; examples: string[]; message: string }

/** How long the rest may take, as far as that can be known. */
export function outlookOf(rollout: Surveyed): Outlook {
  const { plan, snapshot, serviceImage } = rollout
  const isBack = ["RollingBack", "RolledBack"].includes(snapshot.operation.phase)
  const { podsPerSecond } = serviceImage.spec.pace
  const rest = restOf(rollout)
  const tiers = isBack ? [...plan.tiers].reverse() : plan.tiers
  const groups = Map.groupBy(
    tiers.filter(tier => hasToDo(tier, plan.active)),
    tier => tier.priority,
  )
  const stages = [...groups].map(([priority, group]): Stage => {
    const isActive = plan.active.some(tier => tier.priority === priority)
    const counted = group.map(tier => ({
      name: tier.name,
      image: tier.image,
      objects: rest.get(tier.name)?.objects ?? 0,
      pods: rest.get(tier.name)?.pods ?? 0,
      underWay: tier.view.underWay,
      inPlace: rest.get(tier.name)?.inPlace ?? 0,
      how: howOf(serviceImage.spec.target.kind, rest.get(tier.name)),
      ...(tier.analysis && !isBack && { judged: judgedBy(tier.analysis) }),
    }))
    const pods = counted.reduce((sum, tier) => sum + tier.pods, 0)
    const paceMs = podsPerSecond === 0 ? 0 : Math.ceil((pods / podsPerSecond) * 1000)
    const settleMs = group.map(tier => settleLeft(tier, rest.get(tier.name)?.objects ?? 0, paceMs))
    return {
      priority,
      tiers: counted,
      paceMs,
      soakMs: isBack ? 0 : Math.max(0, ...group.map(tier => soakLeft(tier, snapshot.now))),
      settleMs: isBack ? 0 : Math.max(0, ...settleMs),
      approvals: isBack ? [] : group.filter(tier => tier.isAwaitingApproval).map(tier => tier.name),
      isActive,
      waits:
        isActive && !isBack ? group.map(tier => ({ tier: tier.name, ...(tier.halt ?? describeTier(tier, plan)) })) : [],
    }
  })
  const msAtLeast = stages.reduce((sum, { paceMs, soakMs, settleMs }) => sum + paceMs + settleMs + soakMs, 0)
  return { stages, msAtLeast }
}

const judgedBy = ({ metrics, webhooks, interval, threshold }: TierAnalysis) => ({
  by: [...metrics, ...webhooks].map(({ name }) => name),
  interval,
  threshold,
})

const hasToDo = (tier: JudgedTier, active: readonly JudgedTier[]) =>
  !tier.isComplete && (active.includes(tier) || tier.view.counted.stale + tier.view.counted.waiting > 0)

/** Soaks of the remaining steps, and the rest of the present one. A step that adds no objects does not soak. */
function soakLeft({ steps, step, soaksUntil, view, analysis, judging }: JudgedTier, now: Instant): number {
  const until = Math.max(soaksUntil ?? 0, judging && !judging.isGood ? judging.dueAt : 0)
  let left = Math.max(0, until - now)
  const from = until === 0 ? step : step + 1
  for (let index = from; index < steps.length; index++) {
    const isSame = index > 0 && view.cohort(index - 1).total === view.cohort(index).total
    if (!isSame) left += Math.max(steps[index]!.soakMs, analysis ? intervalOf(analysis) : 0)
  }
  return left
}

/**
 * Objects settle side by side and while others are stamped. Steps, and turns within maxConcurrent, follow one another.
 */
function settleLeft(tier: JudgedTier, objects: number, paceMs: number): number {
  const { settleSeconds, maxConcurrent, steps, step, view } = tier
  const settleMs = settleSeconds * 1000
  if (objects === 0) return view.counted.settling + view.counted.waiting > 0 ? settleMs : 0
  const turns = maxConcurrent === undefined ? 1 : Math.ceil(objects / countOf(maxConcurrent, view.total))
  return Math.max(settleMs, Math.max(turns, steps.length - step) * settleMs - paceMs)
}

type Rest = { readonly objects: number; readonly pods: number; readonly inPlace: number }

function howOf(
  kind: string,
  { objects, inPlace }: Pick<Rest, "objects" | "inPlace"> = { objects: 0, inPlace: 0 },
): How {
  if (!isHoldable(kind)) return "Own"
  return inPlace === 0 ? "Recreate" : inPlace < objects ? "Partly" : "InPlace"
}

/** Objects still to be stamped, by tier. */
function restOf({ fleet, plan }: Surveyed): Map<string, Rest> {
  const rest = new Map<string, Rest>()
  const strategies = new Map(plan.tiers.map(({ name, updateStrategy }) => [name, updateStrategy]))
  for (const key of fleet?.keys() ?? []) {
    const standing = fleet!.standing(key)
    if (standing?.state !== "Stale" && standing?.state !== "Blank") continue
    if (fleet!.get(key)!.problem) continue // it has no place for the image
    const { objects, pods, inPlace } = rest.get(standing.tier) ?? { objects: 0, pods: 0, inPlace: 0 }
    const { inPlace: facts } = fleet!.get(key)!
    const isInPlace = facts && !standing.proof && keepsPods(facts, strategies.get(standing.tier))
    rest.set(standing.tier, {
      objects: objects + 1,
      pods: pods + (standing.state === "Blank" ? 0 : fleet!.podsOf(key)),
      // One that waits for its owner keeps its pods too.
      inPlace: inPlace + (standing.isKept || isInPlace ? 1 : 0),
    })
  }
  return rest
}

const examplesMost = 3

/** Objects that this rollout is not going to change, or that keep it from becoming complete, and why. */
export function warningsOf(
  { fleet, conflicts, snapshot }: Surveyed,
  { lacksGrant }: Pick<Survey, "lacksGrant">,
): Warning[] {
  const ungranted = remember(1000, lacksGrant)
  const warnings = new Map<Reason, Warning>()
  const note = (reason: Reason, key: string, message: string) => {
    const { count, examples } = warnings.get(reason) ?? { count: 0, examples: [] }
    warnings.set(reason, {
      reason,
      count: count + 1,
      examples: examples.length < examplesMost ? [...examples, key] : examples,
      message,
    })
  }
  for (const key of fleet?.keys() ?? []) {
    const standing = fleet!.standing(key)
    if (standing?.state === "Unmanaged") note("Unmanaged", key, "keep their image: manuallySpecifiedImage is true")
    else if (standing && (standing.state === "Stale" || standing.state === "Blank")) {
      const reason = standing.trouble ?? (standing.isContested ? "Contested" : undefined)
      if (!reason && ungranted(fleet!.get(key)!.namespace)) note("Forbidden", key, obstacles.Forbidden!)
      else if (reason === "InvalidTarget")
        note(reason, key, `${obstacles.InvalidTarget}: ${missingPlace(fleet!.get(key)!)}`)
      else if (reason) note(reason, key, obstacles[reason] ?? "cannot be changed now")
    } else if (standing?.isFailed) {
      const reason = fleet!.get(key)!.haltsOnFailure ? "FailureHaltsUpdate" : "IgnoredFailure"
      note(reason, key, "have their image and failed with it")
    }
  }
  for (const key of snapshot.unmatched.firstItems(snapshot.unmatched.size))
    note("Unmatched", key, "are in no tier, and there is no defaultImage")
  for (const [key, name] of conflicts)
    note("ClaimedByAnother", key, `belong to another ServiceImage, such as si/${name}`)
  return [...warnings.values()].sort((a, b) => b.count - a.count || (a.reason < b.reason ? -1 : 1))
}

/** The problem of the object that was read last: most often it is the same for all. */
const missingPlace = ({ problem = "" }: Member) => (problem.startsWith("has ") ? `one ${problem}` : problem)

const obstacles: Partial<Record<Reason, string>> = {
  Forbidden: "may not be changed: aim grant NAMESPACE",
  Contested: "were stamped, and another writer put another image back",
  InvalidTarget: "do not have the place that spec.target.image names",
}
