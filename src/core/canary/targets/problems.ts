import type { Canary } from "#api/v1alpha1/canary/index.ts"
import { providerOf } from "../provider.ts"
import type { Problem } from "../sight.ts"
import { sharesPods } from "./shared.ts"

/** What a Canary asks of a target of this kind and size, and that cannot be done with one. */
export function kindProblem(canary: Canary, size: number): Problem | undefined {
  const { targetRef, service } = canary.spec
  if (sharesPods(canary) && size === 1)
    return {
      reason: "WeightNotPossible",
      message: `targetRef: ${targetRef.kind} ${targetRef.name} has one pod, which is of one revision or of the other: give it two, or update it without a Canary`,
    }
  if (targetRef.kind !== "Service") return undefined
  if (targetRef.apiVersion !== "v1")
    return { reason: "NotSupported", message: `targetRef.apiVersion: only a Service of v1 is routed to` }
  if (providerOf(canary) === "kubernetes")
    return {
      reason: "NotSupported",
      message:
        "provider: a Service that is the target selects as its owner writes, so it cannot divide the requests: write provider: gatewayapi:v1 with service.gatewayRefs",
    }
  if (service?.name && service.name !== targetRef.name)
    return {
      reason: "InvalidSpec",
      message: "service.name: the target is the Service that clients use: leave name out",
    }
  return undefined
}
