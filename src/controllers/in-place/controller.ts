import { heldMark, inPlaceHolder } from "#core/in-place/names.ts"
import { TakenPods } from "#core/in-place/taken.ts"
import type { Controller } from "#runtime/controller.ts"
import { joined } from "#runtime/joined.ts"
import { kindController } from "#runtime/kind-controller.ts"
import { apply, type Done } from "./apply.ts"
import { deployment } from "./deployment/adapter.ts"
import type { Adapter } from "./kind.ts"
import { type Memory, newMemory, observe, rememberProven } from "./observe.ts"
import { type Plan, plan, type Snapshot } from "./plan.ts"
import { permissions } from "./resources.ts"
import { daemonSet } from "./set/daemonset.ts"
import { statefulSet } from "./set/statefulset.ts"
import { bringBack } from "./strays.ts"
import { type HeldWorkload, openWorld, type World } from "./world.ts"

/**
 * Carries a changed template into the running pods of a held workload, and gives the workload back to its own controller
 * when both agree again. Reads held workloads and what surrounds them. Writes images, marks and our readiness gate on
 * pods, the template of a Deployment's one ReplicaSet, pull jobs, and the hold and its record on the workload.
 */
export function createInPlaceController(): Controller {
  // One budget may cover pods of all three kinds.
  const taken = new TakenPods()
  return joined(
    { name: "in-place", concurrency: 4, turns: { of: namespaceOf, most: 2 } },
    [deployment, statefulSet, daemonSet].map(adapter => controllerOf(adapter, taken)),
  )
}

const namespaceOf = (key: string) => key.slice(0, key.indexOf("/"))

const controllerOf = (adapter: Adapter, taken: TakenPods): Controller =>
  kindController<HeldWorkload, World, Memory, Snapshot, Plan, Done>({
    name: adapter.resource.kind,
    resource: adapter.resource,
    // The policy labels what it holds: a cluster where nothing is held has an empty watch.
    labelSelector: `${heldMark}=${inPlaceHolder}`,
    permissions,
    open: (wiring, objects) => openWorld({ adapter, taken }, wiring, objects),
    remember: newMemory,
    observe,
    plan,
    async apply(world, seen, plan, look) {
      rememberProven(look.memory, seen, plan)
      const done = await apply(world, seen, plan, look)
      world.metrics.looked(look.key, seen, plan, world.holds.on(look.key, seen.workload.namespace)?.reason)
      return done
    },
    reports: "after",
    forget(world, key) {
      world.leave(key)
      return bringBack(world, key)
    },
  })
