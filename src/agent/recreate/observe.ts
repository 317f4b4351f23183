import type { ContainerRecreateRequest } from "#api/v1alpha1/containerrecreaterequest/index.ts"
import type { Look } from "#runtime/kind-controller.ts"
import type { Snapshot } from "./plan.ts"
import { stopKey, type World } from "./world.ts"

/** Everything the plan is made from, at this moment. */
export function observe(
  { node, looks, stops, pace }: Pick<World, "node" | "looks" | "stops" | "pace">,
  { key, object: request, now }: Pick<Look<ContainerRecreateRequest, undefined>, "key" | "object" | "now">,
): Snapshot {
  const found = looks.get(key)
  return {
    request,
    node,
    found: container => found?.get(container),
    stop: container => stops.get(stopKey(request, container)),
    limit: { perMinute: pace.perMinute, freeAt: pace.freeAt(now) },
    now,
  }
}
