import type { Clock } from "#runtime/clock.ts"
import type { Random } from "#runtime/random.ts"
import { apiVersionOf } from "#runtime/resource.ts"
import type { ServerStorage } from "../apiserver/create-storage.ts"
import type { ServedKind } from "../apiserver/kind.ts"
import { expired } from "../apiserver/refusals.ts"
import { selector } from "../apiserver/selectors.ts"
import type { Json, Obj } from "../object.ts"
import { emptyObject } from "../schema/decode.ts"
import type { Change, Delivery } from "../store/index.ts"
import { statusOf } from "./answer.ts"
import { type Form, partial, table } from "./forms.ts"
import { tooLarge } from "./lists.ts"
import { type ListRequest, revisionOf } from "./query.ts"

export type WatchInput = {
  storage: ServerStorage
  clock: Clock
  random: Random
  kind: ServedKind
  namespace: string | undefined
  request: ListRequest
  form: Form
  signal: AbortSignal
}

const bookmarkEveryMs = 60_000
const bookmarkBeforeEndMs = 2000
/** A watch of a reader this far behind is ended, as the server does. The client then lists and watches again. */
const maxWaiting = 100_000

/** Events of a kind from a revision on, as lines of JSON. Refusals before the stream begins are thrown. */
export function watchStream(input: WatchInput): AsyncIterable<Uint8Array> {
  const { storage, clock, random, kind, namespace, request, form, signal } = input
  const { store } = storage
  const matches = selector(kind, request)
  const selects = (object: Obj | undefined): object is Obj =>
    object !== undefined &&
    (namespace === undefined || object.metadata.namespace === namespace) &&
    (!matches || matches(object))

  const { resourceVersion, sendInitialEvents } = request
  const from = resourceVersion === "" || resourceVersion === "0" ? undefined : revisionOf(resourceVersion, "watch")
  const wantsState = sendInitialEvents ?? from === undefined
  if (wantsState && from !== undefined && from > store.revision) throw tooLarge(from, store.revision)

  const stream = new EventStream(signal)
  let columnsSent = false
  const formKey = `${apiVersionOf(kind)} ${form.as}`

  const line = (type: string, object: Json) => Buffer.from(`{"type":"${type}","object":${JSON.stringify(object)}}\n`)
  const encode = (type: string, object: Obj): Uint8Array => {
    if (form.as === "object") return line(type, object)
    if (form.as === "metadata") return line(type, partial(object))
    const metadata = { resourceVersion: object.metadata.resourceVersion }
    const hasColumns = !columnsSent
    columnsSent = true
    return line(type, table(kind, [object], { include: form.include, nowMs: clock.now(), metadata, hasColumns }))
  }

  /** A change as a watch with a selector sees it: a pod that loses the label is a deleted pod. */
  function seen({ type, object, before }: Change): { type: string; object: Obj } | undefined {
    const after = type === "DELETED" ? undefined : storage.present(kind, object)
    const earlier = before && storage.present(kind, before)
    const isSeen = selects(after)
    const wasSeen = selects(earlier)
    if (isSeen) return { type: wasSeen ? "MODIFIED" : "ADDED", object: after }
    if (!wasSeen || !earlier) return undefined
    const { resourceVersion } = object.metadata
    return { type: "DELETED", object: { ...earlier, metadata: { ...earlier.metadata, resourceVersion } } }
  }

  function tell({ change, shared }: Delivery) {
    const event = seen(change)
    if (!event) return
    if (form.as === "table") return stream.push(encode(event.type, event.object)) // columns are sent once per reader
    const key = `${event.type} ${formKey}`
    const bytes = shared.get(key) ?? encode(event.type, event.object)
    shared.set(key, bytes)
    stream.push(bytes)
  }

  const bookmark = (revision: number, isEndOfState = false) => {
    const annotations = isEndOfState ? { annotations: { "k8s.io/initial-events-end": "true" } } : {}
    const metadata = { resourceVersion: String(revision), ...annotations }
    const nothing = kind.isCustom ? {} : emptyObject(kind.schema)
    const object = { ...nothing, kind: kind.kind, apiVersion: apiVersionOf(kind), metadata } as Obj
    if (form.as === "object") return line("BOOKMARK", object)
    if (form.as === "metadata") return line("BOOKMARK", partial(object))
    const empty = table(kind, [], {
      ...form,
      nowMs: 0,
      metadata: { resourceVersion: String(revision) },
      hasColumns: false,
    })
    return line("BOOKMARK", { ...empty, rows: [{ cells: null, object: partial(object) }] })
  }

  // The state first, then later changes. This is one synchronous step, so that no change is missed in between.
  const startsAt = store.revision
  if (wantsState) {
    const { items } = storage.list(kind, { namespace })
    const state = matches ? items.filter(matches) : items
    const mine = form.as === "table" ? [...state] : state // rows are made per reader
    stream.begin(pieces(mine, formKey, object => encode("ADDED", object)))
    if (sendInitialEvents && request.allowWatchBookmarks) stream.push(bookmark(startsAt, true))
  } else if (from !== undefined && from < startsAt) {
    const missed = store.since(kind.storage, from)
    if (!missed) {
      stream.push(line("ERROR", statusOf(expired(`too old resource version: ${from} (${startsAt})`))))
      stream.end()
      return stream
    }
    for (const change of missed) tell({ change, shared: new Map() })
  }

  const isServed = () => storage.resource(kind.group, kind.version, kind.plural) !== undefined
  let toldUpTo = Math.max(startsAt, from ?? 0)
  const tellNext = (delivery: Delivery) => {
    if (delivery.change.revision <= toldUpTo) return
    toldUpTo = delivery.change.revision
    tell(delivery)
  }
  const releases = [
    storage.deliveries(kind, tellNext, nameIn(request.fieldSelector)),
    storage.onKinds(() => {
      if (isServed()) return
      // The kind's objects were deleted with it, and these changes may not have been delivered yet.
      for (const change of store.since(kind.storage, toldUpTo) ?? []) tellNext({ change, shared: new Map() })
      stream.end()
    }),
  ]
  // Half an hour to an hour, so that a thousand watches do not reconnect in the same second.
  const timeoutMs = (request.timeoutSeconds || Math.floor(1800 * (1 + random.next()))) * 1000
  releases.push(clock.after(timeoutMs, () => stream.end()))
  if (request.allowWatchBookmarks)
    releases.push(bookmarks(clock, timeoutMs, () => stream.push(bookmark(store.revision))))
  stream.onEnd(() => {
    for (const release of releases) release()
  })
  return stream
}

