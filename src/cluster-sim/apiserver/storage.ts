import type { User } from "../auth/user.ts"
import type { Json, Obj } from "../object.ts"
import type { ServedKind } from "./kind.ts"

/** Which object. */
export type Name = { namespace?: string | undefined; name: string }

export type WriteOptions = {
  fieldManager?: string
  /** The request itself names the manager; else the server took it from the program's name. */
  namesManager?: boolean
  /**
   * `finalize` is a namespace's, the one way to its spec.finalizers; `binding` a pod's, the one way to its nodeName: it
   * takes spec.nodeName, annotations and the PodScheduled condition from what is sent.
   */
  subresource?: "status" | "scale" | "finalize" | "binding" | undefined
  dryRun?: boolean
  /** Unknown and duplicate fields: refused, told as warnings, or dropped in silence. The server's default is Warn. */
  fieldValidation?: "Strict" | "Warn" | "Ignore"
  /** Receives warnings (the HTTP layer sends them as headers). */
  warn?: (text: string) => void
  force?: boolean // server-side apply
  /** The body as it came, where it came as text: two keys of one name are only seen there. */
  text?: string
  /** For admission. Undefined for what the cluster writes by itself. */
  user?: User | undefined
  /** Throws unless an update that finds no object may create it. */
  authorizeCreate?: (() => void) | undefined
  /** A part of a request about which policies are asked as a whole, or not at all. */
  asksNoPolicy?: boolean
}

export type DeleteOptions = {
  gracePeriodSeconds?: number
  propagationPolicy?: "Orphan" | "Background" | "Foreground"
  preconditions?: { uid?: string; resourceVersion?: string }
  dryRun?: boolean
  user?: User | undefined
  warn?: (text: string) => void
  asksNoPolicy?: boolean
  /** One of many that a request deletes without naming them. */
  isUnnamed?: boolean
}

export type PatchBody = { type: "json" | "merge" | "strategic" | "apply"; body: Json }

export type Selection = {
  namespace?: string | undefined
  labelSelector?: string | undefined
  fieldSelector?: string | undefined
}

/**
 * The API server without HTTP: every verb with its rules, synchronous, so that a write is one step and a run is a
 * function of its seed. HTTP and the physics (controllers, scheduler, kubelets) stand on it alike. Refusals are thrown
 * as `StatusError`.
 */
export type KindStorage = {
  /** The served kind behind an apiVersion and kind, e.g. ("apps/v1", "Deployment"). */
  kind(apiVersion: string, kind: string): ServedKind | undefined
  /** The served kind behind a path, e.g. ("apps", "v1", "deployments"). */
  resource(group: string, version: string, plural: string): ServedKind | undefined
  kinds(): readonly ServedKind[]
  /** Custom kinds come and go with their CRDs. */
  setCustomKinds(definition: string, kinds: readonly ServedKind[]): void

  get(kind: ServedKind, name: Name): Obj // throws NotFound
  find(kind: ServedKind, name: Name): Obj | undefined
  list(kind: ServedKind, selection?: Selection): { resourceVersion: string; items: readonly Obj[] }
  create(kind: ServedKind, object: Json, options?: WriteOptions): Obj
  update(kind: ServedKind, object: Json, options?: WriteOptions): Obj
  patch(kind: ServedKind, name: Name, patch: PatchBody, options?: WriteOptions): Obj
  /** The object as it was at its end, or as it waits for its finalizers or its grace period. */
  delete(kind: ServedKind, name: Name, options?: DeleteOptions): Obj
  /** Told after each committed change, in commit order. */
  subscribe(kind: ServedKind, listener: (change: StorageChange) => void): () => void
}

export type StorageChange = { type: "ADDED" | "MODIFIED" | "DELETED"; object: Obj; before?: Obj }
