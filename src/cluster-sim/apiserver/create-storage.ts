import { formatInstant } from "#lib/instant.ts"
import type { Clock } from "#runtime/clock.ts"
import type { Random } from "#runtime/random.ts"
import { apiVersionOf } from "#runtime/resource.ts"
import type { Json, Obj } from "../object.ts"
import type { Delivery, Store } from "../store/index.ts"
import type { Admission, Backend, Validation } from "./backend.ts"
import type { ServedKind } from "./kind.ts"
import { type Patching, schemaPatching } from "./patching.ts"
import { noPolicies, type Policies } from "./policies.ts"
import { notFound } from "./refusals.ts"
import { type Removal, removeObject } from "./removal.ts"
import { selector } from "./selectors.ts"
import type { DeleteOptions, KindStorage, Name, PatchBody, Selection, StorageChange, WriteOptions } from "./storage.ts"
import { patchObject, postObject, putObject } from "./writing.ts"

export type StorageOptions = {
  store: Store
  clock: Clock
  random: Random
  kinds: readonly ServedKind[]
  patching?: Patching
  admission?: readonly Admission[]
  validations?: readonly Validation[]
  /** Default: none. Policies are objects of the storage themselves. */
  policies?: (storage: ServerStorage) => Policies
}

/** What the HTTP layer needs beyond the verbs. */
export type ServerStorage = KindStorage & {
  readonly store: Store
  /** Like `delete`, and returns what became of the object. */
  remove(kind: ServedKind, name: Name, options?: DeleteOptions): Removal
  deleteCollection(kind: ServedKind, selection: Selection, options?: DeleteOptions): readonly Obj[]
  /** Like `update` of the object with this name; returns whether it had to be created. */
  put(kind: ServedKind, name: Name, object: Json, options?: WriteOptions): { object: Obj; isNew: boolean }
  patchOrCreate(kind: ServedKind, name: Name, patch: PatchBody, options?: WriteOptions): { object: Obj; isNew: boolean }
  /** A stored object as this kind's version shows it. */
  present(kind: ServedKind, stored: Obj): Obj
  /** Changes as they are stored, with a place where listeners share derived bytes. */
  deliveries(kind: ServedKind, listener: (delivery: Delivery) => void, name?: string): () => void
  /** Calls the listener when custom kinds are added or removed. */
  onKinds(listener: () => void): () => void
}

export function createStorage(options: StorageOptions): ServerStorage {
  const { store, clock, random, patching = schemaPatching, admission = [], validations = [] } = options
  const custom = new Map<string, readonly ServedKind[]>()
  const kindListeners = new Set<() => void>()
  let policies = noPolicies
  let served: readonly ServedKind[] = []
  let byKind = new Map<string, ServedKind>()
  let byResource = new Map<string, ServedKind>()

  function index() {
    served = [...options.kinds, ...[...custom.values()].flat()]
    byKind = new Map(served.map(kind => [`${apiVersionOf(kind)} ${kind.kind}`, kind]))
    byResource = new Map(served.map(kind => [`${kind.group}/${kind.version}/${kind.plural}`, kind]))
  }
  index()

  // ---- reading

  function present(kind: ServedKind, stored: Obj): Obj {
    const apiVersion = apiVersionOf(kind)
    if (kind.convert) return kind.convert.fromStorage(stored)
    if (stored.apiVersion === apiVersion) return stored
    return { ...stored, apiVersion, kind: kind.kind }
  }

  function find(kind: ServedKind, { namespace, name }: Name): Obj | undefined {
    const stored = store.get(kind.storage, kind.namespaced ? namespace : undefined, name)
    return stored && present(kind, stored)
  }

  function get(kind: ServedKind, name: Name): Obj {
    const found = find(kind, name)
    if (!found) throw notFound(kind, name.name)
    return found
  }

  function list(kind: ServedKind, selection: Selection = {}) {
    const matches = selector(kind, selection)
    const stored = store.list(kind.storage, selection.namespace || undefined)
    const apiVersion = apiVersionOf(kind)
    const isAsStored = !kind.convert && stored.every(object => object.apiVersion === apiVersion)
    const items = isAsStored ? stored : stored.map(object => present(kind, object))
    return { resourceVersion: String(store.revision), items: matches ? items.filter(matches) : items }
  }

  // ---- writing

  function commit(kind: ServedKind, before: Obj | undefined, after: Obj | undefined, manager: string): Obj {
    const stored = after && (kind.convert ? (kind.convert.toStorage(after) as Obj) : after)
    const name = (after ?? before)?.metadata as Obj["metadata"]
    const old = before && store.get(kind.storage, kind.namespaced ? name.namespace : undefined, name.name)
    return present(kind, store.commit({ place: kind.storage, before: old, after: stored, manager }).object)
  }

  const backend: Backend = {
    store,
    clock,
    random,
    patching,
    now: () => formatInstant(clock.now()),
    context: () => ({ now: formatInstant(clock.now()), random: random.next }),
    present,
    find,
    get,
    admit: request =>
      policies.mutate(request, sent =>
        admission.reduce((object, plugin) => plugin({ ...request, object, user: request.options.user }), sent),
      ),
    validate(request) {
      policies.validate(request)
      const { operation, object, options } = request
      if (operation === "delete" || !object) return
      for (const validation of validations)
        validation({ ...request, operation, object, dryRun: options.dryRun ?? false })
    },
    commit,
    namespacesPlace: () => byResource.get("/v1/namespaces")?.storage ?? "namespaces",
  }

  const storage: ServerStorage = {
    store,
    kind: (apiVersion, kind) => byKind.get(`${apiVersion} ${kind}`),
    resource: (group, version, plural) => byResource.get(`${group}/${version}/${plural}`),
    kinds: () => served,
    setCustomKinds(definition, kinds) {
      if (kinds.length === 0) custom.delete(definition)
      else {
        // A server keeps the changes of a kind from the moment it serves it.
        if (!custom.has(definition)) for (const { storage } of kinds) store.open(storage)
        custom.set(definition, kinds)
      }
      index()
      for (const listener of kindListeners) listener()
    },
    onKinds(listener) {
      kindListeners.add(listener)
      return () => kindListeners.delete(listener)
    },
    get,
    find,
    list,
    create: (kind, object, options) => postObject(backend, kind, object, options),
    update: (kind, object, options) => putObject(backend, kind, nameIn(object), object, options).object,
    put: (kind, name, object, options) => putObject(backend, kind, name, object, options),
    patch: (kind, name, patch, options) => patchObject(backend, kind, name, patch, options).object,
    patchOrCreate: (kind, name, patch, options) => patchObject(backend, kind, name, patch, options),
    delete: (kind, name, options) => removeObject(backend, kind, name, options).object,
    remove: (kind, name, options) => removeObject(backend, kind, name, options),
    deleteCollection(kind, selection, options) {
      const { items } = list(kind, selection)
      for (const { metadata } of items) {
        const { name, namespace } = metadata
        if (find(kind, { name, namespace }))
          removeObject(backend, kind, { name, namespace }, { ...options, isUnnamed: true })
      }
      return items
    },
    present,
    deliveries: (kind, listener, name) => store.subscribe(kind.storage, listener, name),
    subscribe(kind, listener) {
      return store.subscribe(kind.storage, ({ change: { type, object, before } }) => {
        const change: StorageChange = { type, object: present(kind, object) }
        listener(before ? { ...change, before: present(kind, before) } : change)
      })
    },
  }
  policies = options.policies?.(storage) ?? noPolicies
  return storage
}

const nameIn = ({ metadata }: Json): Name => ({ name: metadata?.name, namespace: metadata?.namespace })
