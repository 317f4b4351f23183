import type { Reason as ConfigReason, PreCachingConfigSpec } from "#api/v1alpha1/precachingconfig/index.ts"
import type { SpokeClusterSpec, Reason as SpokeReason } from "#api/v1alpha1/spokecluster/index.ts"
import type { Instant } from "#lib/instant.ts"
import { precacheImages } from "./precache-images.ts"
import type { Answer, Reach, TroubleKind } from "./transport.ts"
import { windowProblem } from "./windows.ts"

type Said<Reason> = { isReady: boolean; reason: Reason; message: string }

/** Whether runs can use a PreCachingConfig. */
export function judgePreCachingConfig(config: PreCachingConfigSpec): Said<ConfigReason> {
  const found = precacheImages([], { config })
  if (!found.ok && found.reason === "InvalidPreCachingConfig")
    return { isReady: false, reason: "InvalidPattern", message: found.message }
  return { isReady: true, reason: "WellFormed", message: "" }
}

const troubles: Partial<Record<TroubleKind, SpokeReason>> = {
  BadCredential: "BadCredential",
  UnknownCluster: "SecretNotFound",
  Forbidden: "Forbidden",
  NotInstalled: "NotInstalled",
}

/** Whether a cluster can be worked on, by the last answer to a probe. */
export function judgeSpokeCluster(
  { windows }: Pick<SpokeClusterSpec, "windows">,
  answer: Answer<Reach> | undefined,
  now: Instant,
): Said<SpokeReason> {
  for (const list of ["preCaching", "upgrade"] as const)
    for (const [index, window] of windows[list].entries()) {
      const problem = windowProblem(window, now)
      if (problem)
        return { isReady: false, reason: "InvalidWindow", message: `spec.windows.${list}[${index}]: ${problem}` }
    }
  if (!answer) return { isReady: false, reason: "Observing", message: "it has not been asked yet" }
  if (!answer.ok) {
    const { is, message } = answer.trouble
    return { isReady: false, reason: troubles[is] ?? "Unreachable", message }
  }
  const { isReachable, message = "" } = answer.value
  return { isReady: isReachable, reason: isReachable ? "Reachable" : "Unreachable", message }
}
