import type { ImagePullJob } from "#api/v1alpha1/imagepulljob/index.ts"
import type { Instant } from "#lib/instant.ts"
import { isSame } from "#lib/same.ts"
import type { Controller } from "#runtime/controller.ts"
import { kindController } from "#runtime/kind-controller.ts"
import { nameOf } from "#runtime/resource.ts"
import { pullsOf } from "../pulls.ts"
import type { Surroundings } from "../surroundings.ts"
import { apply, type Done } from "./apply.ts"
import { isOver, observe } from "./observe.ts"
import { type Plan, plan, type Snapshot } from "./plan.ts"
import { report } from "./report.ts"
import { imagePullJobs, permissions } from "./resources.ts"
import { jobIndexes, openWorld, type World } from "./world.ts"

/** What only this process knows. */
export type Memory = {
  /** When the status was last written. */
  reportedAt: Instant
}

/** Pulls under way at one registry host, over all jobs and nodes. */
const usualPullsPerRegistry = 20

/**
 * Decides which nodes are given an image next. Reads ImagePullJobs, NodeImages, nodes, pods and, by name, pull secrets.
 * Writes the status of ImagePullJobs, and deletes those whose time to live is over. NodeImages are written by their own
 * controller.
 */
export const createImagePullJobController = ({
  pullsPerRegistry = usualPullsPerRegistry,
}: Pick<Surroundings, "pullsPerRegistry"> = {}): Controller =>
  kindController<ImagePullJob, World, Memory, Snapshot, Plan, Done>({
    name: "imagepulljob",
    resource: imagePullJobs,
    permissions,
    concurrency: 4,
    turns: { of: key => nameOf(key).namespace ?? "", most: 2 },
    indexes: jobIndexes,
    open: (wiring, objects) => openWorld(wiring, objects, { pulls: pullsOf(wiring), pullsPerRegistry }),
    remember: () => ({ reportedAt: 0 }),
    async prepare(world, key) {
      if (!world.pulls.isListed()) await world.current()
      const job = world.pulls.board.view(key) && world.job(key)
      if (job && !isOver(job)) await world.credentials.refresh(job, world.clock.now())
      else world.credentials.forget(key)
      return true
    },
    observe,
    plan,
    apply,
    reports: "after",
    report,
    onReported({ metrics }, { object, memory, now }, status) {
      if (!isSame(object.status, status)) memory.reportedAt = now
      metrics.reported(status)
    },
    forget({ pulls: { board }, credentials, metrics, clock }, key) {
      metrics.forget(key)
      board.dropJob(key, clock.now())
      credentials.forget(key)
    },
  })
