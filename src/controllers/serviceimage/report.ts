import type {
  FailureReason,
  Reason,
  ServiceImage,
  ServiceImageStatus,
  TierStatus,
} from "#api/v1alpha1/serviceimage/index.ts"
import type { Instant } from "#lib/instant.ts"
import { isSame } from "#lib/same.ts"
import { nameSome } from "#lib/text.ts"
import { startedWithout } from "./judge.ts"

/** Changes of counts alone are reported at most this often: N objects must not become N status writes. */
const progressMs = 2000

/** When to write a status: at once if it says something new, a little later if only counts changed. */
export function whenToReport(
  before: ServiceImageStatus | undefined,
  next: ServiceImageStatus,
  lastAt: Instant | undefined,
): Instant | "Never" {
  if (!before) return 0
  if (isSame(before, next)) return "Never"
  return isSame(gist(before), gist(next)) ? (lastAt ?? 0) + progressMs : 0
}

/**
 * The status without what changes with every object: counts, objects in flight, and the sentences that contain them.
 */
function gist({ conditions, tierStatus, operation, ...rest }: ServiceImageStatus) {
  const { progress: _, inflight: __, lostPods: ___, ...facts } = rest
  const words = (list: readonly { message: string; reason: Reason }[]) =>
    list.map(({ message: _, reason, ...each }) => ({ ...each, reason: passing.has(reason) ? "Going" : reason }))
  return {
    ...facts,
    operation: operation && { id: operation.id, phase: operation.phase },
    conditions: words(conditions),
    tiers: tierStatus.map(tier => ({
      name: tier.upgradeTier,
      image: tier.newDeploymentImage,
      step: tier.step,
      analysis: tier.analysis,
      conditions: words(tier.conditions),
      failures: tier.failures.map(({ reason, scope }) => ({ reason, scope })),
    })),
  }
}

/** Reasons that may change with every object. */
const passing = new Set<Reason>([
  "RollingOut",
  "WaitingForConcurrency",
  "WaitingForHealth",
  "WaitingForPace",
  "Settling",
])

export type Episode = { type: "Normal" | "Warning"; reason: Reason; message: string }

/** What is worth an event: the turning points of a rollout, never one per object. */
export function storyOf({ spec, status: before }: ServiceImage, next: ServiceImageStatus): Episode[] {
  // A check that halts the rollout is told of as the halt.
  const isHalted = next.conditions.some(({ type }) => type === "Halted")
  return [
    ...beginning(spec, before, next),
    ...next.tierStatus.flatMap(tier => [
      ...chapter(before, tier),
      ...(isHalted ? [] : failedCheck(before, tier)),
      ...refusals(before, tier),
    ]),
    ...turns(before, next),
  ]
}

function beginning(
  spec: ServiceImage["spec"],
  before: ServiceImageStatus | undefined,
  { operation }: ServiceImageStatus,
): Episode[] {
  const was = before?.operation
  if (!operation || operation.id === was?.id) return []
  const images = [...new Set(Object.values(operation.images))].join(", ")
  const started = {
    type: "Normal",
    reason: "RollingOut",
    message: `operation ${operation.id} started: ${images}`,
  } as const
  const isOvertaken = was && (was.phase === "InProgress" || was.phase === "RollingBack") && spec.serialize !== "Allow"
  if (!isOvertaken) return [started]
  const message = `operation ${operation.id} overtakes ${was.id}, which was in progress with ${was.upToDate} of ${was.total} up to date`
  return [{ type: "Warning", reason: "SerializedChange", message }, started]
}

function chapter(before: ServiceImageStatus | undefined, tier: TierStatus): Episode[] {
  const was = before?.tierStatus.find(each => each.upgradeTier === tier.upgradeTier)
  const [now, then] = [tier, was].map(each => each?.conditions.find(({ type }) => type === "Complete"))
  const title = titleOf(tier.upgradeTier)
  const say = (reason: Reason, message: string): Episode[] => [
    { type: "Normal", reason, message: `${title}${message}` },
  ]
  if (now?.status === "True")
    return was && then?.status !== "True" ? say("AllUpToDate", ` is complete: ${now.message}`) : []
  if (now?.reason === "TierReopened") return then?.status === "True" ? say("TierReopened", `: ${now.message}`) : []
  if (now?.message.includes(startedWithout) && !then?.message.includes(startedWithout))
    return [{ type: "Warning", reason: "PreCacheIncomplete", message: now.message }]
  if (now?.reason === "PreCaching" && then?.reason !== "PreCaching")
    return say(now.reason, " waits until its image is on the nodes")
  if (now?.reason === "AwaitingApproval" && then?.reason !== "AwaitingApproval")
    return say(now.reason, " waits for aim approve")
  const isFurther = was?.step && tier.step && tier.step.percent > was.step.percent
  return isFurther ? say("RollingOut", ` goes on to ${tier.step!.percent}%`) : []
}

function failedCheck(before: ServiceImageStatus | undefined, tier: TierStatus): Episode[] {
  const was = before?.tierStatus.find(each => each.upgradeTier === tier.upgradeTier)
  if (!tier.analysis || tier.analysis.failedChecks <= (was?.analysis?.failedChecks ?? 0)) return []
  const { verdict, message, failedChecks } = tier.analysis
  if (verdict === "Good") return []
  const title = titleOf(tier.upgradeTier)
  return [{ type: "Warning", reason: verdict, message: `${title}: ${message} (failed check ${failedChecks})` }]
}

/** Refusals of the server that are new: one for each class in each tier, with the server's own message. */
function refusals(before: ServiceImageStatus | undefined, { upgradeTier, failures }: TierStatus): Episode[] {
  const was = before?.tierStatus.find(each => each.upgradeTier === upgradeTier)?.failures ?? []
  return failures.flatMap(({ reason, count, message, examples }): Episode[] => {
    if (!ofServer.has(reason) || was.some(each => each.reason === reason)) return []
    const some = nameSome(examples.slice(0, 2), count)
    return [{ type: "Warning", reason, message: `${titleOf(upgradeTier)}: ${some}${message ? `: ${message}` : ""}` }]
  })
}

const ofServer = new Set<FailureReason>(["AdmissionDenied", "QuotaExceeded", "Forbidden", "WriteFailed", "Contested"])

const titleOf = (tier: string) => (tier === "" ? "the default tier" : `tier ${tier}`)

function turns(before: ServiceImageStatus | undefined, next: ServiceImageStatus): Episode[] {
  const [ready, wasReady] = [next, before].map(status => status?.conditions.find(({ type }) => type === "Ready"))
  const isDegraded = ready?.reason === "Degraded" && wasReady?.reason !== "Degraded"
  const degraded: Episode[] = isDegraded ? [{ type: "Warning", reason: "Degraded", message: ready.message }] : []
  const turned = (["Complete", "Halted", "Stalled"] as const).flatMap((type): Episode[] => {
    const [now, was] = [next, before].map(status => status?.conditions.find(each => each.type === type))
    const isNews = now?.status === "True" && (was?.status !== "True" || was.reason !== now.reason)
    // A halted rollout is stalled too, and gets one event.
    const isTold = type === "Stalled" && next.conditions.some(each => each.type === "Halted" && each.status === "True")
    if (!isNews || isTold) return []
    return [{ type: type === "Complete" ? "Normal" : "Warning", reason: now.reason, message: now.message }]
  })
  return [...turned, ...degraded]
}
