import { heldMark, inPlaceHolder } from "#core/in-place/names.ts"
import type { Controller } from "#runtime/controller.ts"
import { kindController } from "#runtime/kind-controller.ts"
import { apply, type Done } from "./apply.ts"
import { type Memory, observe } from "./observe.ts"
import { type Plan, plan, type Snapshot } from "./plan.ts"
import { deployments, permissions } from "./resources.ts"
import { type HeldDeployment, openWorld, type World } from "./world.ts"

/**
 * Carries a changed template into the running pods of a held Deployment, and gives the Deployment back to its own
 * controller when both agree again. Reads held Deployments and what surrounds them. Writes images, marks and our
 * readiness gate on pods, the template of the one ReplicaSet, pull jobs, and the hold and its record on the Deployment.
 */
export const createInPlaceController = (): Controller =>
  kindController<HeldDeployment, World, Memory, Snapshot, Plan, Done>({
    name: "in-place",
    resource: deployments,
    // The policy labels what it holds: a cluster where nothing is held has an empty watch.
    labelSelector: `${heldMark}=${inPlaceHolder}`,
    permissions,
    concurrency: 4,
    turns: { of: key => key.slice(0, key.indexOf("/")), most: 2 },
    open: openWorld,
    remember: () => ({ upSince: new Map() }),
    observe,
    plan,
    apply,
    reports: "after",
    forget: (world, key) => world.leave(key),
  })
