import type { ContainerRecreateRequest } from "#api/v1alpha1/containerrecreaterequest/index.ts"
import type { Controller } from "#runtime/controller.ts"
import { kindController } from "#runtime/kind-controller.ts"
import { apply, type Done } from "./apply.ts"
import { settleGate } from "./gate.ts"
import { type Memory, observe } from "./observe.ts"
import { type Plan, plan, type Snapshot } from "./plan.ts"
import { report } from "./report.ts"
import { podKeyOf, requestIndexes } from "./requests.ts"
import { containerRecreateRequests, permissions } from "./resources.ts"
import { openWorld, type World } from "./world.ts"

/**
 * Records which containers a request means, hands it over to the agent of the pod's node when it is its turn, and judges
 * the result. Reads ContainerRecreateRequests and pods. Writes the requests' status and, where the pod lists it, our
 * readiness gate; deletes requests whose time to live has passed.
 */
export const createContainerRecreateRequestController = (): Controller =>
  kindController<ContainerRecreateRequest, World, Memory, Snapshot, Plan, Done>({
    name: "containerrecreaterequest",
    resource: containerRecreateRequests,
    permissions,
    concurrency: 4,
    turns: { of: key => key.slice(0, key.indexOf("/")), most: 2 },
    indexes: requestIndexes,
    open: openWorld,
    remember: () => ({ runningSince: new Map() }),
    async prepare(world, key) {
      if (key.endsWith("/")) {
        const lookAgainAt = await settleGate(world, key.slice(0, -1))
        if (lookAgainAt !== undefined) world.enqueueAfter(key, lookAgainAt - world.clock.now())
        return false
      }
      const request = world.requests.get(key)?.object
      if (request && request.status?.phase !== "Completed") await world.look(podKeyOf(request))
      return true
    },
    observe,
    plan,
    apply,
    reports: "before",
    report,
    onReported: ({ metrics }, { key, object }, status) => metrics.publish(key, object.status, status),
    forget: ({ metrics }, key) => metrics.forget(key),
  })
