import { readinessGate } from "#api/v1alpha1/readiness-gate.ts"
import { formatInstant, type Instant } from "#lib/instant.ts"
import { outcomeOf, saysNotGranted } from "#runtime/client/outcome.ts"
import { keyOf, nameOf } from "#runtime/resource.ts"
import { wantsUnready } from "./plan.ts"
import { openForPod } from "./requests.ts"
import { pods } from "./resources.ts"
import type { World } from "./world.ts"

/**
 * Sets the readiness gate of one pod: False while a request drains it or has its containers recreated, else True. The
 * rule needs no memory, so a request that is deleted half-way and a pod that was just created are the same case. A pod
 * that lists the gate is never ready before the gate is True for the first time. A pod that an update in place has
 * drained is left to that update.
 *
 * Returns when to try again.
 */
export async function settleGate(world: World, podKey: string): Promise<Instant | undefined> {
  const pod = world.pod(podKey)
  if (!pod?.gate || pod.isTerminating) return undefined
  const open = openForPod(world.requests, podKey, pod.uid)
  const [first] = open
  const isWanted = first === undefined || !wantsUnready(first, undefined) ? "True" : "False"
  if (pod.gate.is === isWanted || (isWanted === "True" && pod.gate.isOfUpdate)) {
    world.holds.delete(podKey)
    return undefined
  }
  const now = world.clock.now()
  const held = world.holds.on(podKey, "")
  if (held && now < held.retryAt) return held.retryAt
  const condition = {
    type: readinessGate,
    status: isWanted,
    lastTransitionTime: formatInstant(now),
    reason: isWanted === "True" ? "NotDisturbed" : "ContainerRecreateRequest",
    message: isWanted === "True" ? "" : `for ContainerRecreateRequest ${first!.metadata.name}`,
  }
  const { uid, resourceVersion } = pod
  const body = { metadata: { uid, resourceVersion }, status: { conditions: [condition] } }
  const patch = world.client.patch(pods, nameOf(podKey), { type: "strategic", body }, { subresource: "status" })
  const outcome = await outcomeOf(patch)
  if (outcome.is === "Written") {
    world.holds.delete(podKey)
    // The next look may come before the watch: with the old state it would write the same again, and conflict.
    world.wrote(podKey, outcome.object)
  }
  if (outcome.is !== "Refused") return outcome.is === "Unknown" ? now + 1000 : undefined
  const { said, message } = outcome.error
  const reason = saysNotGranted(message) ? "Forbidden" : "Refused"
  const retryAt = world.holds.add({ key: podKey }, { reason, message: said }, now)
  for (const request of open) world.enqueue(keyOf(request.metadata))
  return retryAt
}
