import { formatInstant } from "#lib/instant.ts"
import type { Clock } from "#runtime/clock.ts"
import type { Random } from "#runtime/random.ts"
import { apiVersionOf } from "#runtime/resource.ts"
import type { User } from "../auth/user.ts"
import type { Json, ManagedFields, Obj } from "../object.ts"
import { kubernetesSchema } from "../schema/index.ts"
import { StatusError } from "../status-error.ts"
import type { Delivery, Store } from "../store/index.ts"
import { planDeletion, withMetadata, withoutUndefined } from "./deletion.ts"
import { equal } from "./equal.ts"
import type { ServedKind, StrategyContext } from "./kind.ts"
import { finalizerWarnings, orderedMetadata, validateNew, validateUpdate } from "./metadata.ts"
import { generateName } from "./names.ts"
import { type Patching, schemaPatching } from "./patching.ts"
import {
  alreadyExists,
  badRequest,
  cause,
  conflict,
  forbidden,
  generatedNameTaken,
  invalid,
  modifiedMeanwhile,
  notFound,
} from "./refusals.ts"
import type { DeleteOptions, Name, PatchBody, Registry, RegistryChange, Selection, WriteOptions } from "./registry.ts"
import { appliedScale, scaleOf, withScale } from "./scale.ts"
import { selector } from "./selectors.ts"

/**
 * Looks at a write before it is checked, may change what is written or refuse it by throwing. For what depends on other
 * objects, which a kind's strategy does not see (the admission plugins of a real server).
 */
export type Admission = (request: {
  operation: "create" | "update"
  kind: ServedKind
  object: Json
  old: Obj | undefined
  subresource: string | undefined
  /** Undefined for what the cluster writes by itself. */
  user: User | undefined
}) => Json

export type RegistryOptions = {
  store: Store
  clock: Clock
  random: Random
  kinds: readonly ServedKind[]
  patching?: Patching
  admission?: readonly Admission[]
}

/** What the HTTP layer needs beyond the verbs. */
export type ServerRegistry = Registry & {
  readonly store: Store
  /** Like `delete`, and says what became of the object. */
  remove(kind: ServedKind, name: Name, options?: DeleteOptions): Removal
  deleteCollection(kind: ServedKind, selection: Selection, options?: DeleteOptions): readonly Obj[]
  /** Like `update` of the object with this name; says whether it had to be created. */
  put(kind: ServedKind, name: Name, object: Json, options?: WriteOptions): { object: Obj; isNew: boolean }
  patchOrCreate(kind: ServedKind, name: Name, patch: PatchBody, options?: WriteOptions): { object: Obj; isNew: boolean }
  /** A stored object as this kind's version shows it. */
  present(kind: ServedKind, stored: Obj): Obj
  /** Changes as they are stored, with a place to share what is made of them. */
  deliveries(kind: ServedKind, listener: (delivery: Delivery) => void): () => void
  /** Told when custom kinds come or go. */
  onKinds(listener: () => void): () => void
}

export type Removal = { object: Obj; is: "removed" | "marked" | "pending" }

