import type { Client, ListOptions } from "#runtime/client/client.ts"
import { isFailure, KubeError } from "#runtime/client/errors.ts"
import { listAll } from "#runtime/client/list-all.ts"
import { type Clock, sleep } from "#runtime/clock.ts"
import { jitter, type Random } from "#runtime/random.ts"
import { type KubeObject, keyOf, type Resource } from "#runtime/resource.ts"

export type FollowOptions = {
  client: Client
  resource: Resource
  /** Only this object. */
  name?: string | undefined
  namespace?: string | undefined
  labelSelector?: string | undefined
  clock: Clock
  random: Random
  signal: AbortSignal
  /** The connection was lost and is being reopened. */
  onTrouble(error: unknown): void
  /** The server has sent something, be it a change or not. */
  onContact?(): void
}

const backoffMsMax = 30_000

/**
 * Yields the objects by key (`name`, or `namespace/name`), once as they are and again after each change, until the
 * signal is aborted. The same map every time. An error before the first answer is thrown, because the user may have to act; after it, the
 * connection is reopened. Controllers use the cache of the runtime, which hides all errors; people want to see them.
 */
export async function* follow<T extends KubeObject>(options: FollowOptions): AsyncGenerator<ReadonlyMap<string, T>> {
  const { client, resource, name, namespace, labelSelector, clock, random, signal, onTrouble } = options
  const selector = {
    ...(name !== undefined && { fieldSelector: `metadata.name=${name}` }),
    ...(namespace !== undefined && { namespace }),
    ...(labelSelector !== undefined && { labelSelector }),
  }
  const objects = new Map<string, T>()
  let version: string | undefined
  let failures = 0
  for (let isFirst = true; !signal.aborted; ) {
    try {
      if (version === undefined) {
        version = await fill(objects, options, selector)
        failures = 0
        isFirst = false
        options.onContact?.()
        yield objects
      }
      const watch = { ...selector, resourceVersion: version, timeoutSeconds: 300, silenceMs: 150_000 }
      for await (const event of client.watch<T>(resource, watch, signal)) {
        if (event.type === "ERROR")
          throw new KubeError(
            event.object.code === 410 ? "Gone" : "Unreachable",
            event.object.message ?? "the watch ended",
          )
        failures = 0
        options.onContact?.()
        version = event.object.metadata.resourceVersion ?? version
        if (event.type === "BOOKMARK") continue
        if (event.type === "DELETED") objects.delete(keyOf(event.object.metadata))
        else objects.set(keyOf(event.object.metadata), event.object)
        yield objects
      }
    } catch (error) {
      if (signal.aborted) return
      if (isFirst) throw error
      // List again after a lost connection: an answered list proves that the connection works, while a
      // silent watch proves nothing.
      version = undefined
      if (isFailure(error, "Gone")) {
        if (failures++ === 0) continue
      } else if (isFailure(error, "Forbidden", "NotFound", "Invalid")) throw error
      else if (failures++ === 0) onTrouble(error)
      await sleep(clock, jitter(random, Math.min(backoffMsMax, 500 * 2 ** failures)), signal).catch(() => {})
    }
  }
}

async function fill<T extends KubeObject>(
  objects: Map<string, T>,
  { client, resource, signal }: FollowOptions,
  selector: ListOptions,
): Promise<string> {
  const { items, resourceVersion } = await listAll<T>(client, resource, selector, signal)
  // Only now: the last state is shown until there is a newer one.
  objects.clear()
  for (const object of items) objects.set(keyOf(object.metadata), object)
  return resourceVersion
}
