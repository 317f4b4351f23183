import type { Run } from "#api/v1alpha1/canary/index.ts"
import { type Decision, endingOf, leastOf, sharesOf, statusOf } from "../decision.ts"
import type { Act, RevisionSeen, Sight } from "../sight.ts"
import { strategyOf } from "../steps.ts"
import type { Step, Target } from "./target.ts"

/**
 * A component of OAM: each revision has a workload of its own, and both belong to the OAM runtime. Nothing is made, held or
 * copied; what changes is how many pods each of the two has, and which of them the route gives requests to. The runtime
 * names no number of pods, so its constant re-applying and these writes never meet.
 */

/** A workload is never its own new revision: where a run says so, no pod of it goes. */
function sidesOf({ component }: Sight): { source?: RevisionSeen | undefined; target?: RevisionSeen | undefined } {
  const { source, target } = component!
  return source && source.name === target?.name ? { source } : { source, target }
}

const resize = ({ name }: RevisionSeen, size: number): Act => ({ do: "resize", workload: name, size })

/** How many pods the source keeps for the requests that it still gets; the last stays until the promotion is over. */
const sourceSizeAt = (full: number, weight: number): number =>
  Math.max(1, Math.ceil(Number(((full * (100 - weight)) / 100).toFixed(6))))

/** What selects pods of the source selects those that it has now, where its own controller has replaced them. */
export function followedBy({ component, services }: Sight, run: Run): Act | undefined {
  const { source, target } = services
  if (!component?.source || !source || [run.source.hash, run.target.hash].includes(source.hash)) return undefined
  return { do: "services", source: run.source.hash, target: target?.hash === source.hash ? undefined : target?.hash }
}

/** Before the route gives requests to a revision, or after: what is left to the source. */
function settled(sight: Sight, run: Run): Step {
  const { canary, route } = sight
  const { source, target } = sidesOf(sight)
  const { phase, run: recorded } = statusOf(sight)
  if (!source) return lost(sight, run)
  const { full } = run.sizes
  // Sizes are shares of it, and a source that has given pods up no longer shows it.
  if (full !== recorded?.sizes.full) return { wait: `the workload before has ${full} pods now` }
  const isJudged = phase === "Progressing" || phase === "WaitingPromotion"
  if (!isJudged || source.scaler || strategyOf(canary.spec.analysis) !== "Weighted") return "done"
  const size = sourceSizeAt(full, run.weight)
  if (source.size === size) return "done"
  const isRouted = route.isAccepted && !route.isUnderWay && route.split?.weight === run.weight
  const isAnswered = target !== undefined && target.ready >= leastOf(target.size, sharesOf(sight).target)
  if (source.size > size && !(isRouted && isAnswered)) return "done"
  return { act: resize(source, size), message: `the revision before keeps ${size} of ${full} pods` }
}

/** The workload before was deleted: what is left of the component answers every request. */
const lost = ({ services }: Sight, run: Run): Step =>
  run.weight < 100 && (services.target?.ready[run.target.hash] ?? 0) > 0
    ? {
        act: { do: "route", weight: 100, isMirrored: false },
        message: "the workload before is gone: the new revision answers alone",
      }
    : "done"

/** Pods that the source gave up come back first. Requests wait for them, unless they leave a revision that proved bad. */
function grown(sight: Sight, run: Run): Step {
  const { source, target } = sight.component!
  if (!source || source.scaler) return "done"
  const { full } = run.sizes
  if (source.size < full)
    return { act: resize(source, full), message: `the revision before gets its ${full} pods back` }
  const isReady = source.ready >= leastOf(full, sharesOf(sight).source)
  const isUnanswered = run.weight === 0 || (target?.ready ?? 0) === 0
  const isAtOnce = endingOf(run) === "RolledBack" || source.isTroubled || isUnanswered
  return isReady || isAtOnce ? "done" : { wait: "pods of the revision before come back" }
}

/**
 * A revision that has nothing to be compared with is not judged: the first of its component, and one with the same
 * template as the revision that answers, whose pods no Service can tell apart.
 */
function unproven(sight: Sight): (Partial<Decision> & Pick<Decision, "reason" | "message">) | undefined {
  const { component, hasFinalizer, scalers = [] } = sight
  const { source, target, isFirst } = component!
  if (target?.hash === "") return { reason: "WaitingForReady", message: `${target.name} has no revision yet` }
  if (!hasFinalizer || !target || (source ? source.hash !== target.hash : !isFirst)) return undefined
  const wanted = source?.scaler || target.scaler ? 0 : (sight.canary.spec.rolloutPlan?.targetSize ?? 0)
  const full = Math.max(1, source?.size ?? 0, target.size, target.scaler?.least ?? 0, wanted)
  const why = source ? "its template is that of the revision that answers" : "it is the first of its component"
  const message = `${target.name} gets ${full} pods without a proof: ${why}`
  if (target.size < full) return { act: resize(target, full), reason: "Scaling", message }
  if (target.ready < full) return { reason: "WaitingForReady", message }
  if (!source) return undefined
  const act = movedScaler(scalers, target.name) ?? (source.size > 0 ? resize(source, 0) : undefined)
  return act && { act, reason: "HandingOver", message: `${target.name} answers from now on: ${why}` }
}

/** The autoscaler of the source scales the new revision from now on: one write, which also ends its hold. */
function movedScaler(scalers: NonNullable<Sight["scalers"]>, to: string): Act | undefined {
  const found = scalers.find(({ isOfTarget }) => isOfTarget)
  return found && { do: "scaler", kind: found.kind, name: found.name, isHeld: false, to }
}

export const componentTarget: Target = {
  unproven,
  settled,
  grown,
  resized(sight, run, size) {
    const { target } = sidesOf(sight)
    if (!target || target.size === size) return "done"
    return { act: resize(target, size), message: `the new revision gets ${size} of ${run.sizes.full} pods` }
  },
  emptied(sight) {
    const { target } = sidesOf(sight)
    if (!target || target.size === 0) return "done"
    return { act: resize(target, 0), message: "pods of the new revision go" }
  },
  handedOver(sight, run) {
    const { source, target } = sidesOf(sight)
    if (!source || !target) return "done"
    if (target.size < run.sizes.full && !target.scaler)
      return { act: resize(target, run.sizes.full), message: "the new revision gets the size of the workload" }
    if (source.size > 0 && target.ready < leastOf(target.size, sharesOf(sight).target))
      return { wait: "pods of the new revision are not ready yet" }
    const moved = movedScaler(sight.scalers ?? [], target.name)
    if (moved) return { act: moved, message: "the autoscaler scales the new revision" }
    return source.size === 0 ? "done" : { act: resize(source, 0), message: "the pods of the revision before go" }
  },
  released: () => undefined,
}
