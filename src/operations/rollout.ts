import type {
  Failure,
  Operation,
  ServiceImage,
  ServiceImageSpec,
  Step,
  TierAnalysisStatus,
  TierStatus,
  State as Written,
} from "#api/v1alpha1/serviceimage/index.ts"
import { endOfOperation, stateOf } from "#core/fleet/rollout-state.ts"
import { effectiveTiers } from "#core/fleet/tiers.ts"
import { type Instant, parseInstant } from "#lib/instant.ts"

/** The state in one word. The first is ours: no controller can report that none has observed it. */
export type State = "NotSeenYet" | Written

/** The facts about one ServiceImage that are shown and that `aim wait` decides by. Derived from the object alone. */
export type Rollout = {
  name: string
  state: State
  reason: string
  message: string
  target: string
  currentPriority: number
  upToDate: number
  total: number
  tiers: TierProgress[]
  /** Pods on nodes that no longer answer; they may still run another image. */
  lostPods: number
  /** The operation that the counts are about: the current or the last one. */
  operation: Pick<Operation, "id" | "phase"> | undefined
  createdAt: string | undefined
  startedAt: string | undefined
  /** When the operation was first complete, or was rolled back. */
  endedAt: string | undefined
}

export type TierProgress = {
  tier: string
  priority: number
  image: string
  /** The image of new objects: the last completed one. During a rollback, the image that others return to. */
  proven: string
  state: "Complete" | "InProgress" | "Waiting" | "Halted"
  total: number
  updated: number
  upToDate: number
  unmanaged: number
  ignoredFailures: number
  /** The current step, if the tier has steps and is not complete. */
  step: StepProgress | undefined
  awaitsApproval: boolean
  /** What its analysis found last, while it is not complete. */
  analysis?: Pick<TierAnalysisStatus, "verdict" | "message" | "failedChecks"> | undefined
  failures: Pick<Failure, "reason" | "scope" | "count" | "examples">[]
}

/** The displayed name of the tier `""`. No other tier can have it: a label value has no blanks. */
export const defaultTier = "default tier"

export type StepProgress = {
  percent: number
  /** Up to date, and the next step begins then. */
  soaksUntil?: Instant
}

/** Objects are being updated right now: the tier waits neither for its turn nor for a soak nor for a person. */
export const isGoing = ({ state, awaitsApproval, step }: TierProgress) =>
  state === "InProgress" && !awaitsApproval && step?.soaksUntil === undefined

/** As it comes from the server: the status, or parts of it, may be missing. */
export type Seen = Omit<ServiceImage, "status"> & { status?: Partial<ServiceImage["status"]> | undefined }

export function rolloutOf(object: Seen): Rollout {
  const { metadata, spec, status = {} } = object
  const said = judge(object)
  const tiers = tiersOf(object).map(tier => haltedWith(tier, said.state))
  return {
    name: metadata.name,
    ...said,
    target: spec.target?.kind ?? "",
    currentPriority: status.currentPriority ?? 0,
    upToDate: sum(tiers, tier => tier.upToDate),
    total: sum(tiers, tier => tier.total),
    tiers,
    lostPods: status.lostPods ?? 0,
    operation: status.operation && { id: status.operation.id, phase: status.operation.phase },
    createdAt: metadata.creationTimestamp,
    startedAt: status.startedAt,
    endedAt: endOfOperation(status) ?? status.completedAt,
  }
}

/** In a halted rollout, tiers that wait are halted too. */
const haltedWith = (tier: TierProgress, state: State): TierProgress =>
  state === "Halted" && tier.state === "Waiting" ? { ...tier, state: "Halted" } : tier

/** A condition counts only for the last generation: an old Complete says nothing about a new image. */
function judge({ metadata, status = {} }: Seen): Pick<Rollout, "state" | "reason" | "message"> {
  const generation = metadata.generation ?? 0
  const seen = status.observedGeneration ?? 0
  if (seen < generation || !status.conditions?.length) {
    const message =
      seen === 0
        ? "no controller has observed it yet"
        : `no controller has observed generation ${generation} yet; the last one observed is ${seen}`
    return { state: "NotSeenYet", reason: "", message }
  }
  const current = status.conditions.filter(({ observedGeneration = 0 }) => observedGeneration >= generation)
  const { state, because } = stateOf(current, status.operation?.phase)
  const fallback = { reason: state === "Waiting" ? "Observing" : state, message: "" }
  const { reason, message } = because ?? fallback
  return { state, reason, message }
}

/** The images of a spec, also where a server without our defaults left out empty fields. */
export const imagesIn = ({ tiers = [], defaultImage = "" }: Partial<ServiceImageSpec>) => ({
  defaultImage,
  tiers: tiers.map(({ upgradeTier = "", image = "", priority = 0, ...tier }) => ({
    ...tier,
    upgradeTier,
    image,
    priority,
  })),
})

/** In the order of the rollout; tiers that were just removed, and are only in the status, come last. */
function tiersOf({ spec, status = {} }: Seen): TierProgress[] {
  const known = new Map((status.tierStatus ?? []).map(tier => [tier.upgradeTier ?? "", tier]))
  const written = effectiveTiers(imagesIn(spec))
  const others = [...known.keys()]
    .filter(name => !written.some(tier => tier.name === name))
    .map(name => ({ name, image: spec.defaultImage ?? "", priority: 0 }))
  const all = [...written, ...others]
  const listed = all.length > 0 ? all : [{ name: "", image: "", priority: 0 }]
  return listed.map(({ name, image, priority }) => {
    const steps = spec.tiers?.find(({ upgradeTier = "" }) => upgradeTier === name)?.steps
    return { tier: name, image, priority, ...progressOf(known.get(name), steps) }
  })
}

function progressOf(
  tier: Partial<TierStatus> = {},
  steps: readonly Step[] = [],
): Omit<TierProgress, "tier" | "image" | "priority"> {
  const holds = (type: string) =>
    tier.conditions?.some(condition => condition.type === type && condition.status === "True")
  return {
    proven: tier.newDeploymentImage ?? "",
    state: holds("Complete") ? "Complete" : holds("InProgress") ? "InProgress" : "Waiting",
    total: tier.total ?? 0,
    updated: tier.updated ?? 0,
    upToDate: tier.upToDate ?? 0,
    unmanaged: tier.unmanaged ?? 0,
    ignoredFailures: tier.ignoredFailures ?? 0,
    step: holds("Complete") ? undefined : stepOf(tier.step, steps),
    awaitsApproval: tier.conditions?.some(({ reason }) => reason === "AwaitingApproval") ?? false,
    ...(tier.analysis && !holds("Complete") && { analysis: foundIn(tier.analysis) }),
    failures: (tier.failures ?? []).map(({ reason, scope, count, examples = [] }) => ({
      reason,
      scope,
      count,
      examples,
    })),
  }
}

const foundIn = ({ verdict, message, failedChecks }: TierAnalysisStatus) => ({ verdict, message, failedChecks })

function stepOf(at: TierStatus["step"], steps: readonly Step[]): StepProgress | undefined {
  if (!at) return undefined
  const soakSeconds = steps.find(({ percent }) => percent === at.percent)?.soakSeconds ?? 0
  const since = parseInstant(at.upToDateAt)
  return {
    percent: at.percent,
    ...(since !== undefined && soakSeconds > 0 && { soaksUntil: since + soakSeconds * 1000 }),
  }
}

const sum = <T>(items: readonly T[], of: (item: T) => number) => items.reduce((total, item) => total + of(item), 0)
