import type { Instant } from "#lib/instant.ts"
import type { Obj } from "../object.ts"
import { StatusError } from "../status-error.ts"
import { createTimers } from "./timers.ts"
import type { Part, PhysicsWorld } from "./world.ts"

/** The API server's default for `--event-ttl`. */
const keptMs = 60 * 60_000

/**
 * Removes Events an hour after they were last written. All are kept for the same time, so they expire in the order in
 * which they were written: one queue with one timer is enough for any number of them.
 */
export function eventExpiry({ storage, clock }: PhysicsWorld): Part {
  return {
    name: "event-expiry",
    start() {
      const kind = storage.kind("v1", "Event")
      if (!kind) return () => {}
      const timers = createTimers(clock)
      let queue: { name: string; namespace: string | undefined; version: string; at: Instant }[] = []
      let first = 0
      let isArmed = false

      function put({ metadata: { name, namespace, resourceVersion } }: Obj) {
        queue.push({ name, namespace, version: resourceVersion, at: clock.now() + keptMs })
        arm()
      }

      function arm() {
        const next = queue[first]
        if (!next || isArmed) return
        isArmed = true
        timers.after(next.at - clock.now(), expire)
      }

      function expire() {
        isArmed = false
        for (let next = queue[first]; next && next.at <= clock.now(); next = queue[++first]) drop(next)
        if (first > queue.length / 2) {
          queue = queue.slice(first)
          first = 0
        }
        arm()
      }

      function drop({ name, namespace, version }: (typeof queue)[number]) {
        // An Event that was written again has another entry further back in the queue.
        if (storage.find(kind!, { name, namespace })?.metadata.resourceVersion !== version) return
        try {
          storage.delete(kind!, { name, namespace })
        } catch (error) {
          if (!(error instanceof StatusError)) throw error
        }
      }

      for (const event of storage.list(kind).items) put(event)
      const stop = storage.subscribe(kind, ({ type, object }) => {
        if (type !== "DELETED") put(object)
      })
      return () => {
        stop()
        timers.clear()
      }
    },
  }
}
