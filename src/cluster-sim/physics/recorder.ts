import { formatInstant } from "#lib/instant.ts"
import type { Obj } from "../object.ts"
import { StatusError } from "../status-error.ts"
import type { PhysicsWorld } from "./world.ts"

export type EventType = "Normal" | "Warning"
/** `fieldPath`: which part of the object it is about, such as one container. */
export type Recorder = (about: Obj, type: EventType, reason: string, message: string, fieldPath?: string) => void

const aggregateFrom = 10 // different messages with one reason about one object …
const aggregateMs = 600_000 // … in this time become one event
const burst = 25 // events about one object, and then …
const refillMs = 300_000 // … one in this time
const remembered = 4096

/**
 * Writes core/v1 Events as client-go's recorder does. A repeated message increments the count of its event, ten
 * different messages with one reason become a combined event, and too many events about one object are dropped.
 */
export function createRecorder({ storage, clock }: PhysicsWorld, component: string, host?: string): Recorder {
  const known = new Map<string, { name: string; count: number; firstTimestamp: string }>()
  const similar = new Map<string, { messages: Set<string>; at: number }>()
  const tokens = new Map<string, { left: number; at: number }>()
  let sequence = 0
  // A component without a host is part of the controller manager, which is the field manager of its writes.
  const written = { fieldManager: host ? component : "kube-controller-manager" }

  return (about, type, reason, message, fieldPath) => {
    const events = storage.kind("v1", "Event")
    if (!events) return
    const now = clock.now()
    const { namespace, name, uid, resourceVersion } = about.metadata
    const { kind, apiVersion } = about
    const object = { kind, namespace, name, uid, apiVersion, resourceVersion, ...(fieldPath && { fieldPath }) }
    const subject = [kind, namespace, name, uid, apiVersion, fieldPath, type].join("\0")
    const aggregateKey = [subject, reason].join("\0")

    const record = similar.get(aggregateKey)
    const messages = record && now - record.at <= aggregateMs ? record.messages : new Set<string>()
    messages.add(message)
    remember(similar, aggregateKey, { messages, at: now })
    const isCombined = messages.size >= aggregateFrom
    if (isCombined) messages.delete(messages.values().next().value!)
    const key = isCombined ? aggregateKey : [aggregateKey, message].join("\0")
    const text = isCombined ? `(combined from similar events): ${message}` : message

    const bucket = tokens.get(subject) ?? { left: burst, at: now }
    const left = Math.min(burst, bucket.left + (now - bucket.at) / refillMs)
    remember(tokens, subject, { left: left >= 1 ? left - 1 : left, at: now })

    const time = formatInstant(now)
    const seen = known.get(key)
    const entry = seen
      ? { ...seen, count: seen.count + 1 }
      : { name: `${name}.${nanoseconds(now, sequence++)}`, count: 1, firstTimestamp: time }
    remember(known, key, entry)
    if (left < 1) return

    const place = namespace ?? "default"
    try {
      const existing = seen && storage.find(events, { namespace: place, name: seen.name })
      if (existing)
        storage.update(events, { ...existing, count: entry.count, lastTimestamp: time, message: text }, written)
      else
        storage.create(
          events,
          {
            apiVersion: "v1",
            kind: "Event",
            metadata: { name: entry.name, namespace: place },
            involvedObject: object,
            reason,
            message: text,
            source: host ? { component, host } : { component },
            firstTimestamp: entry.firstTimestamp,
            lastTimestamp: time,
            count: entry.count,
            type,
            eventTime: null,
            // client-go builds a combined event anew, without the reporting component.
            reportingComponent: isCombined ? "" : component,
            reportingInstance: isCombined ? "" : (host ?? ""),
          },
          written,
        )
    } catch (error) {
      if (!(error instanceof StatusError)) throw error // a refused event is lost: its namespace is being deleted
    }
  }
}

/** As client-go names events: the time in nanoseconds, in hexadecimal digits. */
export const nanoseconds = (now: number, sequence: number) =>
  (BigInt(Math.trunc(now)) * 1_000_000n + BigInt(sequence % 1_000_000)).toString(16)

/** Least recently used goes first. */
function remember<T>(map: Map<string, T>, key: string, value: T) {
  map.delete(key)
  map.set(key, value)
  if (map.size > remembered) map.delete(map.keys().next().value!)
}
