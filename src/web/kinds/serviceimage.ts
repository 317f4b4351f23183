import { approvedAnnotation } from "#api/v1alpha1/serviceimage/annotations.ts"
import type { ServiceImage } from "#api/v1alpha1/serviceimage/index.ts"
import { reasons } from "#api/v1alpha1/serviceimage/reasons.ts"
import { parseApproval } from "#core/fleet/approval.ts"
import { endOfOperation } from "#core/fleet/rollout-state.ts"
import { serviceImages } from "#operations/kinds.ts"
import { paceKeeper } from "#operations/pace-keeper.ts"
import { leftWords, type Outlook, rateWords } from "#operations/rate.ts"
import {
  defaultTier,
  imagesIn,
  isGoing,
  type Rollout,
  rolloutOf,
  type Seen,
  type TierProgress,
} from "#operations/rollout.ts"
import { setImageWords } from "#operations/settings.ts"
import { needsApproval } from "#operations/words.ts"
import { shown, timed } from "../text.ts"
import type { Attention, FailureShown, Lane, Rate, RolloutDetails, RolloutRow, StepShown } from "../wire.ts"
import { differencesOf, type Images, imagesShown } from "./history.ts"
import { baseOf, type KindPage } from "./kind.ts"

export const serviceImagePage: KindPage = {
  resource: serviceImages,
  view: "rollout",
  short: "si",
  actions: ["approve", "pause", "resume", "rollback", "set-image"],
  open(clock) {
    const pace = paceKeeper(clock)
    return {
      row(object) {
        const rollout = rolloutOf(object as unknown as Seen)
        pace.note(rollout)
        return rowOf(object as unknown as Seen, rollout, pace.outlooks(rollout))
      },
      details(object) {
        const seen = object as unknown as Seen
        const rollout = rolloutOf(seen)
        return {
          rollout: detailsOf(seen, rollout, pace.outlooks(rollout)),
          history: historyOf(seen),
        }
      },
      forget: key => pace.forget(key),
    }
  },
}

const attentions: Partial<Record<Rollout["state"], Attention>> = {
  Halted: "Act",
  Stalled: "Act",
  Degraded: "Look",
  RolledBack: "Look",
}

function rowOf(object: Seen, rollout: Rollout, outlooks: (tier: TierProgress) => Outlook): RolloutRow {
  const { state, tiers, currentPriority } = rollout
  const awaitsApproval = tiers.some(tier => tier.awaitsApproval)
  const current = tiers.filter(({ priority }) => priority === currentPriority)
  const rates = current.filter(isGoing).map(outlooks)
  const perMinute = rates.reduce((sum, each) => sum + (each.perMinute ?? 0), 0)
  const left = rates.flatMap(({ msLeft }) => (msLeft === undefined ? [] : [msLeft]))
  const rate = rateOf({
    ...(perMinute > 0 && { perMinute }),
    ...(left.length > 0 && { msLeft: Math.max(...left) }),
  })
  const images = new Set(tiers.map(({ image }) => image))
  return {
    ...baseOf(object, serviceImages),
    view: "rollout",
    attention: awaitsApproval ? "Act" : (attentions[state] ?? "None"),
    state,
    reason: shown(rollout.reason, 64),
    message: shown(rollout.message),
    target: shown(rollout.target, 63),
    image: shown((current[0] ?? tiers[0])?.image ?? "") + (images.size > 1 ? ` +${images.size - 1}` : ""),
    progress: { done: rollout.upToDate, total: rollout.total, ...(rate && { rate }) },
    tiers: tiers.length,
    currentPriority,
    awaitsApproval,
    operation: shown(rollout.operation?.id, 32),
    ...timed("startedAt", rollout.startedAt),
    ...timed("endedAt", rollout.endedAt),
  }
}

function rateOf({ perMinute, msLeft }: Outlook): Rate | undefined {
  if (perMinute === undefined) return undefined
  // Two digits: more would be another number five times a second.
  const rounded = Number(perMinute.toPrecision(2))
  return {
    perMinute: rounded,
    words: rateWords(perMinute),
    ...(msLeft !== undefined && { msLeft: Math.round(msLeft / 1000) * 1000, leftWords: leftWords(msLeft) }),
  }
}

