import { protobufType, readKubeEvent } from "#lib/kube-protobuf.ts"
import type { Clock } from "../clock.ts"
import { type KubeObject, type Resource, resourceName } from "../resource.ts"
import { type Call, type Caller, deadlinesMs, lifetime, maxBytes, metadataAs, noAnswer } from "./calls.ts"
import type { WatchEvent, WatchOptions } from "./client.ts"
import { KubeError } from "./errors.ts"
import { FrameSplitter } from "./frames.ts"
import { LineSplitter } from "./lines.ts"
import { collectionPath, type Query, subject } from "./path.ts"
import type { Response } from "./transport.ts"

/** The changes of a resource, as the server sends them. Ends quietly when the signal is aborted. */
export async function* watch<T extends KubeObject>(
  { open, refused }: Pick<Caller, "open" | "refused">,
  clock: Clock,
  resource: Resource,
  options: WatchOptions,
  signal: AbortSignal,
): AsyncGenerator<WatchEvent<T>> {
  const { namespace, silenceMs, sendInitialEvents, metadataOnly, ...selection } = options
  const query: Query = {
    watch: true,
    allowWatchBookmarks: true,
    labelSelector: selection.labelSelector,
    fieldSelector: selection.fieldSelector,
    resourceVersion: selection.resourceVersion,
    timeoutSeconds: selection.timeoutSeconds,
    ...(sendInitialEvents && { sendInitialEvents: true, resourceVersionMatch: "NotOlderThan" }),
  }
  const call: Call = {
    verb: "watch",
    doing: `${sendInitialEvents ? "listing" : "watching"} ${subject(resource, { namespace })}`,
    resource: resourceName(resource),
    method: "GET",
    path: collectionPath(resource, namespace, query),
    ...acceptOf(resource, metadataOnly),
    deadlineMs: silenceMs ?? deadlinesMs.list,
    maxBytes: maxBytes.event,
  }
  if (signal.aborted) return
  const life = lifetime(signal)
  const silence = silenceTimer(clock, life.end)
  try {
    silence.listen(call.deadlineMs)
    const response = await open(call, life.signal, { longLived: true })
    if (response.status !== 200) throw await refused(call, response)

    const pieces = splitterOf(response)
    const chunks = response.body[Symbol.asyncIterator]()
    for (;;) {
      if (silenceMs === undefined) silence.stop()
      else silence.listen(silenceMs)
      const chunk = await chunks.next()
      silence.rest() // the reader's own time does not count as the server's silence
      if (chunk.done) break
      for (const piece of pieces.push(chunk.value)) if (piece !== "") yield parseEvent<T>(piece)
    }
    if (pieces.rest > 0) throw new Error("the stream ended in the middle of an event")
  } catch (error) {
    if (signal.aborted) return
    throw error instanceof KubeError ? error : noAnswer(call, error, life.signal)
  } finally {
    silence.stop()
    life.release()
    life.end(new Error("the watch is over")) // ends the request if our reader left before the server did
  }
}

/** Ends something after a time of listening without a byte. One timer, however many bytes arrive. */
function silenceTimer(clock: Clock, end: (reason: Error) => void) {
  let limitMs = 0
  let listeningSince: number | undefined
  let cancel: (() => void) | undefined
  const arm = (ms: number) => {
    cancel = clock.after(ms, () => {
      const quietMs = listeningSince === undefined ? 0 : clock.monotonic() - listeningSince
      if (quietMs >= limitMs) end(new Error(`not a byte for ${limitMs / 1000} s`))
      else arm(limitMs - quietMs)
    })
  }
  return {
    listen(ms: number) {
      listeningSince = clock.monotonic()
      if (ms === limitMs) return
      cancel?.()
      limitMs = ms
      arm(ms)
    },
    rest() {
      listeningSince = undefined
    },
    stop() {
      cancel?.()
      limitMs = 0
    },
  }
}

/**
 * Pods are many and large. As protobuf they cost the server a third of what they cost as JSON, and their managedFields
 * are passed over without being read.
 */
function acceptOf({ group, plural }: Resource, metadataOnly: boolean | undefined): Pick<Call, "accept"> {
  if (metadataOnly) return { accept: metadataAs("PartialObjectMetadata") }
  return group === "" && plural === "pods" ? { accept: `${protobufType},application/json` } : {}
}

/** Cuts the stream into frames or lines, whichever form the server has chosen. */
const splitterOf = ({ headers }: Response) =>
  headers["content-type"]?.startsWith(protobufType)
    ? new FrameSplitter(maxBytes.event)
    : new LineSplitter(maxBytes.event)

const parseEvent = <T>(piece: string | Buffer): WatchEvent<T> =>
  checked(typeof piece === "string" ? JSON.parse(piece) : readKubeEvent(piece, { without: "managedFields" }))

const eventTypes = new Set(["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"])

function checked<T>(read: { type: string; object: unknown }): WatchEvent<T> {
  const event = read as WatchEvent<T>
  if (!eventTypes.has(event?.type) || typeof event.object !== "object" || event.object === null)
    throw new Error("a line of the stream is not a watch event")
  return event
}
