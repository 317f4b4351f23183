import type { FailureReason } from "#api/v1alpha1/serviceimage/index.ts"
import { type Decision, decisionAnnotation, formatDecision } from "#core/decision.ts"
import { readMember } from "#core/member.ts"
import { forEachLimited } from "#lib/for-each-limited.ts"
import type { Client } from "#runtime/client/client.ts"
import { isFailure } from "#runtime/client/errors.ts"
import { nameOf } from "#runtime/resource.ts"
import type { Stamp } from "./plan.ts"
import type { Claim } from "./targets.ts"

/** Enough to keep a server busy across a slow network, few enough not to be what its fairness queues notice. */
const writesAtOnce = 16

/**
 * Writes the stamps, each conditional on the very version it was decided from, with the decision beside the image. What
 * the server says about one object is remembered in the fleet and does not keep the others waiting; trouble with the
 * server itself is thrown. Returns whether anything is known now that was not before.
 */
export async function applyStamps(
  client: Client,
  { resource, fleet }: Claim,
  stamps: readonly Stamp[],
  decided: Pick<Decision, "operation" | "by" | "at">,
): Promise<boolean> {
  let hasMoved = false
  const refused = new Set<string>()
  await forEachLimited(stamps, writesAtOnce, async ({ key, resourceVersion, from, to, reason }) => {
    const name = nameOf(key)
    const namespace = name.namespace ?? ""
    if (refused.has(namespace)) return
    const decision = formatDecision({ from, to, reason, ...decided })
    const body = {
      metadata: { resourceVersion, annotations: { [decisionAnnotation]: decision } },
      spec: { image: to },
    }
    try {
      const written = await client.patch(resource, name, { type: "merge", body })
      hasMoved = true
      fleet.release(key)
      fleet.wrote(key, readMember(written))
    } catch (error) {
      if (isFailure(error, "Conflict", "NotFound")) return // it changed since: the cache will say how
      if (!isFailure(error, "Forbidden", "Invalid")) throw error
      hasMoved = true
      const why = refusal(error.message)
      if (why !== "Forbidden") return fleet.hold({ key }, { reason: why, message: error.message })
      refused.add(namespace)
      fleet.hold({ namespace }, { reason: why, message: error.message })
    }
  })
  return hasMoved
}

/** The server answers 403 for a missing role, an exceeded quota and a webhook alike; only its words tell them apart. */
function refusal(message: string): FailureReason {
  if (message.includes("cannot patch resource")) return "Forbidden"
  return message.includes("exceeded quota") ? "QuotaExceeded" : "AdmissionDenied"
}
