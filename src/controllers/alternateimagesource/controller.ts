import type { AlternateImageSource } from "#api/v1alpha1/alternateimagesource/index.ts"
import type { Controller } from "#runtime/controller.ts"
import { kindController } from "#runtime/kind-controller.ts"
import type { Surroundings } from "../surroundings.ts"
import { apply, type Done } from "./apply.ts"
import { observe } from "./observe.ts"
import { type Plan, plan, type Snapshot } from "./plan.ts"
import { report } from "./report.ts"
import { alternateImageSources, permissions } from "./resources.ts"
import { sourceIndexes } from "./sources.ts"
import { openWorld, type World } from "./world.ts"

/** What only this process knows. */
export type Memory = {
  /** Since when registries are being asked. */
  asksSince?: number | undefined
}

/**
 * Lets containers be pulled from an equivalent repository when their own fails. Reads AlternateImageSources, workloads,
 * pods and, by name, their pull secrets. Writes the image of containers that have not started, with `apply: Template`
 * also that of their workload, and the AlternateImageSource's status.
 */
export const createAlternateImageSourceController = ({ registry }: Surroundings = {}): Controller =>
  kindController<AlternateImageSource, World, Memory, Snapshot, Plan, Done>({
    name: "alternateimagesource",
    resource: alternateImageSources,
    permissions,
    concurrency: 4,
    turns: { of: namespaceIn, most: 2 },
    indexes: sourceIndexes,
    open: (wiring, objects) => openWorld(wiring, objects, registry),
    remember: () => ({}),
    async prepare({ sources }, key) {
      if (sources.isReady) await sources.settle(namespaceIn(key))
      return !key.endsWith("/") // which is a namespace's
    },
    observe,
    plan,
    apply,
    reports: "after",
    report,
    onReported({ sources, metrics }, { key }, status, { decisions }, done) {
      if (!sources.isActive(key)) metrics.forget(key)
      else if (sources.isReady) metrics.publish(key, status!, decisions, done!)
    },
    forget({ metrics, holds }, key) {
      metrics.forget(key)
      holds.release(key)
    },
  })

const namespaceIn = (key: string) => key.slice(0, key.indexOf("/"))
