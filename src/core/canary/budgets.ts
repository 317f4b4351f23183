import type { Run } from "#api/v1alpha1/canary/index.ts"
import { parseInstant } from "#lib/instant.ts"
import { type Decision, endingOf, isMoved, say, statusOf, waited } from "./decision.ts"
import { failedBy } from "./moves.ts"
import { deadlineOf } from "./rounds.ts"
import type { Act, Amount, BudgetSeen, Count, SetPod, Sight } from "./sight.ts"

/**
 * PodDisruptionBudgets bind what a Canary takes away. Pods that a ReplicaSet or a StatefulSet deletes are no evictions to
 * the server, so they are counted here, right before the write that lets them go.
 */

const shareOf = (amount: Amount, pods: number) =>
  typeof amount === "number" ? amount : Math.ceil(((Number.parseInt(amount, 10) || 0) * pods) / 100)

/** How many of so many pods have to be ready. */
function wantedOf({ minAvailable, maxUnavailable }: BudgetSeen, expected: number): number {
  if (maxUnavailable !== undefined) return Math.max(0, expected - shareOf(maxUnavailable, expected))
  return minAvailable === undefined ? 0 : shareOf(minAvailable, expected)
}

/** A decision, or a wait for the budget that keeps it from being carried out. */
export function withBudgets(sight: Sight, decision: Decision): Decision {
  const { act } = decision
  const { budgets } = sight
  const run = statusOf(sight).run
  if (!act || !budgets || !run || isLate(sight)) return decision
  if (act.do === "partition") return partitioned(sight, decision, act, run)
  const going = goingBy(sight, act, run)
  const bound = going && budgets().flatMap(budget => keptBy(budget, going) ?? [])[0]
  return bound === undefined ? decision : waiting(sight, decision, bound)
}

/** A Canary that is being deleted does not wait for ever. */
function isLate({ canary, now }: Sight): boolean {
  const since = parseInstant(canary.metadata.deletionTimestamp)
  return since !== undefined && now >= since + deadlineOf(canary)
}

type Going = {
  /** How many of a revision's pods go. */
  readonly of: (hash: string, count: Count) => Count
  /** Others come in their place: they go on being expected. */
  readonly isReplaced: boolean
}

const allOf = (hashes: readonly string[]): Going => ({
  of: (hash, count) => (hashes.includes(hash) ? count : none),
  isReplaced: false,
})
/** A ReplicaSet takes those first that are not ready. */
const beyond = (size: number, hashes: readonly string[]): Going => ({
  of: (hash, { there, ready }) =>
    hashes.includes(hash) ? { there: Math.max(0, there - size), ready: Math.max(0, ready - size) } : none,
  isReplaced: false,
})
const none: Count = { there: 0, ready: 0 }

/** Which pods go with a write; undefined where none does. */
function goingBy(sight: Sight, act: Act, run: Run): Going | undefined {
  const { sets, trial, set } = sight
  const hashesOf = (owner: "user" | "trial") => sets.filter(each => each.owner === owner).map(({ hash }) => hash)
  switch (act.do) {
    case "moveSet":
      // Its new owner scales the others to zero at once.
      return allOf(hashesOf("user"))
    case "emptySet":
      return allOf(sets.filter(({ name }) => name === act.set).map(({ hash }) => hash))
    case "deleteTrial":
      return isMoved(sight, run) ? undefined : allOf(hashesOf("trial"))
    case "scaleTrial":
      return trial && trial.size > act.size ? beyond(act.size, hashesOf("trial")) : undefined
    case "resize":
      return beyond(
        act.size,
        sets.filter(({ workload }) => workload === act.workload).map(({ hash }) => hash),
      )
    case "deletePod": {
      const pod = set?.pods.find(({ name }) => name === act.pod)
      if (!pod?.isReady) return undefined
      return { of: hash => (hash === pod.hash ? { there: 1, ready: 1 } : none), isReplaced: true }
    }
    default:
      return undefined
  }
}

/** Why a budget keeps these pods; undefined where it lets them go. */
function keptBy(budget: BudgetSeen, { of, isReplaced }: Going): string | undefined {
  const going = Object.entries(budget.own).map(([hash, count]) => of(hash, count))
  const sum = (key: keyof Count) => going.reduce((total, each) => total + each[key], 0)
  if (sum("ready") === 0) return undefined
  const left = budget.all.ready - sum("ready")
  const expected = Math.max(budget.all.there, budget.expected) - (isReplaced ? 0 : sum("there"))
  const wanted = wantedOf(budget, expected)
  // A budget that wants more pods than there are to be is not kept by waiting either.
  const isPossible = isReplaced || wanted <= expected
  return left < wanted && isPossible ? spent(budget, wanted, left) : undefined
}

const spent = ({ name }: BudgetSeen, wanted: number, left: number) =>
  `PodDisruptionBudget ${name} wants ${wanted} ready pods, and ${left} would be left`

/**
 * A partition falls as far as budgets have room. Each pod at or above it counts from the write on, whether its controller
 * has replaced it yet or not.
 */
function partitioned(sight: Sight, decision: Decision, act: Extract<Act, { do: "partition" }>, run: Run): Decision {
  const { set, budgets, workload } = sight
  if (!set || act.at >= set.partition) return decision
  const isOld = ({ hash, isReady }: SetPod) => isReady && hash !== run.target.hash
  const replaced = set.pods.filter(pod => isOld(pod) && pod.ordinal - set.start >= act.at)
  let { at } = act
  let bound = ""
  for (const budget of budgets!()) {
    const covered = replaced.filter(({ hash }) => budget.own[hash]).toSorted((a, b) => b.ordinal - a.ordinal)
    const wanted = wantedOf(budget, Math.max(budget.all.there, budget.expected))
    const first = covered[Math.max(0, budget.all.ready - wanted)]
    if (!first || first.ordinal - set.start < at) continue
    at = first.ordinal - set.start + 1
    bound = spent(budget, wanted, budget.all.ready - 1)
  }
  if (at === act.at) return decision
  return at < Math.min(set.partition, workload!.size)
    ? { ...decision, act: { ...act, at } }
    : waiting(sight, decision, bound)
}

const againMs = 5000

/** No event says that pods of another workload have become ready. */
function waiting(sight: Sight, { act: _, ...decision }: Decision, message: string): Decision {
  const { run, phase } = decision
  const reason = "BudgetSpent"
  const lookAgainAt = sight.now + againMs
  if (!run || endingOf(run))
    return { ...decision, reason, message: run ? `${run.message}; ${message}` : message, lookAgainAt }
  const wait = waited(sight, run, statusOf(sight).run ?? run)
  const hasDeadline = phase === "Progressing" || phase === "WaitingPromotion" || phase === "Promoting"
  if (hasDeadline && wait.isOver) return failedBy(sight, wait.run, message)
  return say(sight, hasDeadline ? wait.run : run, { phase, reason, message, lookAgainAt })
}
