import { readNode } from "#core/pulls/node-facts.ts"
import type { Controller } from "#runtime/controller.ts"
import { kindController } from "#runtime/kind-controller.ts"
import type { KubeObject } from "#runtime/resource.ts"
import { pullsOf } from "../pulls.ts"
import { apply, type Done } from "./apply.ts"
import { EndedEntries } from "./ended.ts"
import { type Node, observe } from "./observe.ts"
import { type Plan, plan, type Snapshot } from "./plan.ts"
import { nodes, permissions } from "./resources.ts"
import { openWorld, type World } from "./world.ts"

/** Many nodes begin at once; their NodeImages are written side by side. */
const writesAtOnce = 16

/**
 * Keeps a NodeImage for every node, and writes into it what ImagePullJobs have decided: one write for all that has
 * changed on the node. Reads nodes, NodeImages and what the jobs of this process share; writes the spec of NodeImages.
 */
export const createNodeImageController = (): Controller =>
  kindController<Node, World, EndedEntries, Snapshot, Plan, Done>({
    name: "nodeimage",
    resource: nodes,
    permissions,
    concurrency: writesAtOnce,
    keep,
    remember: () => new EndedEntries(),
    open: wiring => openWorld(wiring, pullsOf(wiring)),
    async prepare({ nodeImages, pulls: shared, reportRegistries }) {
      if (!nodeImages.isCurrent) await nodeImages.current()
      reportRegistries(shared)
      return true
    },
    observe,
    plan,
    apply,
    reports: "after",
  })

/** A node is a large object, and there may be thousands. */
function keep(object: KubeObject): Node {
  const { name, uid, resourceVersion, deletionTimestamp } = object.metadata
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: {
      name,
      ...(uid && { uid }),
      ...(resourceVersion && { resourceVersion }),
      ...(deletionTimestamp && { deletionTimestamp }),
    },
    facts: readNode(object),
  }
}
