import { earliest, type Instant } from "#lib/instant.ts"
import type { PodFacts } from "./pod.ts"
import { type Evidence, isUp, proofOf, standingOf, type Target } from "./standing.ts"

/**
 * The pods that run what the template says, in health and for long enough. This asks for more than `standingOf`: a pod
 * without a change of this operation has to be up as well, and one that an earlier operation changed has to be restarted.
 */
export function provenOf(
  pods: readonly PodFacts[],
  target: Target,
  evidence: Evidence,
): { readonly proven: readonly PodFacts[]; readonly lookAgainAt?: Instant | undefined } {
  let lookAgainAt: Instant | undefined
  const proven = pods.filter(pod => {
    if (standingOf(pod, target, evidence).is !== "Updated" || !isUp(pod)) return false
    if (pod.mark && proofOf(pod, pod.mark, target, evidence).is !== "Updated") return false
    const at = (evidence.upSince(pod.uid) ?? evidence.now) + target.minReadyMs
    if (evidence.now < at) lookAgainAt = earliest(lookAgainAt, at)
    return evidence.now >= at
  })
  return { proven, lookAgainAt }
}
