import type { Canary } from "#api/v1alpha1/canary/index.ts"
import type { Controller } from "#runtime/controller.ts"
import { type KindController, kindController } from "#runtime/kind-controller.ts"
import type { Surroundings } from "../surroundings.ts"
import { messagesOf } from "./announce.ts"
import { apply } from "./apply.ts"
import { type CanaryMetrics, createCanaryMetrics } from "./metrics.ts"
import { type Memory, newMemory, observe, type Seen } from "./observe.ts"
import { partsWith } from "./parts.ts"
import { type Plan, plan } from "./plan.ts"
import { report } from "./report.ts"
import { canaries, canaryFinalizer, permissions } from "./resources.ts"
import { canaryIndexes, openWorld, type Parts, type World } from "./world.ts"
import type { Done } from "./write.ts"

/**
 * Gives a new revision of a Deployment requests step by step, and makes its very pods the Deployment's own when it proves
 * good. Reads Canaries and, in their namespaces, Deployments, ReplicaSets, pods, Services, endpoints and routes. Writes the
 * Services and the route, the Deployment of the run, the owner of its ReplicaSet, and the hold of the user's Deployment.
 */
export const createCanaryController = (surroundings: Surroundings): Controller =>
  canaryController(partsWith(surroundings))

/** The same with other routers, metrics, hooks and alerts. */
export const canaryController = (parts: Parts): Controller => kindController(canaryKind(parts))

type Measured = World & { readonly metrics: CanaryMetrics }

const canaryKind = (parts: Parts): KindController<Canary, Measured, Memory, Seen, Plan, Done> => ({
  name: "canary",
  resource: canaries,
  permissions,
  concurrency: 4,
  turns: { of: key => key.slice(0, key.indexOf("/")), most: 2 },
  indexes: canaryIndexes,
  finalizer: canaryFinalizer,
  open: (wiring, objects) => ({
    ...openWorld(parts, wiring, objects),
    metrics: createCanaryMetrics(wiring.metrics),
  }),
  remember: newMemory,
  observe,
  plan,
  apply,
  reports: "after",
  report,
  onReported({ alerts, metrics }, { key, object }, status) {
    if (!status) return
    metrics.publish(key, object, status)
    if (alerts) for (const message of messagesOf(object, status)) alerts.send(object, message)
  },
  forget({ leave, metrics }, key) {
    metrics.forget(key)
    leave(key)
  },
})
