import { namesOf } from "#api/names.ts"
import type { ContainerRecreateRequest } from "#api/v1alpha1/containerrecreaterequest/index.ts"
import type { Controller, Permission } from "#runtime/controller.ts"
import { kindController } from "#runtime/kind-controller.ts"
import { resourceOf } from "#runtime/resource.ts"
import type { Surroundings } from "../surroundings.ts"
import { apply, type Done } from "./apply.ts"
import { observe } from "./observe.ts"
import { type Plan, plan, type Snapshot } from "./plan.ts"
import { report } from "./report.ts"
import { lookAt, openWorld, type World } from "./world.ts"

const containerRecreateRequests = resourceOf(namesOf("ContainerRecreateRequest"))

const permissions: readonly Permission[] = [
  { resource: containerRecreateRequests, verbs: ["list", "watch"] },
  { resource: containerRecreateRequests, subresource: "status", verbs: ["update"] },
]

/**
 * Stops the containers of ContainerRecreateRequests on one node. Reads the requests of its node that are not complete,
 * and their containers from the runtime. Writes how far each container is, and then stops it. The kubelet starts it
 * again, and the manager judges the result.
 */
export const createRecreateController = ({ node, limits }: Surroundings): Controller =>
  kindController<ContainerRecreateRequest, World, undefined, Snapshot, Plan, Done>({
    name: "recreate",
    resource: containerRecreateRequests,
    fieldSelector: `status.nodeName=${node.name},status.phase!=Completed`,
    permissions,
    open: (wiring, objects) => openWorld(wiring, node, limits.stopsPerMinute, key => objects.get(key)?.object),
    async prepare(world, key) {
      const request = world.request(key)
      if (request) await lookAt(world, key, request)
      return true
    },
    observe,
    plan,
    // A stop is written before it begins. If the request has changed meanwhile, the write fails and nothing is stopped.
    reports: "before",
    report,
    apply,
    forget: ({ looks, stops, metrics }, key) => {
      metrics.forget(key)
      looks.delete(key)
      for (const name of stops.keys()) if (name.startsWith(`${key}/`)) stops.delete(name)
    },
  })
