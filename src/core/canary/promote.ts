import type { Run } from "#api/v1alpha1/canary/index.ts"
import { formatInstant, parseInstant } from "#lib/instant.ts"
import { nextMove } from "./arrange.ts"
import { arrangedOf, type Decision, leastOf, say, sharesOf, sidesOf } from "./decision.ts"
import { failedBy, moved, targetService } from "./moves.ts"
import { intervalOf } from "./rounds.ts"
import type { Sight } from "./sight.ts"
import { promotionAfter } from "./steps.ts"
import { mostBefore, paced, sharesPods } from "./targets/shared.ts"
import { nextTurn, type Turn } from "./turn.ts"

/**
 * Promoting: the new revision grows to full size and takes all requests. Then the Service of the source, which has none,
 * selects the new revision, and gets them back.
 */
export function promote(sight: Sight, run: Run): Decision {
  const { canary, services, trouble } = sight
  if (trouble?.isFatal) return failedBy(sight, run)
  if (services.source?.hash !== run.target.hash) {
    const turned = targetService(sight, run)
    if (turned) return turned
    const isDue = run.weight === 0 || canary.spec.analysis.stepWeightPromotion === 0 || sight.now >= dueAt(sight, run)
    const weight = run.weight < 100 && isDue ? promotionAfter(canary.spec.analysis, run.weight) : run.weight
    const arranged = arrangedOf(sight, run)
    const wanted = paced(
      canary,
      arranged,
      { weight, isMirrored: false, targetSize: sizeOf(sight, run) },
      run.sizes.full,
    )
    const move = nextMove(arranged, wanted, sharesOf(sight))
    if (move !== "done") return promoting(moved(sight, run, move), run, wanted.weight)
    if (run.weight < 100)
      return say(sight, run, { reason: "Routing", message: shown(run.weight), lookAgainAt: dueAt(sight, run) })
  }
  const turn = nextTurn(sidesOf(sight), run.target.hash, leastOf(sizeOf(sight, run), sharesOf(sight).target))
  if (turn === "done")
    return say(
      sight,
      { ...run, progressAt: formatInstant(sight.now) },
      {
        phase: "Finalising",
        reason: "HandingOver",
        message: "all requests go to the new revision",
      },
    )
  return turning(sight, run, turn)
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
    run: { ...run, reason: "Routing", message },
  }
}

/** One move of a turn. */
function turning(sight: Sight, run: Run, turn: Exclude<Turn, "done">): Decision {
  if ("wait" in turn) return moved(sight, run, { wait: turn.wait === "NotReady" ? "TargetNotReady" : turn.wait })
  const { services } = sight
  const message = "the Services select the revision that answers from now on"
  if (turn.do === "route") return say(sight, run, { act: { ...turn }, reason: "Routing", message })
  const [source, target] = [services.source?.hash ?? run.source.hash, services.target?.hash ?? run.target.hash]
  const hashes = turn.side === "source" ? { source: turn.hash, target } : { source, target: turn.hash }
  return say(sight, run, { act: { do: "services", ...hashes }, reason: "Routing", message })
}
