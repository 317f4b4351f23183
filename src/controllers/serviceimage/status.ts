import type {
  Condition,
  ConditionType,
  Failure,
  HistoryEntry,
  Operation,
  Reason,
  ServiceImageStatus,
  TierStatus,
} from "#api/v1alpha1/serviceimage/index.ts"
import {
  maxExamples,
  maxExamplesPerTier,
  maxFailureMessage,
  maxFailureMessages,
} from "#api/v1alpha1/serviceimage/index.ts"
import type { TierView } from "#core/fleet/fleet.ts"
import { recordOperation } from "#core/fleet/operation.ts"
import { endOfOperation, imageInWork, stateOf } from "#core/fleet/rollout-state.ts"
import { effectiveTiers } from "#core/fleet/tiers.ts"
import { formatInstant, type Instant } from "#lib/instant.ts"
import { clip, clipMiddle } from "#lib/text.ts"
import { conditionWriter } from "#runtime/conditions.ts"
import { describeTier, isTrue, type JudgedTier } from "./judge.ts"
import type { Snapshot } from "./plan.ts"
import type { JobWrite } from "./pre-cache.ts"

/** What is reported about the whole rollout. Extra conditions are written only while they hold. */
export type Verdict = {
  reason: Reason
  message: string
  phase?: Operation["phase"]
  /** Why it is rolled back. */
  cause?: string
  isComplete?: boolean
  /** Complete, and what has regressed since. */
  degraded?: string | undefined
  isInProgress?: boolean
  isStalled?: boolean
  also?: Extract<ConditionType, "Halted" | "Paused" | "Invalid" | "Conflict" | "TargetKindMissing">
  lookAgainAt?: Instant | undefined
}

type Judged = {
  tiers: readonly JudgedTier[]
  active: readonly JudgedTier[]
  newImage(tier: JudgedTier): string
  jobs: readonly JobWrite[]
}

