import type { Run } from "#api/v1alpha1/canary/index.ts"
import { formatInstant, parseInstant } from "#lib/instant.ts"
import { type Decision, leastOf, say, sharesOf, sidesOf } from "./decision.ts"
import { failedBy, moved, pacedMove, targetService } from "./moves.ts"
import { intervalOf } from "./rounds.ts"
import type { Sight } from "./sight.ts"
import { promotionAfter } from "./steps.ts"
import { mostBefore, sharesPods } from "./targets/shared.ts"
import { nextTurn } from "./turn.ts"

/** Promoting: the new revision grows to full size and takes all requests. */
export function promote(sight: Sight, run: Run): Decision {
  const { canary, services, trouble } = sight
  if (trouble?.isFatal) return failedBy(sight, run)
  if (services.source?.hash !== run.target.hash) {
    const turned = targetService(sight, run)
    if (turned) return turned
    const isDue = run.weight === 0 || canary.spec.analysis.stepWeightPromotion === 0 || sight.now >= dueAt(sight, run)
    const weight = run.weight < 100 && isDue ? promotionAfter(canary.spec.analysis, run.weight) : run.weight
    const { move, wanted } = pacedMove(sight, run, { weight, isMirrored: false, targetSize: sizeOf(sight, run) })
    if (move !== "done") return promoting(moved(sight, run, move), run, wanted.weight)
    if (run.weight < 100)
      return say(sight, run, { reason: "Routing", message: shown(run.weight), lookAgainAt: dueAt(sight, run) })
  }
  return say(
    sight,
    { ...run, progressAt: formatInstant(sight.now) },
    {
      phase: "Finalising",
      reason: "HandingOver",
      message: "all requests go to the new revision",
    },
  )
}

/** Where both revisions share the pods of one workload, the last of them follows the requests. */
const sizeOf = ({ canary }: Sight, { sizes: { full } }: Run) => (sharesPods(canary) ? mostBefore(full) : full)

const shown = (weight: number) => `the new revision takes the requests: weight ${weight}`

const dueAt = (sight: Sight, run: Run) => (parseInstant(run.weightSince) ?? 0) + intervalOf(sight.canary)

/** A move that a run makes too, in the words of a promotion. */
function promoting(decision: Decision, run: Run, weight: number): Decision {
  if (decision.act?.do !== "route" || !decision.run) return decision
  const message = shown(weight)
  return {
    ...decision,
    reason: "Routing",
    message,
    // With all requests it is finalised, and that is reported.
    isBrief: weight === 100,
    run: { ...run, reason: "Routing", message },
  }
}

/**
 * The Service of the source, which has no requests, selects the new revision and gets them back; undefined when it has
 * them. Both Services select the new revision then, so its share stays what it was.
 */
export function turned(sight: Sight, run: Run): Decision | undefined {
  const turn = nextTurn(sidesOf(sight), run.target.hash, leastOf(sizeOf(sight, run), sharesOf(sight).target))
  const { services } = sight
  const [source, target] = [services.source?.hash ?? run.source.hash, services.target?.hash ?? run.target.hash]
  const select = (hashes: { source: string; target: string }): Decision =>
    say(sight, run, { act: { do: "services", ...hashes }, reason: "Routing", message: selecting })
  // The one that clients use is written after it.
  if (turn === "done") return services.areMade({ source, target }) ? undefined : select({ source, target })
  if ("wait" in turn) return moved(sight, run, { wait: turn.wait === "NotReady" ? "TargetNotReady" : turn.wait })
  if (turn.do === "route")
    return say(sight, run, { act: { ...turn }, reason: "Routing", message: selecting, isBrief: true })
  return select(turn.side === "source" ? { source: turn.hash, target } : { source, target: turn.hash })
}

const selecting = "the Services select the revision that answers from now on"