function detailsOf(object: Seen, rollout: Rollout, outlooks: (tier: TierProgress) => Outlook): RolloutDetails {
  const { spec, status } = object
  const approval = parseApproval(object.metadata.annotations?.[approvedAnnotation])
  const approved = approval && approval.operation === rollout.operation?.id ? approval.tiers : []
  const { operation } = status ?? {}
  return {
    lanes: rollout.tiers.map(tier => laneOf(tier, object, rollout, { approved, outlook: outlooks(tier) })),
    unmatched: status?.unmatched ?? 0,
    lostPods: rollout.lostPods,
    isPaused: spec.paused === true,
    ...(operation && {
      operation: {
        id: shown(operation.id, 32),
        phase: shown(operation.phase, 32),
        ...timed("startedAt", operation.startedAt),
        ...timed("endedAt", endOfOperation(status!)),
        ...(operation.cause && { cause: shown(operation.cause) }),
      },
    }),
  }
}

function laneOf(
  tier: TierProgress,
  { spec, status }: Seen,
  rollout: Rollout,
  { approved, outlook }: { approved: readonly string[]; outlook: Outlook },
): Lane {
  const written = status?.tierStatus?.find(({ upgradeTier = "" }) => upgradeTier === tier.tier)
  const because = written?.conditions?.find(
    ({ type }) => type === (tier.state === "Complete" ? "Complete" : "InProgress"),
  )
  const own = imagesIn(spec).tiers.find(({ upgradeTier }) => upgradeTier === tier.tier)?.image
  const rate = isGoing(tier) ? rateOf(outlook) : undefined
  return {
    tier: shown(tier.tier, 63),
    title: shown(tier.tier, 63) || defaultTier,
    priority: tier.priority,
    image: shown(tier.image),
    setting: own ? `${shown(tier.tier, 63)}=` : "",
    proven: shown(tier.proven),
    state: tier.state,
    total: tier.total,
    updated: tier.updated,
    upToDate: tier.upToDate,
    unmanaged: tier.unmanaged,
    ignoredFailures: tier.ignoredFailures,
    isCurrent: tier.priority === rollout.currentPriority,
    steps: stepsOf(tier, spec),
    ...(tier.step?.soaksUntil !== undefined && { soaksUntil: tier.step.soaksUntil }),
    approval: tier.awaitsApproval
      ? "Awaited"
      : approved.includes(tier.tier)
        ? "Approved"
        : needsApproval(tier.tier, spec)
          ? "Needed"
          : "NotNeeded",
    ...(tier.analysis && {
      analysis: {
        verdict: shown(tier.analysis.verdict, 32),
        message: shown(tier.analysis.message),
        failedChecks: tier.analysis.failedChecks,
      },
    }),
    ...(rate && { rate }),
    failures: (written?.failures ?? []).map(failureOf),
    reason: shown(because?.reason, 64),
    message: shown(because?.message),
  }
}

type Failure = NonNullable<NonNullable<ServiceImage["status"]>["tierStatus"]>[number]["failures"][number]

const failureOf = ({ reason, scope, count, message, examples = [] }: Failure): FailureShown => ({
  reason: shown(reason, 64),
  meaning: Object.hasOwn(reasons, reason) ? reasons[reason] : "",
  scope: scope === "All" ? "All" : "Partial",
  count,
  message: shown(message),
  examples: examples.map(each => shown(each)),
})

function stepsOf({ tier, state, step }: TierProgress, spec: Seen["spec"]): StepShown[] {
  const steps = spec.tiers?.find(({ upgradeTier = "" }) => upgradeTier === tier)?.steps ?? []
  const at = step?.percent ?? (state === "Complete" ? 101 : 0)
  return steps.map(({ percent, soakSeconds = 0 }) => ({
    percent,
    soakSeconds,
    state: percent < at ? "Done" : percent === at ? "Current" : "Later",
  }))
}

/** As `aim history`: the current or last operation first, with what each changed against the one before it. */
function historyOf({ metadata, spec, status }: Seen) {
  const { operation, history = [] } = status ?? {}
  const endedAt = status && endOfOperation(status)
  const all = [...(operation ? [{ ...operation, ...(endedAt && { endedAt }) }] : []), ...history]
  return all.map((each, index) => {
    const images: Images = each.images ?? {}
    const before: Images = all[index + 1]?.images ?? {}
    const words = index === 0 ? undefined : setImageWords(spec, images)
    return {
      id: shown(each.id, 32),
      outcome: shown(each.phase, 32),
      ...timed("startedAt", each.startedAt),
      ...timed("endedAt", each.endedAt),
      isRunning: each.phase === "InProgress" || each.phase === "RollingBack",
      total: each.total ?? 0,
      upToDate: each.upToDate ?? 0,
      failed: each.failed ?? 0,
      cause: shown(each.cause),
      images: imagesShown(images),
      differences: index + 1 < all.length ? differencesOf(before, images) : [],
      ...(words && words.length > 0 && { command: `set-image si/${metadata.name} ${words.join(" ")}` }),
    }
  })
}
