import type { Phase, Run } from "#api/v1alpha1/canary/index.ts"
import { formatInstant } from "#lib/instant.ts"
import { configured, isRejected, provenBy, rejected, unneeded } from "./configs.ts"
import { type Decision, leastOf, noAsks, sharesOf, sidesOf, sourceOf, statusOf, titleOf, weightOf } from "./decision.ts"
import { hasGate } from "./gates.ts"
import { trialNameOf } from "./run-object.ts"
import type { Act, SetSeen, Sight } from "./sight.ts"
import { targetOf } from "./targets/index.ts"
import { nextTurn } from "./turn.ts"

/** No run is under way: Services and route are made or mended, and a held change of the template starts a run. */
export function idle(sight: Sight): Decision {
  const { workload, now } = sight
  const { phase = "Initializing" } = statusOf(sight)
  const say = (said: Partial<Decision> & Pick<Decision, "reason" | "message">): Decision => ({
    phase,
    asks: noAsks,
    ...said,
  })
  if (statusOf(sight).phase === undefined) return say({ reason: "Adopting", message: "seen for the first time" })
  const source = sourceOf(sight)
  const taken = targetOf(sight.canary)?.unproven?.(sight)
  if (taken) return say(taken)
  if (!source) return say({ reason: "SourceNotReady", message: `${titleOf(sight.canary)} has no revision yet` })
  const mend = mending(sight, source)
  if (mend)
    return say("reason" in mend ? mend : { act: mend, reason: "Adopting", message: "Services and route are made" })
  const held = holding(sight, source)
  if (held) return say(held)
  const isSame = workload!.checksum === source.checksum
  if (phase === "Initializing") {
    const adopted = { isReady: isSame, lastApplied: source.checksum }
    // The first revision of a component is one that has its full size.
    if (sight.component && isSame)
      return say({ ...adopted, ...settled(sight, "Succeeded"), phase: "Succeeded", lastPromoted: source.checksum })
    const message = "Services and route are there; no pod was touched"
    return say({ ...adopted, phase: "Initialized", reason: "Initialized", message })
  }
  const configuring = configured(sight, source)
  if (configuring) return say(configuring)
  if (isSame) return say({ ...settled(sight, phase), act: unneeded(sight) })
  if (!workload!.hold || !workload!.isPaused)
    return say({
      reason: "Released",
      message: workload!.isPaused
        ? `${titleOf(sight.canary)} was paused by its owner: a run needs a hold of aim's own, so resume it`
        : `${titleOf(sight.canary)} is rolled out by its own controller`,
    })
  // The workload that answers has changed where it is: nothing stands beside it that it could be compared with.
  if (sight.component && (source.workload ?? workload!.name) === workload!.name)
    return say({ reason: "Released", message: `${titleOf(sight.canary)} is rolled out by its own controller` })
  return start(sight, source, now)
}

function settled(sight: Sight, phase: Phase): Partial<Decision> & Pick<Decision, "reason" | "message"> {
  const title = titleOf(sight.canary)
  if (phase === "Failed")
    return { reason: "Reverted", message: "the template is again the one of the revision that runs", isReady: true }
  const last = statusOf(sight).history?.[0]
  // What was said of a promotion stands.
  if (phase === "Succeeded" && last?.result === "Promoted")
    return { reason: last.reason, message: last.message ?? "", isReady: true }
  const reason = phase === "Succeeded" ? "Succeeded" : "Initialized"
  return { reason, message: `${title} runs what its template says`, isReady: true }
}

type Wait = Pick<Decision, "reason" | "message">