/** The one name that a selector admits, where it is nothing but that name. */
const nameIn = (fieldSelector: string | undefined) => /^metadata\.name=([a-zA-Z0-9.-]+)$/.exec(fieldSelector ?? "")?.[1]

const perPiece = 256

/**
 * The state of a cluster, some hundred objects at a time. Watches that begin together read the same snapshot, so the
 * last pieces of it are cached: with ten watches, nine find their pieces already made.
 */
function* pieces(state: readonly Obj[], form: string, encode: (object: Obj) => Uint8Array): Generator<Uint8Array> {
  for (let from = 0; from < state.length; from += perPiece) {
    const made = madeOf(state)
    const key = `${form} ${from}`
    const piece = made.get(key) ?? Buffer.concat(state.slice(from, from + perPiece).map(encode))
    made.set(key, piece)
    for (const oldest of made.keys()) {
      if (made.size <= 4) break
      made.delete(oldest)
    }
    yield piece
  }
}

const made = new WeakMap<readonly Obj[], Map<string, Uint8Array>>()

function madeOf(state: readonly Obj[]): Map<string, Uint8Array> {
  const found = made.get(state) ?? new Map()
  made.set(state, found)
  return found
}

/** Sends a bookmark each minute, and once more shortly before the end, so that a client can resume from there. */
function bookmarks(clock: Clock, timeoutMs: number, send: () => void): () => void {
  const last = clock.monotonic() + timeoutMs - bookmarkBeforeEndMs
  let cancel = () => {}
  const arm = () => {
    const left = last - clock.monotonic()
    cancel = clock.after(left > 0 ? Math.min(left, bookmarkEveryMs) : bookmarkEveryMs, () => {
      send()
      arm()
    })
  }
  arm()
  return () => cancel()
}

/** Chunks for one reader. A read takes all waiting chunks at once. */
class EventStream implements AsyncIterable<Uint8Array>, AsyncIterator<Uint8Array> {
  #waiting: Uint8Array[] = []
  #state: Iterator<Uint8Array> | undefined
  #reader: PromiseWithResolvers<IteratorResult<Uint8Array>> | undefined
  #isOver = false
  #onEnd: (() => void) | undefined
  readonly #signal: AbortSignal
  readonly #abort = () => this.#close()

  constructor(signal: AbortSignal) {
    this.#signal = signal
    signal.addEventListener("abort", this.#abort, { once: true })
  }

  /** Sends this first. It is encoded as it is read, so the first chunk does not wait for the last. */
  begin(state: Iterator<Uint8Array>) {
    this.#state = state
  }

  push(bytes: Uint8Array) {
    if (this.#isOver) return
    this.#waiting.push(bytes)
    if (this.#waiting.length > maxWaiting) return this.end()
    const reader = this.#reader
    if (!reader) return
    this.#reader = undefined
    reader.resolve({ done: false, value: this.#take() as Uint8Array })
  }

  end() {
    this.#close()
  }

  onEnd(callback: () => void) {
    if (this.#isOver) callback()
    else this.#onEnd = callback
  }

  [Symbol.asyncIterator]() {
    return this
  }

  next(): Promise<IteratorResult<Uint8Array>> {
    if (this.#signal.aborted) return Promise.reject(this.#signal.reason)
    const value = this.#take()
    if (value) return Promise.resolve({ done: false, value })
    if (this.#isOver) return Promise.resolve({ done: true, value: undefined })
    this.#reader = Promise.withResolvers()
    return this.#reader.promise
  }

  return(): Promise<IteratorResult<Uint8Array>> {
    this.#close()
    return Promise.resolve({ done: true, value: undefined })
  }

  #take(): Uint8Array | undefined {
    const piece = this.#state?.next()
    if (piece && !piece.done) return piece.value
    this.#state = undefined
    const all = this.#waiting
    if (all.length === 0) return undefined
    this.#waiting = []
    return all.length === 1 ? all[0] : Buffer.concat(all)
  }

  #close() {
    if (this.#isOver) return
    this.#isOver = true
    this.#signal.removeEventListener("abort", this.#abort)
    this.#onEnd?.()
    const reader = this.#reader
    this.#reader = undefined
    if (!reader) return
    if (this.#signal.aborted) reader.reject(this.#signal.reason)
    else reader.resolve({ done: true, value: undefined })
  }
}
