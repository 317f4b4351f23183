import { kindOf } from "#core/cluster-fleet/delivered.ts"
import type { Delivery } from "#core/cluster-fleet/transport.ts"
import type { Instant } from "#lib/instant.ts"
import type { Client } from "#runtime/client/index.ts"
import type { Clock } from "#runtime/clock.ts"
import type { KubeObject } from "#runtime/resource.ts"

type Read = { at: Instant; objects: readonly (KubeObject | undefined)[] }

/**
 * What a hub keeps of a cluster while it is worked on: the last read of each bundle, until a watch says that one of its
 * objects has changed. A watch is only a signal; what counts is read afterwards.
 */
export type Attention = {
  add(onChange: () => void): void
  /** How many are left. */
  drop(onChange: () => void): number
  kept(delivery: Delivery): Read | undefined
  /** Keeps a read, and has its objects watched. */
  keep(client: Client, delivery: Delivery, read: Read): void
  changed(): void
  end(): void
}

/** A watch that broke is opened again after this long; until then reads are not kept. */
const againMs = 5_000
const watchSeconds = 240
const silenceMs = 300_000

export function createAttention(clock: Clock): Attention {
  const listeners = new Set<() => void>()
  const reads = new Map<string, { delivery: Delivery; read: Read }>()
  const watches = new Map<string, { end: AbortController }>()
  const cancels = new Set<() => void>()

  function changed() {
    reads.clear()
    for (const listener of [...listeners]) listener()
  }

  function end() {
    for (const { end } of watches.values()) end.abort()
    for (const cancel of cancels) cancel()
    watches.clear()
    reads.clear()
    cancels.clear()
  }

  function watch(client: Client, delivery: Delivery, { objects }: Read) {
    for (const [index, { manifest }] of delivery.objects.entries()) {
      const { group, version, plural, kind, namespaced } = kindOf(manifest)
      const { name, namespace } = manifest.metadata
      const key = [plural, group, namespace ?? "", name].join("/")
      if (watches.has(key)) continue
      const own = { end: new AbortController() }
      watches.set(key, own)
      const resourceVersion = objects[index]?.metadata.resourceVersion
      const follow = async () => {
        try {
          const options = {
            ...{ fieldSelector: `metadata.name=${name}`, timeoutSeconds: watchSeconds, silenceMs },
            ...(namespace !== undefined && { namespace }),
            // Without one: the watch begins with what is there now, and misses nothing.
            ...(resourceVersion !== undefined && { resourceVersion }),
          }
          const resource = { group, version, plural, kind, namespaced }
          for await (const event of client.watch(resource, options, own.end.signal))
            if (event.type !== "BOOKMARK") changed()
        } catch {
          // Unreachable, or too old: the reads are not kept, and a later look opens it again.
        }
        if (watches.get(key) === own) watches.delete(key)
        reads.clear()
        if (own.end.signal.aborted) return
        const cancel = clock.after(againMs, () => {
          cancels.delete(cancel)
          changed()
        })
        cancels.add(cancel)
      }
      void follow()
    }
  }

  return {
    add: onChange => void listeners.add(onChange),
    drop(onChange) {
      listeners.delete(onChange)
      if (listeners.size === 0) end()
      return listeners.size
    },
    kept(delivery) {
      const found = reads.get(delivery.bundle)
      return found?.delivery === delivery ? found.read : undefined
    },
    keep(client, delivery, read) {
      reads.set(delivery.bundle, { delivery, read })
      watch(client, delivery, read)
    },
    changed,
    end,
  }
}