/** The status, with `state` and `image` as `kubectl get` shows them. */
export const statusOf = (seen: Snapshot, ...given: Rest<Parameters<typeof factsOf>>): ServiceImageStatus => {
  const status = factsOf(seen, ...given)
  const { state } = stateOf(status.conditions, status.operation?.phase)
  const provenIn = new Map(status.tierStatus.map(tier => [tier.upgradeTier, tier.newDeploymentImage]))
  const tiers = effectiveTiers(seen.serviceImage.spec).map(({ name, image, priority }) => ({
    priority,
    image: (isBack(state) && provenIn.get(name)) || image,
  }))
  const image = imageInWork(tiers, status.currentPriority)
  // An older schema may have admitted a value that is no image. It must not make the whole status impossible to write.
  return { ...status, state, image: /^[!-~]* ?[!-~]*$/.test(image) && !/["&<>\\]/.test(image) ? image : "" }
}

type Rest<T extends unknown[]> = T extends [unknown, ...infer R] ? R : never

/** A time changes only when what it dates changes. */
function factsOf(seen: Snapshot, verdict: Verdict, inflight: string[], judged: Judged | undefined): ServiceImageStatus {
  const { serviceImage, operation, now, unmatched, fence } = seen
  const { generation = 0 } = serviceImage.metadata
  const before = serviceImage.status
  const condition = conditionWriter<Condition>(generation, now)
  const { isComplete = false, isInProgress = false, isStalled = false, also, reason } = verdict
  const message = clip(verdict.message, 256)
  const stalled = isStalled ? ([reason, message] as const) : (["NotStalled", ""] as const)
  const ready: [boolean, Reason, string] = verdict.degraded
    ? [false, "Degraded", clip(verdict.degraded, 256)]
    : [isComplete, reason, message]
  const conditions: Condition[] = [
    condition(before?.conditions, "Complete", isComplete, reason, message),
    condition(before?.conditions, "InProgress", isInProgress, reason, message),
    condition(before?.conditions, "Ready", ...ready),
    condition(before?.conditions, "Stalled", isStalled, ...stalled),
    ...(also ? [condition(before?.conditions, also, true, reason, message)] : []),
  ]
  const { electionID } = fence
  const kept = { ...emptyStatus, ...before, observedGeneration: generation, conditions, electionID, inflight }
  // An operation that cannot go on is not in progress: otherwise `serialize: Enforce` would refuse the very edit that
  // mends it.
  const isCut = also === "Invalid" && before?.operation?.phase === "InProgress"
  if (!judged) return isCut ? { ...kept, operation: { ...before.operation!, phase: "Halted" } } : kept

  const { tiers, active } = judged
  const currentPriority = active[0]?.priority ?? tiers.at(-1)?.priority ?? 0
  const hasMoved = before?.priorityStartedAt === undefined || before.currentPriority !== currentPriority
  const isNew = before?.operation?.id !== operation.id
  const examples = shareOfExamples(tiers)
  const shown = tiers.map(tier => shownOf(tier, verdict))
  const { cause } = verdict
  return {
    ...kept,
    progress: `${sum(shown, each => each.upToDate)}/${sum(shown, each => each.total)}`,
    currentPriority,
    tierStatus: quotedOnce(tiers.map(tier => tierStatusOf(tier, judged, verdict, examples, condition))),
    unmatched: unmatched.size,
    lostPods: sum(tiers, tier => tier.view.lostPods),
    ...pullJobsOf(seen, judged),
    oldEndpoints: isComplete && seen.endpoints && seen.endpoints.pods > 0 ? seen.endpoints : undefined,
    operation: {
      ...operation,
      phase: verdict.phase ?? (isBack(operation.phase) ? operation.phase : "InProgress"),
      total: sum(tiers, tier => tier.view.counted.total),
      upToDate: sum(tiers, upToDateOf),
      failed: sum(tiers, tier => tier.view.counted.failed),
      ...(cause !== undefined && { cause: plain(cause) }),
      // Kept when a tier is reopened: it was complete then, and how long it took does not change.
      ...(isComplete && { endedAt: operation.endedAt ?? formatInstant(now) }),
    },
    history:
      isNew && before?.operation
        ? recordOperation(before.history, ended(before.operation, endOfOperation(before) ?? formatInstant(now)))
        : kept.history,
    startedAt: operation.startedAt,
    priorityStartedAt: hasMoved || isNew ? formatInstant(now) : before.priorityStartedAt,
    ...(isComplete && !(isTrue(before?.conditions, "Complete") && !isNew) ? { completedAt: formatInstant(now) } : {}),
  }
}

/** Said before the first is created, and until the last is gone: a process that starts anew then looks for them. */
function pullJobsOf({ serviceImage, preCache }: Snapshot, { jobs }: Judged): Pick<ServiceImageStatus, "pullJobs"> {
  if (preCache?.unknown) return { pullJobs: serviceImage.status?.pullJobs }
  const count = (preCache?.jobs.size ?? 0) + jobs.filter(write => write.do === "create").length
  return { pullJobs: count > 0 ? count : undefined }
}

const ended = (operation: Operation, endedAt: string): HistoryEntry => ({
  ...operation,
  endedAt,
  ...(!["Complete", "RolledBack"].includes(operation.phase) && { phase: "Superseded" as const }),
})

function tierStatusOf(
  tier: JudgedTier,
  { active, newImage }: Judged,
  verdict: Verdict,
  examples: number,
  condition: ReturnType<typeof conditionWriter<Condition>>,
): TierStatus {
  const { view, before, isComplete, halt } = tier
  const isActive = active.includes(tier)
  const isGoing = isActive && (verdict.isInProgress ?? false) && !tier.isAwaitingApproval
  const isHalted = active.some(each => each.halt)
  const said = isComplete
    ? { reason: view.total === 0 ? ("NoObjects" as const) : ("AllUpToDate" as const), message: doneWords(view) }
    : isBack(verdict.reason)
      ? { reason: verdict.reason, message: `${view.counted.done} of ${view.counted.total} changed objects are back` }
      : isActive
        ? (halt ?? (verdict.isInProgress ? describeTier(tier, { active }) : verdict))
        : isHalted
          ? { reason: verdict.reason, message: "the rollout has halted before this tier" }
          : describeTier(tier, { active })
  const message = plain(said.message)
  return {
    upgradeTier: tier.name,
    newDeploymentImage: newImage(tier),
    conditions: [
      condition(before?.conditions, "Complete", isComplete, said.reason, message),
      condition(before?.conditions, "InProgress", isGoing && !isComplete, said.reason, message),
    ],
    ...shownOf(tier, verdict),
    newcomers: view.newcomers,
    unmanaged: view.unmanaged,
    ignoredFailures: view.ignored,
    // In a complete tier, every object that is not up to date and did not fail in it has lost its health since.
    regressed: isComplete ? view.counted.waiting + view.regressedAndFailed : view.regressed,
    ...stepOf(tier),
    ...(tier.found && { analysis: tier.found }),
    failures: failuresOf(view, view.cohort(tier.step).total, examples),
  }
}

/** The objects that count. During a rollback only changed objects count, and all objects are shown. */
function shownOf(tier: JudgedTier, { reason }: Verdict): Pick<TierStatus, "total" | "updated" | "upToDate"> {
  const { counted, total, updated, upToDate } = tier.view
  if (isBack(reason)) return { total, updated, upToDate }
  return { total: counted.total, updated: counted.stamped, upToDate: upToDateOf(tier) }
}

const upToDateOf = ({ view: { counted } }: JudgedTier) => counted.done + counted.settling

/** As in the condition of the whole rollout: "n of m" only where both numbers are the same. */
function doneWords({ counted: { total, done, settling } }: TierView): string {
  const upToDate = done + settling
  return upToDate === total
    ? `${upToDate} of ${total} up to date`
    : `${upToDate} up to date, ${total - upToDate} failed or regressed`
}

/** Only for a tier with steps, or with a soak or an analysis that has to survive a restart. */
function stepOf({ steps, step, upToDateAt, analysis }: JudgedTier): Pick<TierStatus, "step"> {
  if (steps.length === 1 && steps[0]!.soakMs === 0 && !analysis) return {}
  const at = upToDateAt === undefined ? {} : { upToDateAt: formatInstant(upToDateAt) }
  return { step: { percent: steps[step]!.percent, ...at } }
}

/** At most three classes, which together name at most `examples` objects. */
function failuresOf(view: TierView, total: number, examples: number): Failure[] {
  let left = examples
  return view.troubles.slice(0, 3).map(({ reason, count, message, examples: some }) => {
    const named = some(left)
    left -= named.length
    const words =
      message === "" ? {} : { message: plain(clipMiddle(message, maxFailureMessage - 2), maxFailureMessage) }
    return { reason, scope: count >= total ? "All" : "Partial", count, ...words, examples: named }
  })
}

/** The same for quoted messages: one message for each reason is an example of all. */
function quotedOnce(tiers: TierStatus[]): TierStatus[] {
  const quoted = new Set<string>()
  return tiers.map(tier => ({
    ...tier,
    failures: tier.failures.map(failure => {
      const { message, ...rest } = failure
      if (message === undefined || quoted.has(failure.reason) || quoted.size === maxFailureMessages) return rest
      quoted.add(failure.reason)
      return failure
    }),
  }))
}

/** Keeps the largest legal status small: when many tiers are in trouble at once, each names fewer objects. */
function shareOfExamples(tiers: readonly JudgedTier[]): number {
  const inTrouble = tiers.filter(tier => tier.view.troubles.length > 0).length
  return inTrouble === 0 ? maxExamplesPerTier : Math.min(maxExamplesPerTier, Math.floor(maxExamples / inTrouble))
}

const isBack = (word: string) => word === "RollingBack" || word === "RolledBack"

const emptyStatus: ServiceImageStatus = {
  observedGeneration: 0,
  conditions: [],
  progress: "",
  currentPriority: 0,
  tierStatus: [],
  unmatched: 0,
  lostPods: 0,
  history: [],
  electionID: "",
  inflight: [],
}

/** A tier's message is one of many, so the schema keeps it to plain, single-byte characters. */
const plain = (message: string, most = 128) =>
  message
    .replaceAll('"', "'")
    .replaceAll("…", "...")
    .replace(/[^ !#-%'-;=?-[\]-~]/g, "?")
    .slice(0, most)
const sum = <T>(items: readonly T[], of: (item: T) => number) => items.reduce((total, item) => total + of(item), 0)
