import type { NodeImage } from "#api/v1alpha1/nodeimage/index.ts"
import { clip } from "#lib/text.ts"
import type { Controller } from "#runtime/controller.ts"
import { kindController } from "#runtime/kind-controller.ts"
import { apply, type Done } from "./apply.ts"
import { observe } from "./observe.ts"
import { type Plan, plan, type Snapshot } from "./plan.ts"
import { nodeImages, permissions } from "./resources.ts"
import { openWorld, type PullLimits, type PullNode, type World } from "./world.ts"

/**
 * Brings images to one node. Reads the NodeImage of its name; pulls through the container runtime, and takes what that
 * reports of an image afterwards as the proof; writes the NodeImage's status, no more often than every five seconds.
 */
export const createPullController = ({ node, limits }: { node: PullNode; limits: PullLimits }): Controller =>
  kindController<NodeImage, World, undefined, Snapshot, Plan, Done>({
    name: "pull",
    resource: nodeImages,
    fieldSelector: `metadata.name=${node.name}`,
    permissions,
    open: wiring => openWorld(wiring, node, limits),
    async prepare(world) {
      world.about ??= await aboutOf(world)
      await world.flights.follow()
      return true
    },
    observe,
    plan,
    apply,
    reports: "after",
    report: (_seen, _plan, done) => done?.status && { status: done.status },
    onReported({ book }, { now }) {
      book.reported(now)
    },
    forget({ metrics, flights }) {
      metrics.looked(new Map(), flights.all.size)
    },
  })

/** A runtime that does not answer now is asked again at the next look. */
async function aboutOf({ runtime }: World): Promise<string | undefined> {
  try {
    const { name, version } = await runtime.version()
    return clip(`${name} ${version}`, 128)
  } catch {
    return undefined
  }
}
