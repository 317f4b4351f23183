import type { AlternateImageSource } from "#api/v1alpha1/alternateimagesource/index.ts"
import { Holds } from "#core/holds.ts"
import type { RegistryClient } from "#registry/index.ts"
import type { Cache } from "#runtime/cache/cache.ts"
import type { Wiring } from "#runtime/controller.ts"
import type { Held } from "#runtime/kind-controller.ts"
import { watchGrants } from "../grants.ts"
import { createWriteTurns } from "./apply.ts"
import { type AlternateImageSourceMetrics, createAlternateImageSourceMetrics } from "./metrics.ts"
import { Probes } from "./probes.ts"
import { PullPace } from "./pull-pace.ts"
import { Sources } from "./sources.ts"

/** What all AlternateImageSources of a process share. */
export type World = Pick<Wiring, "client" | "clock" | "enqueueAfter"> & {
  sources: Sources
  probes: Probes
  inTurn: ReturnType<typeof createWriteTurns>
  pace: PullPace
  /** Sources whose writes the server refuses. */
  holds: Holds<"Forbidden" | "Refused">
  metrics: AlternateImageSourceMetrics
}

export function openWorld(
  wiring: Wiring,
  objects: Cache<Held<AlternateImageSource>>,
  registry: Pick<RegistryClient, "resolve"> | undefined,
): World {
  const { client, clock, enqueueAfter } = wiring
  const sources = new Sources(wiring, objects)
  const metrics = createAlternateImageSourceMetrics(wiring.metrics)
  const probes = new Probes({ client, clock, registry, onAnswer: metrics.probed })
  const holds: World["holds"] = new Holds()
  watchGrants(wiring, namespace => {
    holds.release(namespace)
    probes.forget(namespace)
    const all = () => [...objects.entries()].map(([key]) => key)
    const concerned = namespace === undefined ? all() : objects.keysBy("namespace", namespace)
    for (const key of concerned) wiring.enqueue(key)
  })
  const inTurn = createWriteTurns()
  return { client, clock, enqueueAfter, sources, probes, holds, metrics, inTurn, pace: new PullPace(clock) }
}
