import { isRuntimeFailure } from "#runtime/cri/index.ts"
import type { Plan, Snapshot } from "./plan.ts"
import { stopContainer } from "./stop.ts"
import { runtimeId, stopKey, type World } from "./world.ts"

export type Done = { lookAgainAt?: undefined }

/** After an answer that was lost, the container is looked at again before it is stopped again. */
const againMs = 2000

/** Begins the stop that was decided. It goes on beside other requests, and its end is looked at like an event. */
export async function apply(world: World, seen: Snapshot, plan: Plan, { key }: { key: string }): Promise<Done> {
  const { stop } = plan
  world.metrics.looked(key, plan.states)
  const look = stop && world.looks.get(key)?.get(stop.container)
  if (!stop || look?.is !== "Running") return {}
  const { request } = seen
  const name = stopKey(request, stop.container)
  const id = runtimeId(stop.containerID)
  const { terminationGracePeriodSeconds: graceSeconds } = request.spec.strategy
  world.pace.take()
  world.metrics.begun(name)
  world.stops.set(name, { is: "UnderWay" })
  world.log.info("stopping a container", { request: key, container: stop.container, id, graceSeconds })
  stopContainer(world, { id, recorded: look.recorded, since: stop.since, graceSeconds }).then(
    () => {
      world.stops.delete(name)
      world.metrics.ended(name, "Stopped")
      world.enqueue(key)
    },
    error => {
      if (world.signal.aborted) return
      world.log.warn("a container could not be stopped", { request: key, container: stop.container, id, error })
      const isRefused = isRuntimeFailure(error, "Failed")
      if (isRefused) world.stops.set(name, { is: "Failed", message: error.said })
      else world.stops.delete(name)
      world.metrics.ended(name, isRefused ? "Failed" : "Unknown")
      world.enqueueAfter(key, againMs)
    },
  )
  return {}
}
