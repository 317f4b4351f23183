import type { Policy, PullFailure, Reason } from "#api/v1alpha1/alternateimagesource/index.ts"
import type { FailureClass, Resolution } from "#core/image/resolution.ts"
import { digestIn, type Group } from "./group.ts"

const cannotServe: readonly FailureClass[] = ["Unreachable", "TLS", "Timeout"]
/** The answers to our own probe that confirm a pull failure of a kubelet. */
const alike: Partial<Record<PullFailure, readonly FailureClass[]>> = {
  Unreachable: cannotServe,
  TLS: cannotServe,
  Timeout: cannotServe,
  NotFound: ["NotFound"],
  Denied: ["Denied"],
  UnknownFailure: [...cannotServe, "NotFound"],
}
export const isAlike = (failure: PullFailure, said: Resolution) =>
  !said.ok && alike[failure]?.includes(said.class) === true

type Verdict = "Good" | "Unknown" | "Absent" | "Differs" | "Unproven" | "Down" | "Closed"

/** A probe is advice. Where none could be made, a pod may try, but only if it cannot get other content. */
export function judge(
  said: Resolution,
  failure: PullFailure,
  { image, digest }: Group,
  { requireSameDigest }: Policy,
): Verdict {
  const pinned = digestIn(image)
  // Nodes verify an image that they pull by digest.
  const mustCompare =
    requireSameDigest !== "Never" && !pinned && (digest !== undefined || requireSameDigest === "Always")
  if (!said.ok) {
    if (said.class === "NotFound") return "Absent"
    if (said.class === "Denied") return "Closed"
    if (said.class !== "ForbiddenAddress") return "Down"
    // Only the cluster's own network can show whether it is there. A misspelt tag must not be tried in every registry.
    return mustCompare || mustBeSeen.has(failure) ? "Absent" : "Unknown"
  }
  if (pinned && requireSameDigest !== "Never") return said.digest === pinned ? "Good" : "Differs"
  if (!mustCompare || said.digest === digest) return "Good"
  return digest === undefined ? "Unproven" : "Differs"
}

/** Failures that a wrong tag causes, or may cause. */
const mustBeSeen = new Set<PullFailure>(["NotFound", "NoPlatform", "UnknownFailure"])

type Judged = { readonly repository: string; readonly said: Resolution; readonly verdict: Verdict }

export function whyNone(
  judged: readonly Judged[],
  failure: PullFailure,
  { image, digest }: Group,
): { reason: Reason; message?: string } {
  const has = (wanted: Verdict) => judged.some(({ verdict }) => verdict === wanted)
  if (has("Differs")) {
    const others = judged.flatMap(({ repository, said, verdict }) =>
      verdict === "Differs" && said.ok ? [`${repository} has other bits (${short(said.digest)})`] : [],
    )
    const wanted = digestIn(image) ?? digest ?? ""
    return { reason: "DigestDiffers", message: `${others.join(", ")} than ${short(wanted)}` }
  }
  if (has("Unproven"))
    return {
      reason: "DigestUnknown",
      message: `requireSameDigest is Always, and no pod of this namespace has run ${image}`,
    }
  if (has("Closed") && !has("Down")) return { reason: "SecretMissing" }
  const isAbsent = failure === "NotFound" || failure === "NoPlatform"
  const isNowhere = isAbsent && judged.every(({ verdict }) => verdict === "Absent")
  return { reason: isNowhere ? "NotFoundAnywhere" : "AllSourcesDown" }
}

const short = (digest: string) => digest.slice(0, "sha256:".length + 12)