export function createRegistry(options: RegistryOptions): ServerRegistry {
  const { store, clock, random, patching = schemaPatching, admission = [] } = options
  const custom = new Map<string, readonly ServedKind[]>()
  const kindListeners = new Set<() => void>()
  let served: readonly ServedKind[] = []
  let byKind = new Map<string, ServedKind>()
  let byResource = new Map<string, ServedKind>()

  function index() {
    served = [...options.kinds, ...[...custom.values()].flat()]
    byKind = new Map(served.map(kind => [`${apiVersionOf(kind)} ${kind.kind}`, kind]))
    byResource = new Map(served.map(kind => [`${kind.group}/${kind.version}/${kind.plural}`, kind]))
  }
  index()

  const now = () => formatInstant(clock.now())
  const context = (): StrategyContext => ({ now: now(), random: random.next })

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

  const admit = (request: Parameters<Admission>[0]) =>
    admission.reduce((object, plugin) => plugin({ ...request, object }), request.object)

  /** What a namespace that is not there, or is on its way out, refuses. */
  function checkNamespace(kind: ServedKind, { namespace, name }: { namespace?: string; name: string }) {
    if (!kind.namespaced || !namespace) return
    const home = store.get(namespacesPlace(), undefined, namespace)
    if (!home) throw notFound({ group: "", plural: "namespaces" }, namespace)
    if (home.metadata.deletionTimestamp === undefined) return
    throw forbidden(
      kind,
      name,
      `unable to create new content in namespace ${namespace} because it is being terminated`,
      [
        {
          reason: "NamespaceTerminating",
          message: `namespace ${namespace} is being terminated`,
          field: "metadata.namespace",
        },
      ],
    )
  }

  const namespacesPlace = () => byResource.get("/v1/namespaces")?.storage ?? "namespaces"

  function create(kind: ServedKind, body: Json, options: WriteOptions = {}): Obj {
    const decoded = patching.decode(kind, typed(kind, body), options)
    return createDecoded(kind, decoded, options, false)
  }

  function createDecoded(kind: ServedKind, decoded: Json, options: WriteOptions, isApplied: boolean): Obj {
    const { strategy } = kind
    const manager = options.fieldManager || "unknown"
    const sent = decoded.metadata ?? {}
    if (sent.resourceVersion && sent.resourceVersion !== "0")
      throw new StatusError(500, "", "resourceVersion should not be set on objects to be created")
    checkNamespace(kind, { ...sent, name: sent.name ?? "" })
    const isGenerated = !sent.name && Boolean(sent.generateName)
    const metadata = withoutUndefined({
      ...sent,
      name: isGenerated ? generateName(sent.generateName, random.next) : sent.name,
      namespace: kind.namespaced ? sent.namespace : undefined,
      uid: random.uuid(),
      creationTimestamp: now(),
      generation: undefined,
      resourceVersion: undefined,
      deletionTimestamp: undefined,
      deletionGracePeriodSeconds: undefined,
      selfLink: undefined,
    })
    let object = ordered(kind, { ...decoded, metadata })
    object = strategy.default?.(object) ?? object
    const managedFields = isApplied
      ? sent.managedFields
      : patching.track({ kind, before: undefined, after: object, manager, now: now() })
    object = admit({ operation: "create", kind, object, old: undefined, subresource: undefined, user: options.user })
    object = strategy.prepareCreate
      ? strategy.prepareCreate(object, context())
      : kind.subresources.includes("status")
        ? without(object, "status")
        : object
    // Kinds without a generation of their own keep what they are sent, and nobody ever moves it.
    const hasGeneration = strategy.movesGeneration || kind.isCustom
    const generation = hasGeneration ? (object.metadata.generation ?? 1) : sent.generation
    object = { ...object, metadata: { ...object.metadata, generation } }
    const causes = [...validateNew(kind, object.metadata), ...(strategy.validateCreate?.(object) ?? [])]
    if (causes.length > 0) throw invalid(kind, object.metadata.name ?? "", causes)
    options.authorizeCreate?.()
    if (kind.isCustom) for (const warning of finalizerWarnings(object.metadata, undefined)) options.warn?.(warning)
    const taken = store.get(kind.storage, metadata.namespace, metadata.name)
    if (taken && isGenerated) throw generatedNameTaken(kind, metadata.name)
    if (taken) throw alreadyExists(kind, metadata.name, taken.metadata.deletionTimestamp !== undefined)
    object = managedBy(object, managedFields)
    if (options.dryRun) return object
    // The store fills in the version, where the server writes it.
    const numbered = { ...object, metadata: orderedMetadata({ ...object.metadata, resourceVersion: "" }) }
    return commit(kind, undefined, numbered, manager)
  }

  function put(kind: ServedKind, name: Name, body: Json, options: WriteOptions = {}): { object: Obj; isNew: boolean } {
    if (options.subresource === "scale") {
      const old = get(kind, name)
      checkUid(kind, old, body.metadata?.uid)
      return { object: revise(kind, old, withScale(kind, old, body), options), isNew: false }
    }
    const decoded = patching.decode(kind, typed(kind, body), options)
    checkName(decoded, name)
    const old = find(kind, name)
    if (!old) {
      if (!kind.strategy.allowsCreateOnUpdate || options.subresource) throw notFound(kind, name.name)
      return { object: createDecoded(kind, decoded, options, false), isNew: true }
    }
    checkUid(kind, old, decoded.metadata?.uid)
    return { object: revise(kind, old, decoded, options), isNew: false }
  }

  function checkUid(kind: ServedKind, { metadata }: Obj, uid: string | undefined) {
    if (!uid || uid === metadata.uid) return
    const key = `/registry/${kind.storage.replace(/^core\//, "")}/${metadata.namespace ? `${metadata.namespace}/` : ""}${metadata.name}`
    throw conflict(
      kind,
      metadata.name,
      `StorageError: invalid object, Code: 4, Key: ${key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: ${uid}, UID in object meta: ${metadata.uid}`,
    )
  }

  function patchOrCreate(kind: ServedKind, name: Name, patch: PatchBody, options: WriteOptions = {}) {
    const old = find(kind, name)
    if (options.subresource === "scale") {
      const current = old ?? get(kind, name)
      if (patch.type === "apply") {
        const applied = patching.apply(kind, current, appliedScale(kind, patch.body), { ...options, now: now() })
        return { object: revise(kind, current, applied, options, true), isNew: false }
      }
      const scale = patching.patch(scaleKind(kind), scaleOf(kind, current) as Obj, asMerge(patch), options)
      return { object: revise(kind, current, withScale(kind, current, scale), options), isNew: false }
    }
    if (patch.type === "apply") {
      if (!old && options.subresource) throw notFound(kind, name.name)
      const applied = patching.apply(kind, old, patch.body, { ...options, now: now() })
      checkName(applied, name)
      if (!old) {
        if (applied.metadata?.uid)
          throw conflict(
            kind,
            name.name,
            `uid mismatch: the provided object specified uid ${applied.metadata.uid}, and no existing object was found`,
          )
        const metadata = { ...applied.metadata, ...(kind.namespaced && { namespace: name.namespace }) }
        return { object: createDecoded(kind, { ...applied, metadata }, options, true), isNew: true }
      }
      return { object: revise(kind, old, applied, options, true), isNew: false }
    }
    if (!old) throw notFound(kind, name.name)
    const patched = patching.patch(kind, old, patch, options)
    checkName(patched, name)
    return { object: revise(kind, old, patched, options), isNew: false }
  }

  /** Takes a whole new version of an object through everything that an endpoint does to it, and stores it. */
  function revise(kind: ServedKind, old: Obj, next: Json, options: WriteOptions, isApplied = false): Obj {
    const { strategy } = kind
    const { subresource } = options
    const manager = options.fieldManager || "unknown"
    const was = old.metadata
    const version = next.metadata?.resourceVersion
    if (!version || version === "0") {
      if (!strategy.allowsUnconditionalUpdate && !isApplied)
        throw invalid({ group: kind.group, kind: kind.plural }, was.name, [
          cause.invalid("metadata.resourceVersion", 0, "must be specified for an update"),
        ])
    } else if (!/^\d+$/.test(version))
      throw new StatusError(500, "", `strconv.ParseUint: parsing ${JSON.stringify(version)}: invalid syntax`)
    else if (version !== was.resourceVersion) throw modifiedMeanwhile(kind, was.name)

    let object = ordered(kind, {
      ...next,
      metadata: withoutUndefined({
        ...next.metadata,
        namespace: was.namespace,
        generation: was.generation,
        resourceVersion: was.resourceVersion,
      }),
    })
    object = strategy.default?.(object) ?? object
    const managedFields = isApplied
      ? next.metadata?.managedFields
      : subresource === "binding"
        ? was.managedFields // the server writes that itself, in nobody's name
        : patching.track({ kind, before: old, after: object, manager, subresource, now: now() })
    object = admit({ operation: "update", kind, object, old, subresource, user: options.user })
    object = prepare(kind, object, old, subresource)
    object = {
      ...object,
      metadata: withoutUndefined({
        ...object.metadata,
        uid: object.metadata.uid || was.uid,
        creationTimestamp: was.creationTimestamp,
        deletionTimestamp: was.deletionTimestamp ?? object.metadata.deletionTimestamp,
        deletionGracePeriodSeconds: object.metadata.deletionGracePeriodSeconds ?? was.deletionGracePeriodSeconds,
      }),
    }
    const isOutside = subresource === "status" || subresource === "binding" // not what the user wants, but what is
    if (was.generation !== undefined && !isOutside && movesGeneration(kind, object, old))
      object = { ...object, metadata: { ...object.metadata, generation: was.generation + 1 } }
    const validate =
      subresource === "status"
        ? strategy.validateStatusUpdate
        : subresource === "binding"
          ? undefined
          : strategy.validateUpdate
    const causes = [...validateUpdate(kind, object.metadata, was), ...(validate?.(object, old) ?? [])]
    if (causes.length > 0) throw invalid(kind, was.name, causes)
    if (kind.isCustom) for (const warning of finalizerWarnings(object.metadata, was)) options.warn?.(warning)
    object = managedBy(object, managedFields)
    if (equal(withoutTimes(object), withoutTimes(old))) return old
    if (options.dryRun) return object
    if (isFinished(kind, object, old)) {
      commit(kind, old, undefined, manager)
      return object
    }
    return commit(kind, old, object, manager)
  }

  function prepare(kind: ServedKind, object: Json, old: Obj, subresource: string | undefined): Json {
    const { strategy } = kind
    if (subresource === "status") {
      if (strategy.prepareStatusUpdate) return strategy.prepareStatusUpdate(object, old, context())
      const { status: _, ...kept } = old
      const metadata = kind.isCustom ? old.metadata : object.metadata
      return { ...kept, metadata, ...("status" in object && { status: object.status }) }
    }
    if (subresource === "binding") {
      const { annotations } = object.metadata
      const metadata = withoutUndefined({ ...old.metadata, annotations })
      return { ...old, metadata, spec: { ...old.spec, nodeName: object.spec.nodeName }, status: object.status }
    }
    if (subresource === "finalize") return { ...old, metadata: object.metadata, spec: object.spec }
    const prepared = strategy.prepareUpdate
      ? strategy.prepareUpdate(object, old, context())
      : kind.subresources.includes("status")
        ? { ...without(object, "status"), ...("status" in old && { status: old.status }) }
        : object
    if (!isNamespace(kind)) return prepared
    return { ...prepared, spec: old.spec, status: old.status } // their finalizers have an endpoint of their own
  }

  /** The last finalizer is gone from something that was deleted: nothing holds it any more. */
  function isFinished(kind: ServedKind, object: Json, { metadata }: Obj): boolean {
    if ((object.metadata.finalizers ?? []).length > 0 || metadata.deletionTimestamp === undefined) return false
    if (isNamespace(kind) && (object.spec?.finalizers ?? []).length > 0) return false
    return !metadata.deletionGracePeriodSeconds
  }

  function remove(kind: ServedKind, name: Name, options: DeleteOptions = {}): Removal {
    const old = get(kind, name)
    const { uid, resourceVersion } = options.preconditions ?? {}
    const { metadata } = old
    if (isNamespace(kind)) {
      const why = (what: string, asked: string, is: string) =>
        conflict(
          kind,
          name.name,
          `Precondition failed: ${what} in precondition: ${asked}, ${what} in object meta: ${is}`,
        )
      if (uid !== undefined && uid !== metadata.uid) throw why("UID", uid, metadata.uid)
      if (resourceVersion !== undefined && resourceVersion !== metadata.resourceVersion)
        throw why("ResourceVersion", resourceVersion, metadata.resourceVersion)
      return removeNamespace(kind, old, options)
    }
    // The server puts the kind where the resource belongs, here alone.
    const about = { group: kind.group, plural: kind.kind }
    if (uid !== undefined && uid !== metadata.uid)
      throw conflict(
        about,
        name.name,
        `the UID in the precondition (${uid}) does not match the UID in record (${metadata.uid}). The object might have been deleted and then recreated`,
      )
    if (resourceVersion !== undefined && resourceVersion !== metadata.resourceVersion)
      throw conflict(
        about,
        name.name,
        `the ResourceVersion in the precondition (${resourceVersion}) does not match the ResourceVersion in record (${metadata.resourceVersion}). The object might have been modified`,
      )
    return carryOut(kind, old, options)
  }

  function carryOut(kind: ServedKind, old: Obj, options: DeleteOptions): Removal {
    const manager = "delete"
    const plan = planDeletion(kind, old, options, clock.now())
    if (plan.is === "pending") return { object: old, is: "pending" }
    if (options.dryRun) return { object: plan.next ?? old, is: plan.is }
    const marked = plan.next && !equal(plan.next, old) ? commit(kind, old, plan.next, manager) : old
    return { object: plan.is === "removed" ? commit(kind, marked, undefined, manager) : marked, is: plan.is }
  }

  function removeNamespace(kind: ServedKind, old: Obj, options: DeleteOptions): Removal {
    if (["default", "kube-system", "kube-public"].includes(old.metadata.name))
      throw forbidden(kind, old.metadata.name, "this namespace may not be deleted")
    if (old.metadata.deletionTimestamp === undefined) {
      const { finalizers = [] } = old.metadata
      const { propagationPolicy: policy } = options
      const wanted = [
        ...finalizers.filter(each => !policy || (each !== "orphan" && each !== "foregroundDeletion")),
        ...(policy === "Orphan" ? ["orphan"] : policy === "Foreground" ? ["foregroundDeletion"] : []),
      ]
      const next = {
        ...withMetadata(old, { deletionTimestamp: now(), finalizers: wanted.length > 0 ? wanted : undefined }),
        status: { ...old.status, phase: "Terminating" },
      }
      return { object: options.dryRun ? next : commit(kind, old, next, "delete"), is: "marked" }
    }
    if ((old.spec?.finalizers ?? []).length > 0) return { object: old, is: "marked" }
    return carryOut(kind, old, options)
  }

  return {
    store,
    kind: (apiVersion, kind) => byKind.get(`${apiVersion} ${kind}`),
    resource: (group, version, plural) => byResource.get(`${group}/${version}/${plural}`),
    kinds: () => served,
    setCustomKinds(definition, kinds) {
      if (kinds.length === 0) custom.delete(definition)
      else {
        // A server begins to keep changes of a kind when it begins to serve it.
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
    create,
    update: (kind, object, options) => put(kind, nameIn(object), object, options).object,
    put,
    patch: (kind, name, patch, options) => patchOrCreate(kind, name, patch, options).object,
    patchOrCreate,
    delete: (kind, name, options) => remove(kind, name, options).object,
    remove,
    deleteCollection(kind, selection, options) {
      const { items } = list(kind, selection)
      for (const { metadata } of items) {
        const { name, namespace } = metadata
        if (find(kind, { name, namespace })) remove(kind, { name, namespace }, options)
      }
      return items
    },
    present,
    deliveries: (kind, listener) => store.subscribe(kind.storage, listener),
    subscribe(kind, listener) {
      return store.subscribe(kind.storage, ({ change: { type, object, before } }) => {
        const change: RegistryChange = { type, object: present(kind, object) }
        listener(before ? { ...change, before: present(kind, before) } : change)
      })
    },
  }
}

const isNamespace = ({ group, plural }: ServedKind) => group === "" && plural === "namespaces"

const nameIn = ({ metadata }: Json): Name => ({ name: metadata?.name, namespace: metadata?.namespace })

/** Programs leave out what they are; the server's clients may, too. */
const typed = (kind: ServedKind, body: Json): Json =>
  body && typeof body === "object" && !body.apiVersion && !body.kind && !kind.isCustom
    ? { apiVersion: apiVersionOf(kind), kind: kind.kind, ...body }
    : body

/** What it is first, then metadata: lists leave out the first two by cutting them off the text. */
const ordered = (kind: ServedKind, object: Json): Json => {
  const { apiVersion: _, kind: __, metadata, ...rest } = object
  return { apiVersion: apiVersionOf(kind), kind: kind.kind, metadata, ...rest }
}

const managedBy = (object: Json, managedFields: readonly ManagedFields[] | undefined): Json => ({
  ...object,
  metadata: orderedMetadata({ ...object.metadata, managedFields: managedFields?.map(shared) }),
})

/**
 * A thousand pods of one template are owned in the same way, field by field: that takes a third of their memory unless
 * they share it.
 */
function shared(entry: ManagedFields): ManagedFields {
  const text = JSON.stringify(entry.fieldsV1)
  const known = ownerships.get(text)
  if (known) return { ...entry, fieldsV1: known }
  if (ownerships.size >= 1000) ownerships.clear()
  ownerships.set(text, entry.fieldsV1)
  return entry
}

const ownerships = new Map<string, Json>()

function without(object: Json, field: string): Json {
  const { [field]: _, ...rest } = object
  return rest
}

function checkName({ metadata }: Json, { name, namespace }: Name) {
  if (!metadata?.name)
    throw badRequest(`the name of the object (${name} based on URL) was undeterminable: name must be provided`)
  if (metadata.name !== name)
    throw badRequest(`the name of the object (${metadata.name}) does not match the name on the URL (${name})`)
  if (namespace && metadata.namespace && metadata.namespace !== namespace)
    throw badRequest("the namespace of the provided object does not match the namespace sent on the request")
}

const movesGeneration = ({ strategy }: ServedKind, object: Json, old: Obj): boolean =>
  strategy.movesGeneration
    ? strategy.movesGeneration(object, old)
    : !equal({ ...object, metadata: undefined, status: undefined }, { ...old, metadata: undefined, status: undefined })

/** When somebody last took a field says nothing new if nobody took any. */
function withoutTimes(object: Json): Json {
  const { managedFields } = object.metadata
  if (!managedFields) return object
  const timeless = managedFields.map((entry: Json) => ({ ...entry, time: undefined }))
  return { ...object, metadata: { ...object.metadata, managedFields: timeless } }
}

/** A Scale has a schema of its own, whatever it scales. */
const scaleKind = (kind: ServedKind): ServedKind => ({
  ...kind,
  group: "autoscaling",
  version: "v1",
  kind: "Scale",
  schema: kubernetesSchema("autoscaling/v1", "Scale") ?? { type: "any" },
  isCustom: false,
})

/** Without lists to merge, a strategic patch of a Scale is a merge patch. */
const asMerge = (patch: PatchBody): PatchBody => (patch.type === "strategic" ? { ...patch, type: "merge" } : patch)
