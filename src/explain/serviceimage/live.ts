import type { ServiceImage } from "#api/v1alpha1/serviceimage/index.ts"
import { customResourceDefinitions, partsOf } from "#controllers/served-kind.ts"
import { newMemory, pass } from "#controllers/serviceimage/memory.ts"
import { observe } from "#controllers/serviceimage/observe.ts"
import { plan } from "#controllers/serviceimage/plan.ts"
import { betweens, events, nodes, pods, replicaSets } from "#controllers/serviceimage/pods.ts"
import { namespaces } from "#controllers/serviceimage/resources.ts"
import { Targets } from "#controllers/serviceimage/targets.ts"
import type { Instant } from "#lib/instant.ts"
import type { CacheOptions, Projected, WatchedCache } from "#runtime/cache/cache.ts"
import { createCache } from "#runtime/cache/create-cache.ts"
import { stillCache } from "#runtime/cache/still.ts"
import type { Client } from "#runtime/client/client.ts"
import type { Clock } from "#runtime/clock.ts"
import type { Random } from "#runtime/random.ts"
import { type Resource, resourceName } from "#runtime/resource.ts"
import { silentLogger } from "#runtime/silent-logger.ts"
import type { Surveyed } from "./survey.ts"

/** What is read to know single objects, beside the objects themselves. */
export const liveNeeds: readonly Resource[] = [
  customResourceDefinitions,
  namespaces,
  pods,
  nodes,
  events,
  replicaSets,
  ...betweens,
]

export type Live = {
  /** One rollout as its controller would decide it now; undefined until its objects are listed. */
  look(name: string, now: Instant): Surveyed | undefined
  close(): void
}

type Deps = { client: Client; clock: Clock; random: Random; onChange(name: string): void }

/**
 * The rollouts over one kind by the controller's own index, kept up to date by watches instead of one look at an
 * inventory. Only `liveNeeds` and the target's kind are read; whatever else a controller knows (Canaries of the
 * objects, pull jobs, failovers) counts as absent.
 */
export function openLive(target: Resource, all: () => readonly ServiceImage[], deps: Deps): Live {
  const life = new AbortController()
  const read = new Set([...liveNeeds, target].map(resourceName))
  const { client, clock, random, onChange } = deps
  const watch = <T extends Projected>(resource: Resource, options: CacheOptions<T>): WatchedCache<T> => {
    if (!read.has(resourceName(resource))) return stillCache<T>([], options)
    const cache = createCache({ client, clock, random }, resource, options)
    const own = new AbortController()
    cache.run(AbortSignal.any([own.signal, life.signal])).catch(() => {})
    return Object.defineProperties(cache, {
      close: { value: () => own.abort() },
      isCurrent: { get: () => cache.hasSynced },
      current: { value: () => cache.synced() },
    }) as WatchedCache<T>
  }
  const targets = new Targets({
    ...{ client, clock, random, watch },
    enqueue: onChange,
    enqueueAfter: () => {},
    log: silentLogger,
    events: { record: () => {}, flush: async () => {} },
    identity: "",
    signal: life.signal,
  })
  const { id } = partsOf({ apiVersion: `${target.group}/${target.version}`, kind: target.kind })
  return {
    look(name, now) {
      // Those over the same kind are claimed too: each object belongs to one of them.
      const rivals = all().filter(({ metadata, spec }) => !metadata.deletionTimestamp && partsOf(spec.target).id === id)
      let found: Surveyed | undefined
      for (const serviceImage of rivals) {
        const memory = newMemory()
        pass(memory, serviceImage, now)
        const electionID = serviceImage.status?.electionID ?? ""
        const seen = observe(targets, serviceImage, memory, { now, electionID })
        if (!seen || serviceImage.metadata.name !== name) continue
        const { snapshot, claim } = seen
        found = {
          serviceImage,
          resource: claim?.resource,
          snapshot,
          plan: plan(snapshot),
          fleet: snapshot.target.state === "Synced" ? claim?.fleet : undefined,
          conflicts: claim?.conflicts ?? new Map(),
        }
      }
      return found
    },
    close: () => life.abort(),
  }
}
