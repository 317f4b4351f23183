import type { Condition, ConditionType, Failure, ServiceImage, TierStatus } from "#api/v1alpha1/serviceimage/index.ts"

/** In one word, the most pressing first. */
export type State = "Halted" | "Stalled" | "Complete" | "Paused" | "InProgress" | "Waiting" | "NotSeenYet"

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
  createdAt: string | undefined
  startedAt: string | undefined
  completedAt: string | undefined
}

export type TierProgress = {
  tier: string
  priority: number
  image: string
  state: "Complete" | "InProgress" | "Waiting"
  total: number
  updated: number
  upToDate: number
  unmanaged: number
  ignoredFailures: number
  percent: number | undefined
  failures: Pick<Failure, "reason" | "scope" | "count" | "examples">[]
}

/** As it comes from the server: a status that nobody has written yet, or only in part, is not there. */
export type Seen = Omit<ServiceImage, "status"> & { status?: Partial<ServiceImage["status"]> | undefined }

export function rolloutOf(object: Seen): Rollout {
  const { metadata, spec, status = {} } = object
  const tiers = tiersOf(object)
  return {
    name: metadata.name,
    ...judge(object),
    target: spec.target?.kind ?? "",
    currentPriority: status.currentPriority ?? 0,
    upToDate: sum(tiers, tier => tier.upToDate),
    total: sum(tiers, tier => tier.total),
    tiers,
    createdAt: metadata.creationTimestamp,
    startedAt: status.startedAt,
    completedAt: status.completedAt,
  }
}

/** A condition counts only if it is about what was last written: an old Complete says nothing about a new image. */
function judge({ metadata, status = {} }: Seen): Pick<Rollout, "state" | "reason" | "message"> {
  const generation = metadata.generation ?? 0
  const seen = status.observedGeneration ?? 0
  const holds = (type: ConditionType) =>
    status.conditions?.find(
      ({ type: t, status: s, observedGeneration = 0 }) =>
        t === type && s === "True" && observedGeneration >= generation,
    )
  const said = (state: State, { reason, message }: Pick<Condition, "reason" | "message">) => ({
    state,
    reason,
    message,
  })

  if (seen < generation || !status.conditions?.length) {
    const message =
      seen === 0
        ? "no controller has looked at it yet"
        : `no controller has looked at generation ${generation} yet; the last one seen is ${seen}`
    return { state: "NotSeenYet", reason: "", message }
  }
  for (const state of ["Halted", "Stalled", "Complete", "Paused", "InProgress"] as const) {
    const found = holds(state)
    // In progress, but why not done: Complete=False says it in finer words.
    if (found) return said(state, state === "InProgress" ? (current(status.conditions, "Complete") ?? found) : found)
  }
  return said("Waiting", current(status.conditions, "Complete") ?? { reason: "Observing", message: "" })
}

const current = (conditions: readonly Condition[], type: ConditionType) =>
  conditions.find(condition => condition.type === type && condition.message !== "")

/** In the order in which they are worked. */
function tiersOf({ spec, status = {} }: Seen): TierProgress[] {
  const known = new Map((status.tierStatus ?? []).map(tier => [tier.upgradeTier ?? "", tier]))
  const written = (spec.tiers ?? []).map(({ upgradeTier = "", image, priority = 0 }) => ({
    tier: upgradeTier,
    image: image || spec.defaultImage || "",
    priority,
  }))
  // Without tiers, and for tiers just removed, the status alone knows of them.
  const others = [...known.keys()]
    .filter(name => !written.some(({ tier }) => tier === name))
    .map(tier => ({ tier, image: spec.defaultImage ?? "", priority: 0 }))
  const all = [...written, ...others]
  const listed = all.length > 0 ? all : [{ tier: "", image: spec.defaultImage ?? "", priority: 0 }]
  return listed
    .map(tier => ({ ...tier, ...progressOf(known.get(tier.tier)) }))
    .sort((left, right) => right.priority - left.priority)
}

function progressOf(tier: Partial<TierStatus> = {}): Omit<TierProgress, "tier" | "image" | "priority"> {
  const holds = (type: string) =>
    tier.conditions?.some(condition => condition.type === type && condition.status === "True")
  return {
    state: holds("Complete") ? "Complete" : holds("InProgress") ? "InProgress" : "Waiting",
    total: tier.total ?? 0,
    updated: tier.updated ?? 0,
    upToDate: tier.upToDate ?? 0,
    unmanaged: tier.unmanaged ?? 0,
    ignoredFailures: tier.ignoredFailures ?? 0,
    percent: tier.step?.percent,
    failures: (tier.failures ?? []).map(({ reason, scope, count, examples = [] }) => ({
      reason,
      scope,
      count,
      examples,
    })),
  }
}

const sum = <T>(items: readonly T[], of: (item: T) => number) => items.reduce((total, item) => total + of(item), 0)