/** The next write by which Services and route become those of a Canary without a run. */
function mending(sight: Sight, source: SetSeen): Act | Wait | undefined {
  const { services, route, hasFinalizer } = sight
  if (!hasFinalizer) return { do: "addFinalizer" }
  const { hash } = source
  if (!services.source || !services.target) return { do: "services", source: hash }
  const sides = sidesOf(sight)
  const isServed = source.size === 0 || (services.source.ready[hash] ?? 0) > 0
  if (route.split && (services.source.hash !== hash || weightOf(sight) > 0)) {
    const turn = nextTurn(sides, hash, source.size === 0 ? 0 : leastOf(source.size, sharesOf(sight).source))
    if (turn !== "done") {
      if ("wait" in turn) return { reason: "SourceNotReady", message: "pods of the running revision are not ready" }
      if (turn.do === "route") return { ...turn }
      return turn.side === "source"
        ? { do: "services", source: hash, target: sides.target.hash }
        : { do: "services", source: sides.source.hash, target: hash }
    }
  }
  if (!services.areMade({ source: hash })) return { do: "services", source: hash }
  const refusal = { reason: "NotAccepted", message: `the route is not accepted: ${route.why}` } as const
  if (route.isUnderWay && !route.isAccepted) return refusal
  if (!route.split || route.split.isMirrored)
    return isServed
      ? { do: "route", weight: 0, isMirrored: false }
      : { reason: "SourceNotReady", message: "no pod of the running revision is ready" }
  return route.isAccepted ? undefined : refusal
}

/** The hold between runs: marks without a pause are taken off, and where no policy holds the pause stands. */
function holding(sight: Sight, source: SetSeen): (Partial<Decision> & Wait) | undefined {
  const { workload, policyHolds } = sight
  const { hold, isPaused, isObserved, checksum, size } = workload!
  const isSame = checksum === source.checksum
  if (hold && isPaused)
    return isSame && !hold.isStanding
      ? { act: { do: "release" }, reason: "Reverted", message: "the template is the one that runs: the hold ends" }
      : undefined
  // A stop in the middle would keep pods of two revisions.
  const { set } = sight
  if (set && !(set.isSettled && set.pods.length === size && set.pods.every(({ hash }) => hash === source.hash)))
    return { reason: "Released", message: `${titleOf(sight.canary)} is rolled out by its own controller` }
  if (hold && isSame && isObserved)
    return hold.isStanding
      ? { act: { do: "hold" }, reason: "Adopting", message: "the workload is held between runs: no policy holds it" }
      : { act: { do: "release" }, reason: "Released", message: "the workload was resumed: its marks are taken off" }
  if (hold || isPaused || statusOf(sight).phase !== "Initializing") return undefined
  if (policyHolds === undefined)
    return { act: { do: "tryPolicy" }, reason: "Adopting", message: "Services and route are made" }
  if (policyHolds || !isSame) return undefined
  return { act: { do: "hold" }, reason: "Adopting", message: "the workload is held between runs: no policy holds it" }
}

/** A run begins, unless this template with this configuration has failed before. */
function start(sight: Sight, source: SetSeen, now: number): Decision {
  const { canary, workload } = sight
  const { phase, history = [] } = statusOf(sight)
  const { checksum, size, name, generation, images } = workload!
  const say = (said: Partial<Decision> & Wait): Decision => ({ phase, asks: noAsks, ...said })
  if (size === 0)
    return say({ reason: "Dormant", message: `${titleOf(canary)} has no pods: the change waits for them` })
  if (isRejected(sight, checksum)) return say(rejected(sight))
  const { configs, message } = provenBy(sight, source)
  const base = `r${generation}_${checksum.slice(0, 10)}`
  const attempts = history.filter(({ id }) => id === base || id.startsWith(`${base}_`)).length
  const at = formatInstant(now)
  const run: Run = {
    id: attempts === 0 ? base : `${base}_${attempts + 1}`,
    checksum,
    ...(configs && { configs }),
    startedAt: at,
    source: { hash: source.hash, workload: source.workload ?? name, images: [...source.images] },
    target: { hash: "", workload: targetOf(canary) ? name : trialNameOf(name, checksum), images: [...images] },
    sizes: { full: size, source: source.size, target: 0 },
    weight: 0,
    weightSince: at,
    mirrored: false,
    iterations: 0,
    failedChecks: 0,
    progressAt: at,
    metrics: [],
    gates: [],
    reason: "Started",
    message,
  }
  const isGated = hasGate(canary, { type: "confirm-rollout", approval: "Rollout" })
  return say({
    phase: isGated ? "Waiting" : "Progressing",
    run,
    reason: "Started",
    message: `${message}, and a run started`,
    lastApplied: checksum,
  })
}
