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
  /** The server sends only the metadata of each object, as a PartialObjectMetadata. */
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
  /** The client ends it, as `Unreachable`, when not a single byte has arrived for this long. */
  silenceMs?: number
  /** As in a list. */
  metadataOnly?: boolean
}

/** One line of a watch. `ERROR` carries a Status, `BOOKMARK` an object with nothing but its resourceVersion. */
export type WatchEvent<T> =
  | { type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK"; object: T }
  | { type: "ERROR"; object: { code?: number; reason?: string; message?: string } }

/**
 * A merge or JSON patch is unconditional unless its body carries `metadata.resourceVersion` (or a `test`): put it there
 * whenever the decision was made from an object that was read. Prefer the resourceVersion: a failed `test` comes back
 * as `Invalid`, and a real server answers a malformed patch in the same way.
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
  /** Default 30 s, retries included. It is sent to the server, which gives up at the same time. */
  deadlineMs?: number
}

/** The answer, and where a budget is spent the server's words about it. */
export type MayEvict = { is: "Allowed" } | { is: "Spent"; said: string }

export type DeleteOptions = WriteOptions & {
  uid?: string
  resourceVersion?: string
  propagationPolicy?: "Foreground" | "Background" | "Orphan"
}

/**
 * Talks to one API server. Every failure is a `KubeError`. Reads are retried a few times; a write only after a 429 or
 * when it never left this process, and the guard is called again. A list or raw request whose signal is aborted rejects
 * (`Unreachable`); a watch just ends.
 */
export type Client = {
  get<T extends KubeObject>(resource: Resource, name: ObjectName): Promise<T>
  /** Items carry their apiVersion and kind, as objects in a watch do. */
  list<T extends KubeObject>(resource: Resource, options?: ListOptions, signal?: AbortSignal): Promise<List<T>>
  /** Pods may come without their managedFields. */
  watch<T extends KubeObject>(
    resource: Resource,
    options: WatchOptions,
    signal: AbortSignal,
  ): AsyncIterable<WatchEvent<T>>
  create<T extends KubeObject>(resource: Resource, object: T, options?: WriteOptions): Promise<T>
  replace<T extends KubeObject>(resource: Resource, object: T, options?: WriteOptions): Promise<T>
  patch<T extends KubeObject>(resource: Resource, name: ObjectName, patch: Patch, options?: WriteOptions): Promise<T>
  delete(resource: Resource, name: ObjectName, options?: DeleteOptions): Promise<void>
  /** Whether every PodDisruptionBudget would let a pod go now. Always a dry run: this client cannot evict a pod. */
  mayEvict(pods: Resource, name: ObjectName): Promise<MayEvict>
  /** The resource behind an apiVersion and kind as the server serves it now, or undefined. */
  discover(apiVersion: string, kind: string): Promise<Resource | undefined>
  /** For paths that are no resources: `/version`, `/readyz`. */
  raw(path: string, signal?: AbortSignal): Promise<unknown>
  /** The server's clock at its last answer, in whole seconds. That clock writes the times in stored objects. */
  serverTime(): Instant | undefined
  close(): void
}
