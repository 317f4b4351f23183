import type { ImageListPullJob } from "#api/v1alpha1/imagelistpulljob/index.ts"
import type { ImagePullJob } from "#api/v1alpha1/imagepulljob/index.ts"
import type { Client } from "#runtime/client/client.ts"
import type { Controller } from "#runtime/controller.ts"
import { type Held, holdPlain, kindController } from "#runtime/kind-controller.ts"
import { keyOf, nameOf } from "#runtime/resource.ts"
import { apply, type Done } from "./apply.ts"
import { createImageListPullJobMetrics, type ImageListPullJobMetrics } from "./metrics.ts"
import { type Jobs, observe, ownerOf } from "./observe.ts"
import { type Plan, plan, type Snapshot } from "./plan.ts"
import { report } from "./report.ts"
import { imageListPullJobs, imagePullJobs, permissions } from "./resources.ts"

type World = { client: Client; jobs: Jobs; metrics: ImageListPullJobMetrics }

/**
 * Keeps one ImagePullJob for each image of a list. Reads ImageListPullJobs and ImagePullJobs; creates, changes and
 * deletes the ImagePullJobs of a list, and writes the list's status.
 */
export const createImageListPullJobController = (): Controller =>
  kindController<ImageListPullJob, World, undefined, Snapshot, Plan, Done>({
    name: "imagelistpulljob",
    resource: imageListPullJobs,
    permissions,
    concurrency: 2,
    turns: { of: key => nameOf(key).namespace ?? "", most: 1 },
    open(wiring, objects) {
      const jobs = wiring.watch<Held<ImagePullJob>>(imagePullJobs, {
        project: holdPlain,
        indexes: { owner: ({ object }) => [ownerOf(object)].filter(Boolean) },
      })
      jobs.subscribe(({ before, after }) => {
        const { metadata } = (after ?? before)!.object
        const list = (metadata as { ownerReferences?: { kind: string; name: string }[] }).ownerReferences?.find(
          ({ kind }) => kind === imageListPullJobs.kind,
        )
        const key = list && keyOf({ namespace: metadata.namespace, name: list.name })
        if (key && objects.get(key)) wiring.enqueue(key)
      })
      return { client: wiring.client, jobs, metrics: createImageListPullJobMetrics(wiring.metrics) }
    },
    async prepare({ jobs }) {
      if (!jobs.isCurrent) await jobs.current()
      return true
    },
    observe,
    plan,
    apply,
    reports: "after",
    report,
    onReported: ({ metrics }, { key }, status) => metrics.publish(key, status),
    forget: ({ metrics }, key) => metrics.forget(key),
  })
