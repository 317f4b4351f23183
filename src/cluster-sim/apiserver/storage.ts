import type { User } from "../auth/user.ts"
import type { Json, Obj } from "../object.ts"
import type { ServedKind } from "./kind.ts"

/** Which object. */
export type Name = { namespace?: string | undefined; name: string }

export type WriteOptions = {
  fieldManager?: string
  /** The request itself names the manager. Otherwise the server derived it from the program's name. */
  namesManager?: boolean
  /**
   * `finalize` is for namespaces: only it changes spec.finalizers. `binding` is for pods: only it sets nodeName. It
   * takes spec.nodeName, annotations and the PodScheduled condition from the sent object.
   */
  subresource?: "status" | "scale" | "finalize" | "binding" | undefined
  dryRun?: boolean
  /** Unknown and duplicate fields: refused, reported as warnings, or dropped silently. The server's default is Warn. */
  fieldValidation?: "Strict" | "Warn" | "Ignore"
  /** Receives warnings (the HTTP layer sends them as headers). */
  warn?: (text: string) => void
  force?: boolean // server-side apply
  /** The body as received, if it was text: duplicate keys are visible only there. */
  text?: string
  /** For admission. Undefined for the cluster's own writes. */
  user?: User | undefined
  /** Called when an update finds no object. Throws unless the user may create it. */
  authorizeCreate?: (() => void) | undefined
  /** Set for a part of a request: policies see the whole request, or none of it. */
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
  /** One of the objects of a deletecollection. */
  isUnnamed?: boolean
}

export type PatchBody = { type: "json" | "merge" | "strategic" | "apply"; body: Json }

export type Selection = {
  namespace?: string | undefined
  labelSelector?: string | undefined
  fieldSelector?: string | undefined
}

/**
 * The API server without HTTP: every verb with its rules. It is synchronous, so that a write is one step and a run is a
 * function of its seed. HTTP and the physics (controllers, scheduler, kubelets) both use it. Refusals are thrown as
 * `StatusError`.
 */
export type KindStorage = {
  /** The served kind behind an apiVersion and kind, e.g. ("apps/v1", "Deployment"). */
  kind(apiVersion: string, kind: string): ServedKind | undefined
  /** The served kind behind a path, e.g. ("apps", "v1", "deployments"). */
  resource(group: string, version: string, plural: string): ServedKind | undefined
  kinds(): readonly ServedKind[]
  /** Sets the custom kinds of one CRD; an empty list removes them. */
  setCustomKinds(definition: string, kinds: readonly ServedKind[]): void

  get(kind: ServedKind, name: Name): Obj // throws NotFound
  find(kind: ServedKind, name: Name): Obj | undefined
  list(kind: ServedKind, selection?: Selection): { resourceVersion: string; items: readonly Obj[] }
  create(kind: ServedKind, object: Json, options?: WriteOptions): Obj
  update(kind: ServedKind, object: Json, options?: WriteOptions): Obj
  patch(kind: ServedKind, name: Name, patch: PatchBody, options?: WriteOptions): Obj
  /** Returns the object as it was when removed, or as it waits for its finalizers or its grace period. */
  delete(kind: ServedKind, name: Name, options?: DeleteOptions): Obj
  /** Calls the listener after each committed change, in commit order. */
  subscribe(kind: ServedKind, listener: (change: StorageChange) => void): () => void
}

export type StorageChange = { type: "ADDED" | "MODIFIED" | "DELETED"; object: Obj; before?: Obj }
