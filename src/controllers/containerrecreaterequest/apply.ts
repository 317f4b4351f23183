import { outcomeOf } from "#runtime/client/outcome.ts"
import { nameOf } from "#runtime/resource.ts"
import type { Plan, Snapshot } from "./plan.ts"
import { podKeyOf } from "./requests.ts"
import { containerRecreateRequests } from "./resources.ts"
import { gateKey, type World } from "./world.ts"

export type Done = { lookAgainAt?: undefined }

/** Has the pod's gate looked at, and deletes a request whose time to live has passed. No container is touched here. */
export async function apply(
  world: World,
  { request, pod }: Snapshot,
  { isExpired }: Plan,
  { key }: { key: string },
): Promise<Done> {
  if (pod?.gate) world.enqueue(gateKey(podKeyOf(request)))
  if (!isExpired) return {}
  const { uid = "" } = request.metadata
  await outcomeOf(world.client.delete(containerRecreateRequests, nameOf(key), { uid }))
  return {}
}
