import { type Decision, endingOf, statusOf } from "./decision.ts"
import type { ScalerSeen } from "./scaler.ts"
import type { Act, Sight } from "./sight.ts"

/**
 * The autoscalers of the target beside a decision: they may not scale down while a run is under way, and are put back
 * when there is none. At most one write is decided, so theirs goes first, and the decision follows in the next look.
 */
export function withScalers(sight: Sight, decision: Decision): Decision {
  const { canary, scalers = [] } = sight
  if (canary.spec.suspend && !canary.metadata.deletionTimestamp) return decision
  const act = actOf(scalers, wishOf(sight, decision))
  const said = act ? { ...decision, act } : decision
  const missing = sight.scalerMissing
  return missing ? { ...said, message: `${said.message}; ${missing}` } : said
}

type Wish = "Held" | "Free" | "AsTheyAre"

/** A Canary that goes puts them back last, when no pod of a run is left. */
const last: ReadonlySet<Act["do"] | undefined> = new Set(["release", "leave", "removeFinalizer"] as const)

function wishOf(sight: Sight, { phase, run, act }: Decision): Wish {
  if (phase === "Terminating") return last.has(act?.do) ? "Free" : "AsTheyAre"
  const before = statusOf(sight).run
  if (!before) return run ? "AsTheyAre" : "Free"
  // On the way back nothing new is held, and what is held stays until the run is over.
  return !run || endingOf(run) || phase === "Waiting" ? "AsTheyAre" : "Held"
}

function actOf(scalers: readonly ScalerSeen[], wish: Wish): Act | undefined {
  const to = (isHeld: boolean, { kind, name }: ScalerSeen): Act => ({ do: "scaler", kind, name, isHeld })
  // One that was given another workload during the run is put back at once.
  const stray = scalers.find(({ isNoted, isOfTarget }) => isNoted && (wish === "Free" || !isOfTarget))
  if (stray) return to(false, stray)
  if (wish !== "Held") return undefined
  const open = scalers.find(({ isOfTarget, mayShrink }) => isOfTarget && mayShrink)
  return open && to(true, open)
}
