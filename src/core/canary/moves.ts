import type { Run } from "#api/v1alpha1/canary/index.ts"
import { earliest } from "#lib/instant.ts"
import { type Move, nextMove, type Wanted } from "./arrange.ts"
import { arrangedOf, briefly, type Decision, ending, say, sharesOf, statusOf, waited } from "./decision.ts"
import type { Sight } from "./sight.ts"
import { targetOf } from "./targets/index.ts"
import { paced } from "./targets/shared.ts"

/** The Service of the target selects its pods before a request can come, and the one of clients only the source. */
export function targetService(sight: Sight, run: Run): Decision | undefined {
  const { services, canary } = sight
  const settled = targetOf(canary)?.settled?.(sight, run) ?? "done"
  if (settled !== "done")
    return "act" in settled
      ? say(sight, run, { act: settled.act, reason: "Scaling", message: settled.message })
      : say(sight, run, { reason: "Scaling", message: settled.wait })
  const source = services.source?.hash ?? run.source.hash
  if (run.target.hash === "" || services.areMade({ source, target: run.target.hash })) return undefined
  return say(sight, run, {
    act: { do: "services", source, target: run.target.hash },
    reason: "Scaling",
    message: "the Services select the pods of both revisions",
  })
}

/** The next move to how things are to be, at the pace that the target allows. */
export function pacedMove(sight: Sight, run: Run, wish: Wanted): { readonly move: Move; readonly wanted: Wanted } {
  const arranged = arrangedOf(sight, run)
  const wanted = paced(sight.canary, arranged, unshrunk(sight, wish), run.sizes.full)
  return { move: nextMove(arranged, wanted, sharesOf(sight)), wanted }
}

/** What an autoscaler has given to the new revision stays. */
function unshrunk({ component }: Sight, wanted: Wanted): Wanted {
  const { scaler, size = 0 } = component?.target ?? {}
  return scaler && size > wanted.targetSize ? { ...wanted, targetSize: size } : wanted
}

/** What a move, or what it waits for, means for the run. */
export function moved(sight: Sight, run: Run, move: Exclude<Move, "done">): Decision {
  const { trouble, trial, canary } = sight
  if ("do" in move) {
    if (move.do === "route") {
      // It is reported with the weight that it gave, and as what follows: one report for each step.
      return measuring(sight, run, { act: { ...move } })
    }
    const size = move.targetSize
    const step = targetOf(canary)?.resized(sight, run, size)
    if (step !== undefined) {
      if (step !== "done" && "act" in step)
        return say(sight, withSize(run, size), { act: step.act, reason: "Scaling", message: step.message })
      return moved(sight, run, { wait: "TargetNotReady" })
    }
    const act = trial && !trial.isGoing ? { do: "scaleTrial" as const, size } : { do: "createTrial" as const, size }
    return say(sight, withSize(run, size), {
      act,
      reason: "Scaling",
      message: `the new revision gets ${size} of ${run.sizes.full} pods`,
    })
  }
  const before = statusOf(sight).run ?? run
  const wait = waited(sight, run, before)
  if (wait.isOver) return failedBy(sight, wait.run, `no progress for ${canary.spec.progressDeadlineSeconds} s`)
  // Nothing else may happen until then: a kubelet that backs off writes no more to its pods.
  const lookAgainAt = earliest(wait.lookAgainAt, trouble?.fatalAt)
  const reason = waitReason(sight, move.wait)
  const brief = trouble ? undefined : briefly(sight)
  if (brief) return say(sight, run, { reason: before.reason, message: before.message, ...brief })
  const message = trouble && move.wait === "TargetNotReady" ? trouble.message : waitMessages[move.wait](sight)
  return say(sight, wait.run, { reason, message, lookAgainAt })
}

const withSize = (run: Run, target: number): Run => ({ ...run, sizes: { ...run.sizes, target } })

type Wait = Extract<Move, { wait: string }>["wait"]

function waitReason({ trouble }: Sight, wait: Wait): Decision["reason"] {
  if (wait === "SourceNotReady") return "SourceNotReady"
  if (wait === "RouteNotAccepted") return "NotAccepted"
  if (trouble?.reason === "Unschedulable" || trouble?.reason === "QuotaExceeded") return trouble.reason
  return trouble?.reason === "ImageUnavailable" ? "PullingImage" : "WaitingForReady"
}

const waitMessages: Readonly<Record<Wait, (sight: Sight) => string>> = {
  TargetNotReady: () => "pods of the new revision are not ready yet",
  SourceNotReady: () => "pods of the running revision are not ready",
  RouteNotAccepted: ({ route }) => `the route is not accepted: ${route.why}`,
}

/** The run fails because of its pods, or of the time. */
export function failedBy(sight: Sight, run: Run, late?: string): Decision {
  const { trouble } = sight
  const words = [trouble?.message, late].filter(text => text !== undefined).join("; ")
  const fatal = trouble?.isFatal ? fatals.find(reason => reason === trouble.reason) : undefined
  return ending(sight, run, fatal ?? "DeadlineExceeded", words)
}

export function measuring(sight: Sight, run: Run, said: Partial<Decision> = {}): Decision {
  const weight = said.act?.do === "route" ? said.act.weight : run.weight
  return say(sight, run, { reason: "Measuring", message: `the new revision is judged at weight ${weight}`, ...said })
}

const fatals = ["CrashLoop", "ImageUnavailable", "Unhealthy"] as const
