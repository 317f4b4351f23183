import { formatInstant } from "#lib/instant.ts"
import type { Json, Obj } from "../../object.ts"
import { StatusError } from "../../status-error.ts"
import type { PhysicsWorld } from "../world.ts"

export type EventAbout = { type: "Normal" | "Warning"; reason: string; message: string; fieldPath?: string }

export type EventRecorder = { say(object: Obj, about: EventAbout): void }

/** Remembered events per recorder; client-go keeps as many. */
const remembered = 4096
const aggregateAfter = 10
const aggregateWithinMs = 600_000
const burst = 25
const refillMs = 300_000

/**
 * Writes events as client-go's recorder does: the same event again raises its count, ten that differ only in their
 * message within ten minutes become one "combined" event, and who talks too much about one object is cut off after 25.
 */
export function createRecorder(world: PhysicsWorld, source: { component: string; host?: string }): EventRecorder {
  const { registry, clock, random } = world
  const kind = registry.kind("v1", "Event")
  const written = new Map<string, { name: string; namespace: string; count: number; first: string }>()
  const similar = new Map<string, { messages: Set<string>; last: number }>()
  const tokens = new Map<string, { left: number; at: number }>()

  const isSpam = (key: string, now: number): boolean => {
    const bucket = tokens.get(key) ?? { left: burst, at: now }
    bucket.left = Math.min(burst, bucket.left + (now - bucket.at) / refillMs)
    bucket.at = now
    touch(tokens, key, bucket)
    if (bucket.left < 1) return true
    bucket.left--
    return false
  }

  return {
    say(object, { type, reason, message, fieldPath }) {
      if (!kind) return
      const now = clock.now()
      const { name, namespace = "default", uid, resourceVersion } = object.metadata
      const group = `${uid} ${fieldPath ?? ""} ${type} ${reason}`
      const cluster = similar.get(group) ?? { messages: new Set<string>(), last: now }
      if (now - cluster.last > aggregateWithinMs) cluster.messages.clear()
      cluster.last = now
      cluster.messages.add(message)
      touch(similar, group, cluster)
      const isCombined = cluster.messages.size > aggregateAfter
      const text = isCombined ? `(combined from similar events): ${message}` : message
      if (isSpam(uid, now)) return

      const key = isCombined ? group : `${group} ${message}`
      const timestamp = formatInstant(now)
      const known = written.get(key)
      try {
        if (known && registry.find(kind, known)) {
          known.count++
          const body = { count: known.count, lastTimestamp: timestamp, message: text }
          registry.patch(kind, known, { type: "merge", body }, { fieldManager: source.component })
          return
        }
        const event: Json = {
          apiVersion: "v1",
          kind: "Event",
          metadata: { name: `${name}.${nanoseconds(now, random.next())}`, namespace },
          involvedObject: {
            apiVersion: object.apiVersion,
            ...(fieldPath && { fieldPath }),
            kind: object.kind,
            name,
            ...(object.metadata.namespace && { namespace: object.metadata.namespace }),
            resourceVersion,
            uid,
          },
          reason,
          message: text,
          source,
          firstTimestamp: timestamp,
          lastTimestamp: timestamp,
          count: 1,
          type,
          eventTime: null,
          reportingComponent: source.component,
          reportingInstance: source.host ?? "",
        }
        const created = registry.create(kind, event, { fieldManager: source.component })
        touch(written, key, { name: created.metadata.name, namespace, count: 1, first: timestamp })
      } catch (error) {
        // An event is lost where its namespace is going away; whoever speaks of it goes on.
        if (!(error instanceof StatusError)) throw error
      }
    },
  }
}

/** As client-go names events: the time in nanoseconds, in hexadecimal digits. */
export const nanoseconds = (now: number, chance: number) =>
  (BigInt(Math.round(now)) * 1_000_000n + BigInt(Math.floor(chance * 1e6))).toString(16)

/** Puts an entry at the young end, and forgets the oldest one where there are too many. */
function touch<T>(map: Map<string, T>, key: string, value: T) {
  map.delete(key)
  map.set(key, value)
  if (map.size > remembered) map.delete(map.keys().next().value as string)
}
