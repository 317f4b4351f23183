import type {
  Failure,
  Operation,
  ServiceImage,
  ServiceImageSpec,
  Step,
  TierStatus,
  State as Written,
} from "#api/v1alpha1/serviceimage/index.ts"
import { endOfOperation, stateOf } from "#core/fleet/rollout-state.ts"
import { effectiveTiers } from "#core/fleet/tiers.ts"
import { type Instant, parseInstant } from "#lib/instant.ts"

/** In one word. The first is ours: no controller can say that none has looked. */
export type State = "NotSeenYet" | Written

/** What people want to know of one ServiceImage, and what `aim wait` decides by. Derived from the object alone. */
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
  /** The one that the counts are about: the current or the last one. */
  operation: Pick<Operation, "id" | "phase"> | undefined
  createdAt: string | undefined
  startedAt: string | undefined
  /** When the operation was first complete, or was taken back. */
  endedAt: string | undefined
}

export type TierProgress = {
  tier: string
  priority: number
  image: string
  /** What new objects get: the last image that proved itself. While an operation is taken back, what others return to. */
  proven: string
  state: "Complete" | "InProgress" | "Waiting" | "Halted"
  total: number
  updated: number
  upToDate: number
  unmanaged: number
  ignoredFailures: number
  /** Where it stands in its steps, if it has any and is not through. */
  step: StepProgress | undefined
  awaitsApproval: boolean
  failures: Pick<Failure, "reason" | "scope" | "count" | "examples">[]
}

/** What people read for the tier `""`. No other tier can be called that: a label value has no blanks. */
export const defaultTier = "default tier"

export type StepProgress = {
  percent: number
  /** Up to date, and the next step begins then. */
  soaksUntil?: Instant
}

/** Objects are being brought to their image right now: it waits neither for its turn nor for a soak nor for a person. */
export const isGoing = ({ state, awaitsApproval, step }: TierProgress) =>
  state === "InProgress" && !awaitsApproval && step?.soaksUntil === undefined

/** As it comes from the server: a status that nobody has written yet, or only in part, is not there. */
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

/** What has stopped waits for nothing, and so do the tiers behind it. */
const haltedWith = (tier: TierProgress, state: State): TierProgress =>
  state === "Halted" && tier.state === "Waiting" ? { ...tier, state: "Halted" } : tier

/** A condition counts only if it is about what was last written: an old Complete says nothing about a new image. */
function judge({ metadata, status = {} }: Seen): Pick<Rollout, "state" | "reason" | "message"> {
  const generation = metadata.generation ?? 0
  const seen = status.observedGeneration ?? 0
  if (seen < generation || !status.conditions?.length) {
    const message =
      seen === 0
        ? "no controller has looked at it yet"
        : `no controller has looked at generation ${generation} yet; the last one seen is ${seen}`
    return { state: "NotSeenYet", reason: "", message }
  }
  const current = status.conditions.filter(({ observedGeneration = 0 }) => observedGeneration >= generation)
  const { state, because } = stateOf(current, status.operation?.phase)
  const fallback = { reason: state === "Waiting" ? "Observing" : state, message: "" }
  const { reason, message } = because ?? fallback
  return { state, reason, message }
}

/** The images of a spec, also where a server without our defaults left out what is empty. */
export const imagesIn = ({ tiers = [], defaultImage = "" }: Partial<ServiceImageSpec>) => ({
  defaultImage,
  tiers: tiers.map(({ upgradeTier = "", image = "", priority = 0, ...tier }) => ({
    ...tier,
    upgradeTier,
    image,
    priority,
  })),
})

/** In the order in which they are worked; tiers that were just removed, which the status alone knows of, last. */
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
    failures: (tier.failures ?? []).map(({ reason, scope, count, examples = [] }) => ({
      reason,
      scope,
      count,
      examples,
    })),
  }
}

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
