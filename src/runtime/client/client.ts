import type { Instant } from "#lib/instant.ts"
import type { KubeObject, ObjectName, Resource } from "../resource.ts"

export type List<T> = {
  metadata: { resourceVersion: string; continue?: string; remainingItemCount?: number }
  items: T[]
}

export type ListOptions = {
  namespace?: string | undefined
  labelSelector?: string
  fieldSelector?: string
  limit?: number
  continue?: string
  resourceVersion?: string
  resourceVersionMatch?: "Exact" | "NotOlderThan"
  /** Only the metadata of each object is sent, as a PartialObjectMetadata. */
  metadataOnly?: boolean
}

export type WatchOptions = {
  namespace?: string | undefined
  labelSelector?: string
  fieldSelector?: string
  resourceVersion?: string
  /** Asks for a stream that begins with the present state and marks its end with a bookmark (WatchList). */
  sendInitialEvents?: boolean
  /** The server ends the watch after this long. */
  timeoutSeconds?: number
  /** The client ends it, as `Unreachable`, when not a single byte has come for this long. */
  silenceMs?: number
  /** As of a list. */
  metadataOnly?: boolean
}

/** One line of a watch. `ERROR` carries a Status, `BOOKMARK` an object with nothing but its resourceVersion. */
export type WatchEvent<T> =
  | { type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK"; object: T }
  | { type: "ERROR"; object: { code?: number; reason?: string; message?: string } }

/**
 * A merge or JSON patch is unconditional unless its body carries `metadata.resourceVersion` (or a `test`): put it there
 * whenever the decision was made from something read. Prefer the resourceVersion: a `test` that fails comes back as
 * `Invalid`, which a real server does not tell apart from a malformed patch.
 */
export type Patch =
  | { type: "merge"; body: object }
  | { type: "strategic"; body: object }
  | { type: "json"; body: readonly object[] }
  | { type: "apply"; body: object; force?: boolean }

export type WriteOptions = {
  subresource?: "status" | "scale"
  dryRun?: boolean
  /** Default `aim`. */
  fieldManager?: string
  /** Default 30 s, retries included. The server is told, so that it gives up at the same time. */
  deadlineMs?: number
}

export type DeleteOptions = WriteOptions & {
  uid?: string
  resourceVersion?: string
  propagationPolicy?: "Foreground" | "Background" | "Orphan"
}

/**
 * Talks to one API server. Every failure is a `KubeError`. Reads are retried a little; a write only after a 429 or when
 * it never left this process, asking the guard again. A list or raw request whose signal is aborted rejects
 * (`Unreachable`); a watch just ends.
 */
export type Client = {
  get<T extends KubeObject>(resource: Resource, name: ObjectName): Promise<T>
  /** Items say their apiVersion and kind, as objects in a watch do. */
  list<T extends KubeObject>(resource: Resource, options?: ListOptions, signal?: AbortSignal): Promise<List<T>>
  watch<T extends KubeObject>(
    resource: Resource,
    options: WatchOptions,
    signal: AbortSignal,
  ): AsyncIterable<WatchEvent<T>>
  create<T extends KubeObject>(resource: Resource, object: T, options?: WriteOptions): Promise<T>
  replace<T extends KubeObject>(resource: Resource, object: T, options?: WriteOptions): Promise<T>
  patch<T extends KubeObject>(resource: Resource, name: ObjectName, patch: Patch, options?: WriteOptions): Promise<T>
  delete(resource: Resource, name: ObjectName, options?: DeleteOptions): Promise<void>
  /** The resource behind an apiVersion and kind as the server serves it now, or undefined. */
  discover(apiVersion: string, kind: string): Promise<Resource | undefined>
  /** For paths that are no resources: `/version`, `/readyz`. */
  raw(path: string, signal?: AbortSignal): Promise<unknown>
  /** What the server's clock said with its last answer, in whole seconds. What it stores was written by that clock. */
  serverTime(): Instant | undefined
  close(): void
}
