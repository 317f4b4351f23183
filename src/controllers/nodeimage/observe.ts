import type { NodeFacts } from "#core/pulls/node-facts.ts"
import type { Look } from "#runtime/kind-controller.ts"
import type { KubeObject } from "#runtime/resource.ts"
import type { EndedEntries as Memory } from "./ended.ts"
import type { Snapshot } from "./plan.ts"
import type { World } from "./world.ts"

/** A node, reduced to what is used of it. */
export type Node = KubeObject & { apiVersion: string; kind: string; facts: NodeFacts; status?: undefined }

/** Everything the plan is made from, at this moment. */
export function observe({ pulls, nodeImages }: World, { key, object, memory, now }: Look<Node, Memory>): Snapshot {
  const { board } = pulls
  const nodeImage = nodeImages.get(key)
  return {
    node: key,
    facts: object.facts,
    nodeImage,
    isListed: pulls.isListed(),
    starting: board.starting(key),
    ended: memory.note(nodeImage?.entries ?? [], now),
    isWanted: (uid, entry) => board.isWanted(uid, key, entry),
    now,
  }
}
