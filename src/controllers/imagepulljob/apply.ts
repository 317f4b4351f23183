import type { ImagePullJob } from "#api/v1alpha1/imagepulljob/index.ts"
import type { Instant } from "#lib/instant.ts"
import { outcomeOf } from "#runtime/client/outcome.ts"
import type { Look } from "#runtime/kind-controller.ts"
import { nameOf } from "#runtime/resource.ts"
import type { Memory } from "./controller.ts"
import type { Plan, Snapshot } from "./plan.ts"
import { imagePullJobs } from "./resources.ts"
import type { World } from "./world.ts"

/** What came of a plan. */
export type Done = { readonly started: number; readonly lookAgainAt?: Instant | undefined }

/**
 * Decides on nodes within the budget of the registry; the NodeImage controller writes them. From observing to here
 * nothing is awaited, so that no two jobs are given the same pull.
 */
export async function apply(world: World, seen: Snapshot, plan: Plan, look: Look<ImagePullJob, Memory>): Promise<Done> {
  const done = await act(world, seen, plan, look)
  world.metrics.publish(look.key, seen, plan, done.started)
  return done
}

async function act(
  { pulls: { board }, client, metrics }: World,
  { isListed, isOver, view }: Snapshot,
  { wants, unansweredBefore, deletes, ends }: Plan,
  { key, object, now }: Look<ImagePullJob, Memory>,
): Promise<Done> {
  if (deletes) {
    const { uid = "" } = object.metadata
    await outcomeOf(client.delete(imagePullJobs, nameOf(key), { uid, propagationPolicy: "Background" }))
    return { started: 0 }
  }
  if (!isListed || isOver || !view || ends) return { started: 0 }
  if (unansweredBefore !== undefined) metrics.agentsMissing(board.failUnanswered(key, unansweredBefore, now))
  const nodes = board.pick(key, wants, now)
  board.start(key, nodes)
  return { started: nodes.length }
}
