import type { ContainerRecreateRequest } from "#api/v1alpha1/containerrecreaterequest/index.ts"
import type { Instant } from "#lib/instant.ts"
import type { Look } from "#runtime/kind-controller.ts"
import type { Snapshot } from "./plan.ts"
import { aheadOf, podKeyOf } from "./requests.ts"
import type { World } from "./world.ts"

/** Since when each container has been seen running. Losing it prolongs minStartedSeconds, and nothing else. */
export type Memory = { runningSince: Map<string, Instant> }

/** Everything the plan is made from, at this moment. */
export function observe(
  world: Pick<World, "pod" | "requests" | "holds">,
  { object: request, memory, now }: Look<ContainerRecreateRequest, Memory>,
): Snapshot {
  const podKey = podKeyOf(request)
  const pod = world.pod(podKey)
  const running = pod?.containers.filter(({ id, state }) => id !== "" && state.is === "Running") ?? []
  memory.runningSince = new Map(running.map(({ id }) => [id, memory.runningSince.get(id) ?? now]))
  return {
    request,
    pod,
    ahead: pod && aheadOf(world.requests, request, pod.uid),
    runningSince: id => memory.runningSince.get(id),
    gateRefusal: world.holds.on(podKey, ""),
    now,
  }
}
