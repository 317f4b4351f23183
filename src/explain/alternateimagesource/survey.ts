import type { AlternateImageSource } from "#api/v1alpha1/alternateimagesource/index.ts"
import { decide } from "#controllers/alternateimagesource/decide.ts"
import type { Decision, Probe, Workload } from "#controllers/alternateimagesource/group.ts"
import { alternateImageSources, pods, workloadKinds } from "#controllers/alternateimagesource/resources.ts"
import { Sources, sourceIndexes } from "#controllers/alternateimagesource/sources.ts"
import { type Instant, parseInstant } from "#lib/instant.ts"
import type { CacheOptions, Projected } from "#runtime/cache/cache.ts"
import { stillCache } from "#runtime/cache/still.ts"
import type { Client } from "#runtime/client/client.ts"
import { isFailure } from "#runtime/client/errors.ts"
import { listAll } from "#runtime/client/list-all.ts"
import type { Clock } from "#runtime/clock.ts"
import { type Held, hold } from "#runtime/kind-controller.ts"
import { type KubeObject, keyOf, type Resource, resourceName } from "#runtime/resource.ts"

/** One namespace at one moment, as the controller would see it that had just started. */
export type Survey = {
  readonly namespace: string
  readonly now: Instant
  readonly all: readonly AlternateImageSource[]
  readonly sources: Sources
  /** As the server gave them. */
  pod(name: string): KubeObject | undefined
  workload(workload: Workload): KubeObject | undefined
  readonly podNames: readonly string[]
  /** Kinds that may not be listed, and what the server said to that. */
  readonly unseen: readonly string[]
}

/** Reads the AlternateImageSources of a namespace, its workloads and its pods, with the rights of whoever asks. */
export async function surveyNamespace(
  client: Client,
  namespace: string,
  { clock, signal }: { clock: Clock; signal?: AbortSignal },
): Promise<Survey> {
  const lists = new Map<string, ReadonlyMap<string, KubeObject>>()
  const unseen: string[] = []
  for (const resource of [alternateImageSources, pods, ...workloadKinds.map(kind => kind.resource)]) {
    const objects = await listAll(client, resource, { namespace }, signal)
      .then(({ items }) => items)
      .catch(error => {
        // Without the AlternateImageSources there is nothing to tell; without anything else there is less.
        if (resource === alternateImageSources || !isFailure(error, "Forbidden", "NotFound")) throw error
        unseen.push(`${resource.kind} (${error.message})`)
        return []
      })
    lists.set(resourceName(resource), new Map(objects.map(object => [keyOf(object.metadata), object])))
  }
  const listOf = (resource: Resource) => lists.get(resourceName(resource)) ?? new Map<string, KubeObject>()
  const watch = <T extends Projected>(resource: Resource, options: CacheOptions<T>) =>
    stillCache(listOf(resource).values(), options)
  const wiring = { clock, watch, enqueue: () => {}, enqueueAfter: () => {} }
  const sources = new Sources(
    wiring,
    watch<Held<AlternateImageSource>>(alternateImageSources, { project: hold, indexes: sourceIndexes }),
  )
  sources.open() // a pod is told of also where no source looks after it
  return {
    namespace,
    // Times in a status are the server's own; a cluster in a process may have its own speed.
    now: client.serverTime() ?? clock.now(),
    all: [...listOf(alternateImageSources).values()] as unknown as AlternateImageSource[],
    sources,
    pod: name => listOf(pods).get(keyOf({ namespace, name })),
    workload({ type, name }) {
      const kind = workloadKinds.find(each => each.name === type.kind)
      return listOf(kind?.resource ?? pods).get(keyOf({ namespace, name }))
    },
    podNames: [...listOf(pods).values()].map(({ metadata }) => metadata.name),
    unseen,
  }
}

/** What the controller decides about one source. Since when something fails, and what registries said, it alone remembers. */
export function decisionsOf(
  { sources, now }: Pick<Survey, "sources" | "now">,
  source: AlternateImageSource,
  probe: (image: string) => Probe | undefined = () => undefined,
): Decision[] {
  return sources.scene(source).groups.map(group => {
    const before = source.status?.targetsAvailable.find(
      ({ uid, container }) => uid === group.workload.uid && container === group.container,
    )
    const since = parseInstant(before?.incident?.since) ?? now
    const failing = group.failing.map(pod => ({ ...pod, since }))
    const decision = decide({ ...group, failing }, { policy: source.spec.policy, before, probe, now })
    // What it would have to ask first, the controller has asked: what it made of it stands in the status.
    const told = decision.asks.length > 0 ? before?.incident?.reason : undefined
    return told && told !== "Switched" ? { ...decision, reason: told, asks: [] } : decision
  })
}
